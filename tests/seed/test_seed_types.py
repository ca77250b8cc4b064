"""A seeded row equals the row that a change would have written: every type, every kind of file, masked columns."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.lake import lakes
from tests.lake.histories import Message, feeder, publish, resolved
from tests.seed.exports.dumpling import Dump, csv, sql
from tidelake.config.policy import ColumnPolicy, Policy
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import Event, RowSchema, SchemaColumn
from tidelake.lake.opened import Lake
from tidelake.seed.stage import seed

AT, ZONE = 100, "America/New_York"
KEY = "a key of these tests, long enough"
CLEAR = b"CLEAR"  # in every value that no reader may see
# name, type, what the server sends, what a change carries (None: the same), in Parquet (type and value; None: the server's bytes)
VALUES: tuple[tuple[str, str, bytes | None, bytes | None, tuple[pa.DataType, Any] | None], ...] = (
    ("id", "bigint", b"1", None, (pa.int64(), 1)),
    ("tiny", "tinyint", b"-128", None, (pa.int32(), -128)),
    ("flag", "tinyint(1)", b"1", None, (pa.bool_(), True)),
    ("big", "bigint unsigned", b"18446744073709551615", None, (pa.decimal128(20, 0), Decimal(18446744073709551615))),
    ("wide", "decimal(65,30)", b"9" * 35 + b"." + b"9" * 30, None, None),
    ("small", "decimal(38,10)", b"-0.0000000001", None, (pa.decimal128(38, 10), Decimal("-0.0000000001"))),
    ("d", "decimal(10,2)", b"-1234.50", None, (pa.decimal128(10, 2), Decimal("-1234.50"))),
    ("f", "float", b"3.4028235e38", None, (pa.float32(), 3.4028234663852886e38)),
    ("g", "double", b"0.1", None, (pa.float64(), 0.1)),
    ("b10", "bit(10)", b"\x02\xff", b"767", None),
    ("b64", "bit(64)", b"\xff" * 8, b"18446744073709551615", (pa.uint64(), 18446744073709551615)),
    ("e", "enum('a','it''s, so','')", b"it's, so", b"2", None),
    ("none", "enum('a')", b"", b"0", None),
    ("s", "set('a','b','\\\"')", b'a,"', b"5", None),
    ("nothing", "set('a')", b"", b"0", None),
    ("day", "date", b"2024-02-29", None, (pa.date32(), datetime(2024, 2, 29).date())),  # noqa: DTZ001
    ("zero", "datetime(0)", b"0000-00-00 00:00:00", None, None),
    ("at", "datetime(3)", b"2026-03-08 02:30:00.120", None, (pa.timestamp("us"), datetime(2026, 3, 8, 2, 30, 0, 120000))),  # noqa: DTZ001
    ("ts", "timestamp(6)", b"2026-07-01 00:00:00.000001", None, (pa.timestamp("us"), datetime(2026, 7, 1, 0, 0, 0, 1))),  # noqa: DTZ001
    ("utc", "timestamp(0)", b"2026-07-01 00:00:00", None, (pa.timestamp("us", "UTC"), datetime.fromisoformat("2026-07-01T04:00:00Z"))),
    ("t", "time(2)", b"-838:59:59.00", None, None),
    ("y", "year", b"0000", b"0", (pa.int32(), 0)),
    ("j", "json", '{"a": "é\\"", "n": 1.0}'.encode(), None, None),
    ("bin", "binary(3)", b"\xff\x00\\", None, None),
    ("blob", "longblob", bytes(range(256)), None, None),
    ("text", "varchar(99)", '😀\0\\N "it\'s",\r\n'.encode(), None, None),
    ("bad", "varchar(9)", b"a\xffb", None, None),
    ("v", "vector(3)", b"[1,-2.5,3e10]", None, None),
    ("null_", "int", None, None, (pa.int32(), None)),
    ("mail", "varchar(99)", b"CLEAR@x", None, None),
    ("rank", "enum('SHOWN','x')", b"SHOWN", b"1", None),
    ("note", "text", "中文字x CLEAR".encode(), None, None),
    ("born", "bigint", b"7305519", None, None),
    ("gone", "text", b"CLEAR gone", None, None),
)
MASKS = {"mail": "hash", "rank": "hash", "note": "truncate(4)", "born": "null", "gone": "drop"}
TABLES = ("csv", "sql", "parquet")

pytestmark = [pytest.mark.usefixtures("spark_app"), pytest.mark.long]


def changed(table: str) -> Message:
    """The row as an insert of Open Protocol carries it."""
    columns = [SchemaColumn(n, MysqlType.parse(t).name, n == "id") for n, t, *_ in VALUES]
    after = [sent if change is None else change for _, _, sent, change, _ in VALUES]
    event = Event(kind="row", op="insert", commit_ts=AT, database="d", table=table, row_schema=RowSchema(tuple(columns)), after=after)
    return Message(partition=0, event=event)


def export(folder: Path) -> str:
    dump, columns = Dump(folder).begin(AT), [(n, t) for n, t, *_ in VALUES]
    rows = [[sent for _, _, sent, *_ in VALUES]]
    for name in TABLES:
        dump.table(f"d.{name}", definition())
    dump.write("d.csv.000000000.csv.zst", csv(columns, rows))
    dump.write("d.sql.000000000.sql.gz", sql("sql", columns, rows))
    arrays = [pa.array([sent if p is None else p[1]], pa.binary() if p is None else p[0]) for _, _, sent, _, p in VALUES]
    pq.write_table(pa.table(arrays, [n for n, *_ in VALUES]), folder / "d.parquet.000000000.parquet")
    return str(folder)


def definition() -> str:
    return f"({', '.join(f'`{n}` {t}' for n, t, *_ in VALUES)}, PRIMARY KEY (`id`))"


def settings() -> dict[str, Any]:
    masks = {c: ColumnPolicy(mask=m) for c, m in MASKS.items()}
    return {"columns": {f"d.{t}": masks for t in TABLES}, "policy": Policy(mask_key=KEY), "time_zone": ZONE}


def readable(folder: Path) -> Sequence[Path]:
    """Files of the lake with a value of the clear ones in them."""
    found = []
    for path in (p for p in folder.rglob("*") if p.is_file()):
        whole = [path.read_bytes()]
        if path.suffix == ".parquet":
            whole += [bytes(b) for c in pq.read_table(path).columns for a in c.chunks for b in a.buffers() if b]
        if any(CLEAR in part or struct.pack("<q", 7305519) in part for part in whole):
            found.append(path)
    return found


def test_every_type_comes_as_a_change_would_have_brought_it(tmp_path: Path) -> None:
    source = export(tmp_path / "dump")
    rows: dict[str, list[dict[str, object]]] = {}
    for name in ("seeded", "changed"):
        made = feeder(tmp_path / name, "".join(f"CREATE TABLE d.{t} {definition()};" for t in TABLES), **settings())
        (tmp_path / name / "lake").mkdir()
        with Lake.of(made.feed) as lake:
            if name == "seeded":
                seed(lake, source)
                assert readable(tmp_path / name / "lake") == []
            else:
                publish(lake, made.add(lake, [*(changed(t) for t in TABLES), *resolved(AT)]))
            rows |= {f"{name} {t}": lakes.contents(lake.catalog, f"d.{t}") for t in TABLES}
            schemas = {str(lake.catalog.load(f"d.{t}").columns()) for t in TABLES}
            assert len(schemas) == 1
    for t in TABLES:
        assert rows[f"seeded {t}"] == rows[f"changed {t}"], t
    (row,) = rows["seeded csv"]
    assert (row["big"], row["b10"], row["e"], row["s"], row["bad"], row["zero"]) == (
        18446744073709551615,
        767,
        "it's, so",
        'a,"',
        "a�b",
        None,
    )
    assert row["_commit_ts"] == AT
    assert "gone" not in row
