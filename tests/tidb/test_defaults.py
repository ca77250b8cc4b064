"""What older rows hold in an added column, for literals of all spellings: the same as in TiDB, or unknown."""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest

from tests.tidb.alters import OWN_DEFAULTS
from tests.tidb.present import DATABASE, SourceField, present, rows
from tests.tidb.server import TiDB
from tests.tidb.values import FAMILIES
from tidelake.errors import ContractError
from tidelake.history.ddl.changes import ColumnDef, CreateTable
from tidelake.history.ddl.statement import parse

SEED = int(os.environ.get("TIDELAKE_TIDB_SEED", "20261125"))
ACCEPTED = 400  # columns that TiDB adds
COLUMNS = 25  # of a table
TYPES = [t for family in FAMILIES for t in family if not any(w in t for w in ("TEXT", "BLOB", "JSON", "VECTOR"))]
TYPES += ["FLOAT(8,2)", "DOUBLE(8,2) UNSIGNED", "ENUM('1','2','3','A')", "SET('1','2','A','a ')", "CHAR(3)", "BIT(8)", "TIMESTAMP(3)"]
LITERALS = sorted({literal for own in OWN_DEFAULTS.values() for literal in own})
LITERALS += [
    "1e3",
    "1.005",
    "-0.5",
    "'1e2'",
    "' 5'",
    "'5 '",
    "0",
    "'0'",
    "00",
    "5",
    "99",
    "'99'",
    "70",
    "'2155'",
    "1e400",
    "'abc'",
    "-TRUE",
]
LITERALS += [
    "'10:11:12.5'",
    "'-10:00:00'",
    "'838:59:59'",
    "'2026-01-05'",
    "'0000-00-00'",
    "'2024-02-30'",
    "x'e4b8ad'",
    "0x00",
    "b'0'",
    "1.",
]
LITERALS += ["1.", "-TRUE", "-1.5e0", "'.5'", ".5", "'+5'", "'a,a'", "'A'", "'a '", "'1_000'", "'inf'", "'nan'", "1e-400"]
LITERALS += ["'2026-01-05 10:00:00+02:00'", "'2026-01-05 10:00:00.5'"]


def test_an_added_column_holds_in_older_rows_what_tidb_gives_them(tidb: TiDB, capsys: pytest.CaptureFixture[str]) -> None:
    random, counts, unlike = Random(SEED), Counter[str](), list[str]()
    tidb.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}")
    while counts["equal"] + counts["unknown"] < ACCEPTED and not unlike:
        for sql, field, cell in _added(tidb, random):
            said = _said(sql)
            if isinstance(said, str) or (said.default_known and _cell(said) != _same(field, cell)):
                unlike.append(f"{sql}: {said}, in TiDB {cell!r}")
            else:
                counts["equal" if said.default_known else "unknown"] += 1
    with capsys.disabled():
        print(f"\ndefaults of older rows: {dict(counts)}, again with TIDELAKE_TIDB_SEED={SEED}")  # noqa: T201 - the totals are the point
    assert unlike == []


def _added(tidb: TiDB, random: Random) -> list[tuple[str, SourceField, bytes | None]]:
    """Columns that TiDB adds to a table with a row, and what the row holds in them."""
    import pymysql

    tidb.execute("DROP TABLE IF EXISTS t", "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    added: dict[str, str] = {}
    for n in range(COLUMNS):
        sql = f"c{n} {random.choice(TYPES)} {random.choice(['', 'NOT NULL '])}DEFAULT {random.choice(LITERALS)}"
        try:
            tidb.execute(f"ALTER TABLE t ADD COLUMN {sql}")
        except pymysql.Error:
            continue
        added[f"c{n}"] = sql
    table = present(tidb, "t")
    (row,) = rows(tidb, table)
    return [(added[f.name], f, cell) for f, cell in zip(table.fields, row, strict=True) if f.name in added]


def _said(sql: str) -> ColumnDef | str:
    """The column as our rules read it, or why they cannot."""
    try:
        (made,) = parse(f"CREATE TABLE x ({sql})", DATABASE)
    except ContractError as e:
        return e.message
    assert isinstance(made, CreateTable)
    assert made.definition is not None
    return made.definition.columns[0]


def _cell(said: ColumnDef) -> object:
    """The default as a cell: bytes of binary types, numbers of ENUM and SET, else the text."""
    if said.default is None:
        return None
    if said.type.is_binary:
        return bytes.fromhex(said.default)
    return _number(said.type.word, said.default, said.type.elements or ())


def _same(field: SourceField, cell: bytes | None) -> object:
    if cell is None or field.type.is_binary:
        return cell
    return int(cell) if field.type.elements is not None else _number(field.type.word, cell.decode(), ())


def _number(word: str, text: str, elements: tuple[str, ...]) -> object:
    """What two spellings of one value have in common."""
    if word in ("float", "double"):
        return f"{float(text):.6g}" if word == "float" else float(text)
    if word == "enum":
        return elements.index(text) + 1 if text in elements else 0
    return sum(1 << elements.index(e) for e in text.split(",") if e) if word == "set" else text
