"""The plain pipeline over an archive of `scale_archive`: decode by a Python function, newest change per key, MERGE INTO, copy-on-write."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.measure import measured
from tests.benchmarks.plain import decoded, merge, session, typed_rows
from tests.benchmarks.scale_archive import COLUMNS, hour_at


def main(folder: Path, tables: list[str]) -> None:
    """The first hour is appended unmeasured, the second one merged. Prints one JSON object."""
    spark = session(folder / "plain")
    filled = _of_hour(spark, folder, 0)
    for table in tables:
        spark.sql(f"CREATE TABLE lake.plain.{table} ({COLUMNS}) USING iceberg TBLPROPERTIES ('format-version' = '2')")
        typed_rows(filled.where(F.col("tbl") == table), COLUMNS).drop("ts", "op").writeTo(f"lake.plain.{table}").append()
    filled.unpersist()
    with measured() as used:
        rows = _of_hour(spark, folder, 1)
        for table in tables:
            merge(spark, rows.where(F.col("tbl") == table), table, COLUMNS, ["id"])
    total = sum(spark.table(f"lake.plain.{table}").count() for table in tables)
    sys.stdout.write(json.dumps({"seconds": used.seconds, "cpu": used.cpu, "peak": used.peak, "rows": total}))
    spark.stop()


def _of_hour(spark: SparkSession, folder: Path, number: int) -> DataFrame:
    path = folder / "archive" / "shop" / f"hour={hour_at(number):%Y-%m-%dT%H}"
    return decoded(spark.read.option("recursiveFileLookup", "true").parquet(str(path)).select("key", "value")).cache()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
