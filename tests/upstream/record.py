"""Records messages of Debezium's connectors: `python -m tests.upstream.record FOLDER` writes debezium_mariadb.json and debezium_mysql.json.

A JSON list: "settings" of the connector and its converters; "messages" with key and value in hex, in their order; "rows": what the server
says of its table after it, as texts (bytes in hex) by column. tests/data/vectors has the file as it came out, packed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.io.kafka_broker import KafkaBroker
from tests.io.mariadb_server import MariaDB
from tests.io.mysql_server import MySQL
from tests.io.sql_server import SqlServer
from tests.upstream.debezium import debezium
from tests.upstream.topic import Hours

COLUMNS = {  # name: (type, value)
    "id": ("INT NOT NULL PRIMARY KEY", "1"),
    "tiny": ("TINYINT", "-128"),
    "small": ("SMALLINT UNSIGNED", "65535"),
    "medium": ("MEDIUMINT UNSIGNED", "16777215"),
    "whole": ("INT UNSIGNED", "4294967295"),
    "big": ("BIGINT UNSIGNED", "18446744073709551615"),
    "exact": ("DECIMAL(12,4)", "-12345678.9000"),
    "wide": ("DECIMAL(65,30)", "0.000000000000000000000000000001"),
    "single": ("FLOAT", "1.5"),
    "twofold": ("DOUBLE", "0.1"),
    "one": ("BIT(1)", "1"),
    "bits": ("BIT(10)", "515"),
    "fixed": ("CHAR(9)", "'a|~é'"),
    "latin": ("VARCHAR(9) CHARACTER SET latin1", "'é'"),
    "crab": ("TEXT CHARACTER SET utf8mb4", "'🦀'"),
    "raw": ("BINARY(4)", "X'00FF'"),
    "blob_": ("BLOB", "X'0102FF'"),
    "day": ("DATE", "'1000-01-01'"),
    "moment": ("DATETIME", "'2026-01-05 10:20:30'"),
    "fine": ("DATETIME(6)", "'9999-12-31 23:59:59.000001'"),
    "instant": ("TIMESTAMP(6) NULL", "'2026-01-05 15:50:30.250000'"),
    "span": ("TIME", "'10:20:30'"),
    "finer": ("TIME(6)", "'00:00:01.000001'"),
    "years": ("YEAR", "2026"),
    "choice": ("ENUM('x','it''s, ok')", "2"),
    "several": ("SET('a','b','c')", "5"),
    "document": ("JSON", """'{"b": 1, "a": [1, 2.5]}'"""),
}
BINARY = ("raw", "blob_")
MODES: list[dict[str, Any]] = [
    {},
    {"schemas": False, "decimal_handling_mode": "string"},
    {"time_precision_mode": "connect", "bigint_unsigned_handling_mode": "precise", "decimal_handling_mode": "double"},
    {"time_precision_mode": "isostring", "binary_handling_mode": "base64", "column_propagate_source_type": ".*"},
]


def main(folder: Path) -> None:
    """Record every mode of both connectors."""
    for server in (MariaDB(binlog=True), MySQL()):
        found = []
        with TemporaryDirectory() as made, server, KafkaBroker(Path(made)) as broker:
            for n, mode in enumerate(MODES):
                found.append({"settings": mode} | _recorded(server, broker, f"recorded-{n}", Path(made) / f"connect-{n}", mode))
        (folder / f"debezium_{server.kind}.json").write_text(json.dumps(found, ensure_ascii=False, indent=0))


def _recorded(server: SqlServer, broker: KafkaBroker, topic: str, folder: Path, mode: dict[str, Any]) -> dict[str, Any]:
    columns = ", ".join(f"{name} {sql}" for name, (sql, _) in COLUMNS.items())
    row = ", ".join(value for _, value in COLUMNS.values())
    server.execute(
        "DROP DATABASE IF EXISTS shop", "CREATE DATABASE shop", "USE shop", f"CREATE TABLE t ({columns})", f"INSERT INTO t VALUES ({row})"
    )
    hours = Hours(broker, topic)
    broker.create(f"{topic}-history", 1)
    with debezium(server, broker, topic, folder, **mode) as producer:
        producer.until(lambda: len(hours.messages()) > 0, "a snapshot")
        second = row.replace("1", "2", 1)
        server.execute(
            "USE shop", f"INSERT INTO t VALUES ({second})", "UPDATE t SET tiny = 7 WHERE id = 2", "UPDATE t SET id = 3 WHERE id = 2"
        )
        server.execute("USE shop", "DELETE FROM t WHERE id = 3", f"INSERT INTO t VALUES ({second})", "ALTER TABLE t COMMENT 'mark-quiet'")
        hours.quiet(producer, "mark-quiet")
        messages = [{n: None if m is None else m.hex() for n, m in (("key", m.key), ("value", m.value))} for m in hours.messages()]
    cells = ", ".join(
        f"HEX({c})" if c in BINARY else f"{c} + 0" if sql.startswith("BIT") else f"CAST({c} AS CHAR)" for c, (sql, _) in COLUMNS.items()
    )
    rows = server.execute("SET NAMES utf8mb4", "SET time_zone='+00:00'", "USE shop", f"SELECT {cells} FROM t ORDER BY id")
    return {"messages": messages, "rows": [dict(zip(COLUMNS, map(str, row), strict=True)) for row in rows]}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
