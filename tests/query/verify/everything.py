"""A table of all types in a small lake, and the same rows as SQL: what each cell is in the lake, in an INSERT, and as compared text."""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.lake import lakes
from tidelake.config.feed import Feed
from tidelake.history.contract import read_tables
from tidelake.history.incarnations import Catalog, create
from tidelake.io.storage import open_store
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import Cut, TableCut
from tidelake.lake.cuts import record
from tidelake.lake.identity import establish
from tidelake.lake.tables import create_snapshot
from tidelake.spark.lake_settings import lake_settings
from tidelake.tso import from_ms

TS = from_ms(1_767_607_200_000, 7)
Row = dict[str, Any]
FEED = """
protocol = "open"
topics = ["t"]
partitions = 1
[source]
uri = "{folder}/archive"
layout = "aiven-jsonl"
[lake]
uri = "{folder}/lake"
"""


@dataclass(frozen=True)
class Kind:
    """A column: its SQL type, and cells (in the lake, in SQL, as text)."""

    sql: str
    cells: tuple[tuple[Any, str, str], ...]


_at = dt.datetime.fromisoformat
NULL = (None, "NULL", "~")
KINDS = {
    "tiny": Kind("TINYINT", ((-128, "-128", "-128"), NULL)),
    "filled": Kind("INT(6) UNSIGNED ZEROFILL", ((42, "42", "42"), (4294967295, "4294967295", "4294967295"))),
    "big": Kind("BIGINT", ((-(2**63), "-9223372036854775808", "-9223372036854775808"), (0, "0", "0"))),
    "years": Kind("YEAR", ((0, "0", "0"), (2026, "2026", "2026"))),
    "bits": Kind("BIT(64)", ((Decimal(2**64 - 1), "18446744073709551615", "18446744073709551615"), (Decimal(5), "5", "5"))),
    "price": Kind("DECIMAL(12,4)", ((Decimal("-0.0500"), "-0.05", "-0.0500"), (Decimal("12345678.9000"), "12345678.9", "12345678.9000"))),
    "wide": Kind("DECIMAL(65,30)", (("1." + "0" * 29 + "1", "1." + "0" * 29 + "1", "1." + "0" * 29 + "1"), NULL)),
    "narrow": Kind("FLOAT", ((0.1, "0.1", "1844674434858745856p-4"), (-3e38, "-3e38", "-1016439538567872512p128"))),
    "double_": Kind(
        "DOUBLE",
        (
            (0.1, "0.1", "1844674407370955264p-4"),
            (5e-324, "5e-324", "1152921504606846976p-1074"),
            (1.7976931348623157e308, "1.7976931348623157e308", "1152921504606846848p1024"),
            (-0.0, "-0e0", "0"),
            (0.9999999999999999, "0.9999999999999999", "1152921504606846848p0"),
        ),
    ),
    "day": Kind("DATE", ((dt.date(2026, 1, 5), "'2026-01-05'", "2026-01-05"), (None, "'0000-00-00'", "~"))),
    "moment": Kind(
        "DATETIME",
        (
            (_at("0999-01-05 03:04:05"), "'0999-01-05 03:04:05'", "0999-01-05 03:04:05.000000"),
            (None, "'2026-00-05 01:02:03'", "~"),
        ),
    ),
    "fine": Kind(
        "DATETIME(6)",
        ((_at("2026-01-05 03:04:05.000006"), "'2026-01-05 03:04:05.000006'", "2026-01-05 03:04:05.000006"), NULL),
    ),
    "instant": Kind(
        "TIMESTAMP(3) NULL",
        ((_at("2026-01-05 03:04:05.12+00:00"), "'2026-01-05 03:04:05.12'", "2026-01-05 03:04:05.120000"), NULL),
    ),
    "span": Kind("TIME(3)", (("-838:59:59.000", "'-838:59:59'", "-838:59:59.000"), ("00:00:01.500", "'00:00:01.5'", "00:00:01.500"))),
    "fixed": Kind("CHAR(9)", (("a|~\t\\", "'a|~\\t\\\\'", "5:a|~\t\\"), ("", "''", "0:"))),
    "latin": Kind("VARCHAR(40) CHARACTER SET latin1", (("é", "'é'", "1:é"), NULL)),
    "long_": Kind("LONGTEXT", (("line\nline 🦀", "'line\\nline 🦀'", "11:line\nline 🦀"), ("~", "'~'", "1:~"))),
    "padded": Kind("BINARY(4)", ((b"\xab", "X'AB'", "AB000000"), (b"\0\0\0\0", "X'00'", "00000000"))),
    "bytes_": Kind("VARBINARY(8)", ((b"", "X''", ""), (b"\0\xff", "X'00FF'", "00FF"))),
    "blob_": Kind("BLOB", ((bytes(range(256)), f"X'{bytes(range(256)).hex()}'", bytes(range(256)).hex().upper()), NULL)),
    "choice": Kind("ENUM('x','it''s, ok','')", (("it's, ok", "2", "8:it's, ok"), ("", "0", "0:"))),
    "several": Kind("SET('a','b','c')", (("a,c", "5", "3:a,c"), ("", "0", "0:"))),
    "document": Kind("JSON", (('{"b": 1, "a": [1, 2]}', '\'{"b": 1, "a": [1, 2]}\'', '21:{"b": 1, "a": [1, 2]}'), NULL)),
}
DEFINITION = ",".join(["region INT NOT NULL", "id BIGINT UNSIGNED NOT NULL", *(f"`{name}` {kind.sql}" for name, kind in KINDS.items())])
ROWS = 100
CREATE = f"CREATE TABLE everything ({DEFINITION}, PRIMARY KEY (region, id)) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci"
OTHERS = (
    "CREATE TABLE words (word VARCHAR(20) NOT NULL, n INT, PRIMARY KEY (word)) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
    "CREATE TABLE bag (v VARCHAR(20), n INT) DEFAULT CHARSET utf8mb4",
)
WORDS: list[Row] = [{"word": f"w{i}", "n": i} for i in range(60)]
BAG: list[Row] = [{"v": "twice", "n": 1}, {"v": "twice", "n": 1}, {"v": None, "n": 2}, *({"v": f"v{i}", "n": i} for i in range(20))]


