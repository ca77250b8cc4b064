"""The plain pipeline that one would write first: Spark, a Python function over messages, a window function, MERGE INTO.

It reads the same archive, keeps the newest change per key by commit ts, and merges it into Iceberg tables. It has no manifest, no resolved
ts, no changelog, no DDL, no quarantine, no cut: it is what those cost that the comparison shows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from tests.benchmarks.measure import measured
from tests.benchmarks.workload import KEYS
from tidelake.spark.application import prepare_environment, static_settings

CHANGES = "array<struct<ts:bigint,tbl:string,op:string,row:string>>"
COLUMNS = {
    "sellers": "id bigint, handle string, name string, verified int, balance decimal(14,2), joined timestamp_ntz, last_seen string, "
    "fax string",
    "listings": "id decimal(20,0), seller_id bigint, title string, description string, price decimal(12,2), grade int, tags bigint, "
    "attrs string, stock bigint, listed timestamp",
    "bids": "listing_id decimal(20,0), bid_no int, amount decimal(12,2), quantity int, options bigint, placed timestamp, "
    "withdrawn timestamp_ntz",
    "parcels": "tracking string, carrier string, weight double, pickup date, slot string, note string",
    "boxes": "id bigint, label string, content string, photo string, lights bigint, temperature double, checked string",
}


def changes(key: bytes, value: bytes | None) -> list[dict[str, Any]]:
    """The row changes of one message."""
    out = []
    for k, v in zip(_pieces(bytes(key[8:])), _pieces(bytes(value or b"")), strict=True):
        head = json.loads(k)
        if head["t"] == 1:
            body = json.loads(v)
            image = body.get("u") or body["d"]
            row = json.dumps({name: cell.get("v") for name, cell in image.items()})
            out.append({"ts": head["ts"], "tbl": head["tbl"], "op": "u" if "u" in body else "d", "row": row})
    return out


def _pieces(raw: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(raw):
        length = int.from_bytes(raw[at : at + 8], "big")
        yield raw[at + 8 : at + 8 + length]
        at += 8 + length


def hour(spark: SparkSession, archive: Path) -> dict[str, int]:
    """Read, decode, merge; the rows of every table."""
    messages = spark.read.schema("key string, value string").option("recursiveFileLookup", "true").json(str(archive))
    rows = decoded(messages.select(F.unbase64("key").alias("key"), F.unbase64("value").alias("value"))).cache()
    for table, columns in COLUMNS.items():
        spark.sql(f"CREATE TABLE lake.plain.{table} ({columns}) USING iceberg TBLPROPERTIES ('format-version' = '2')")
        merge(spark, rows.where(F.col("tbl") == table), table, columns, KEYS[table])
    return {table: spark.table(f"lake.plain.{table}").count() for table in COLUMNS}


def decoded(messages: DataFrame) -> DataFrame:
    """Binary keys and values → ts, tbl, op, row."""
    return messages.select(F.explode(F.udf(changes, CHANGES)("key", "value")).alias("c")).select("c.*")


def typed_rows(rows: DataFrame, columns: str) -> DataFrame:
    """ts, op and the table's columns."""
    names = [c.split()[0] for c in columns.split(", ")]
    typed = rows.select("ts", "op", F.from_json("row", ", ".join(f"{n} string" for n in names)).alias("r")).select("ts", "op", "r.*")
    return typed.select("ts", "op", *(F.col(name).cast(kind) for name, kind in (c.split() for c in columns.split(", "))))


def merge(spark: SparkSession, rows: DataFrame, table: str, columns: str, key: Sequence[str]) -> None:
    """The newest change of each key into the table."""
    names, typed = [c.split()[0] for c in columns.split(", ")], typed_rows(rows, columns)
    newest = Window.partitionBy(*key).orderBy(F.desc("ts"), F.desc("op"))
    typed.withColumn("n", F.row_number().over(newest)).where("n = 1").createOrReplaceTempView("changed")
    same = " AND ".join(f"t.{k} = c.{k}" for k in key)
    update = ", ".join(f"t.{n} = c.{n}" for n in names)
    spark.sql(
        f"MERGE INTO lake.plain.{table} t USING changed c ON {same} WHEN MATCHED AND c.op = 'd' THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {update} "
        f"WHEN NOT MATCHED AND c.op = 'u' THEN INSERT ({', '.join(names)}) VALUES ({', '.join('c.' + n for n in names)})"
    )


def session(warehouse: Path) -> SparkSession:
    """A Spark session with the settings of our own and an Iceberg catalog in a folder."""
    prepare_environment()
    lake = "spark.sql.catalog.lake"
    catalog = {lake: "org.apache.iceberg.spark.SparkCatalog", f"{lake}.type": "hadoop", f"{lake}.warehouse": str(warehouse)}
    builder = SparkSession.builder.appName("plain")
    for key, value in (static_settings() | catalog).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def main(folder: Path) -> None:
    """Print one JSON object: what it used, and the tables' rows."""
    with measured() as starting:
        spark = session(folder / "plain")
    with measured() as used:
        rows = hour(spark, folder / "archive" / "open")
    sys.stdout.write(json.dumps({"start": starting.seconds, "seconds": used.seconds, "cpu": used.cpu, "peak": used.peak, "rows": rows}))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