def cell(name: str, number: int) -> tuple[Any, str, str]:
    """The cell of a row."""
    cells = KINDS[name].cells
    return cells[number % len(cells)]


def row(number: int) -> Row:
    """A row in the lake."""
    return {"region": number % 3, "id": Decimal(2**64 - 1 - number), **{name: cell(name, number)[0] for name in KINDS}}


def insert(number: int) -> str:
    """The same row as SQL."""
    cells = [str(number % 3), str(2**64 - 1 - number), *(cell(name, number)[1] for name in KINDS)]
    return f"INSERT INTO everything VALUES ({','.join(cells)})"


def text(number: int) -> str:
    """The row's text, as compared."""
    return "|".join([str(number % 3), str(2**64 - 1 - number), *(cell(name, number)[2] for name in KINDS)])


def total(text: str) -> int:
    """What a row of this text adds to a sum."""
    return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:16], 16)


def lake(folder: Path, rows: int = ROWS) -> Feed:
    """A feed with one cut at TS, in which stand the tables, made without Spark."""
    feed = lakes.feed(folder)
    feed.folder.mkdir(parents=True)
    (feed.folder / "feed.toml").write_text(FEED.format(folder=folder))
    (feed.folder / "tables.sql").write_text(f"USE d;\n{';'.join((CREATE, *OTHERS))};\n")
    catalog, known = LakeCatalog(lake_settings(feed)), Catalog()
    contents = {"everything": [row(i) for i in range(rows)], "words": WORDS, "bag": BAG}
    cut = Cut(feed=feed.name, seq=1, hour="2026-01-05T10", applied_ts=0, resolved_ts=TS, run="test", version="0")
    for contract in read_tables(feed.folder):
        known = create(known, contract.database, contract.table, contract.definition, -1)
        life = list(known.incarnations.values())[-1]
        made = create_snapshot(catalog, feed, life, f"d.{contract.table}", 2)
        kept = contents[contract.table]
        schema = made.table.schema().as_arrow()
        catalog.append(made.identifier, pa.Table.from_pylist([{**r, "_commit_ts": 1} for r in kept], schema=schema))
        now = catalog.load(made.identifier)
        cut.snapshots[life.id] = TableCut(identifier=now.identifier, uuid=now.uuid, snapshot_id=now.main, rows=len(kept))
    store = open_store(feed.lake.uri)
    record(catalog, store, cut.model_copy(update={"catalog": known}))
    establish(feed, store, lake_settings(feed), catalog)
    return feed
