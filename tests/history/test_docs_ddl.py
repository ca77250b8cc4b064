"""docs/ddl.md says what is: every statement in its table is carried out, every kind that TiCDC sends has its row."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pytest

from tests.checkout import CHECKOUT
from tests.data_files import data_bytes
from tidelake.config.policy import Policy
from tidelake.errors import OrderError
from tidelake.history.event import RowSchema, SchemaColumn
from tidelake.history.incarnations import ALWAYS, Catalog
from tidelake.history.window import ObservedTable, Statement, compile_window

TEXT = (CHECKOUT / "docs" / "ddl.md").read_text(encoding="utf-8")
BEFORE = """
CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), n DECIMAL(10,2), d DATETIME(6), e ENUM('x','y'), v INT AS (id) VIRTUAL, KEY i (a))
CREATE TABLE u (id INT NOT NULL, a VARCHAR(20), UNIQUE uk (id))
CREATE TABLE w (id INT, a INT NOT NULL)
CREATE TABLE p (id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))
CREATE TABLE k (id INT PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 4
CREATE TABLE s (id INT PRIMARY KEY)
CREATE TABLE old (id INT PRIMARY KEY)
CREATE TABLE lost.one (id INT PRIMARY KEY)
""".strip().split("\n")
ROWS = "t u w p k s old".split()
# case of the vectors → kind
KINDS = {
    "add-column": "add column",
    "add-column-first": "add column",
    "add-foreign-key": "add index, foreign key or check",
    "add-partition": "add partition",
    "add-primary-key": "add primary key",
    "alter-database": "alter database",
    "alter-index-invisible": "rename or alter index, alter check",
    "alter-rename": "rename table",
    "auto-id-cache": "table comment, charset, options",
    "change-column-rename": "rename column",
    "create-database": "create database",
    "create-index": "add index, foreign key or check",
    "create-table": "create table",
    "create-table-like": "create table like",
    "create-table-unqualified": "create table",
    "create-unique-index": "add index, foreign key or check",
    "create-view": "views",
    "drop-column": "drop column",
    "drop-database": "drop database",
    "drop-foreign-key": "drop index, foreign key or check",
    "drop-index": "drop index, foreign key or check",
    "drop-partition": "drop or truncate partition",
    "drop-primary-key": "drop primary key",
    "drop-view": "views",
    "modify-column-lossy": "change type",
    "multi-schema-change": "multi-schema change",
    "rename-index": "rename or alter index, alter check",
    "set-default": "set or drop default",
    "table-charset": "table comment, charset, options",
    "truncate-partition": "drop or truncate partition",
    "ttl": "TiFlash, cache, placement, statistics, TTL",
}


@dataclass(frozen=True)
class Kind:
    """A row of the table."""

    name: str
    codes: tuple[int, ...]
    statements: tuple[str, ...]
    effect: str
    stops: tuple[str, ...]


def kinds() -> list[Kind]:
    table = TEXT[TEXT.index("| kind | TiDB |") :].split("\n\n")[0].split("\n")[2:]
    cells = [[c.strip() for c in line[1:-1].split("|")] for line in table]
    assert {len(c) for c in cells} == {8}
    return [Kind(c[0], tuple(int(n) for n in re.findall(r"\d+", c[1])), _quoted(c[2]), c[3], _quoted(c[7])) for c in cells]


def _quoted(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


def window(*statements: tuple[int, str], rows: tuple[str, ...] = (), catalog: Catalog | None = None) -> tuple[Catalog, list[str]]:
    row_schema = RowSchema((SchemaColumn(name="id", type="int", key=True),))
    seen = [ObservedTable(database="shop", table=t, row_schema=row_schema, first_ts=2, last_ts=3, rows=1) for t in rows]
    said = [Statement(commit_ts=ts, database="shop", query=q) for ts, q in statements]
    after, ledger, _ = compile_window(catalog or Catalog(), said, seen, Policy(), of_tidb=True)
    return after, [e.effect for e in ledger]


def before() -> Catalog:
    first = [(1, q) for q in BEFORE] + [(8, "DROP TABLE old"), (8, "DROP DATABASE lost")]
    known, _ = window(*first, rows=tuple(ROWS))
    return window((9, "CREATE TABLE fresh (id INT, a INT NOT NULL)"), catalog=known.opened())[0]


THERE_ALREADY = "CREATE TABLE IF NOT EXISTS t (id INT)"  # its kind has an effect, it has none
ALL = kinds()
ONE_BY_ONE = [(k, q) for k in ALL for q in k.statements]
STOPS = [(k, q) for k in ALL for q in k.stops]


@pytest.mark.parametrize(("kind", "statement"), ONE_BY_ONE, ids=[f"{k.name}: {q}" for k, q in ONE_BY_ONE])
def test_a_statement_has_the_effect_that_its_row_says(kind: Kind, statement: str) -> None:
    was = before()
    after, effects = window((10, statement), catalog=was)
    assert effects == ["no effect" if statement == THERE_ALREADY else kind.effect]
    assert (after != was) == (effects == ["applied"])


@pytest.mark.parametrize(("kind", "statement"), STOPS, ids=[f"{k.name}: {q}" for k, q in STOPS])
def test_a_statement_stops_where_its_row_says_so_and_is_named(kind: Kind, statement: str) -> None:
    with pytest.raises(OrderError) as error:
        window((10, statement), catalog=before())
    assert error.value.exit_code == 3
    assert repr(statement) in error.value.message
    assert "`ignore_ddl = [10]`" in error.value.remedy


def test_every_row_has_a_statement_and_an_effect() -> None:
    assert len({k.name for k in ALL}) == len(ALL)
    assert all(k.statements or k.stops for k in ALL)
    assert {k.effect for k in ALL if k.statements} == {"applied", "no effect"}
    assert {k.effect for k in ALL if not k.statements} == {""}


def test_every_job_type_of_tidb_has_a_row() -> None:
    unused = {46, 48, 66}
    assert {c for k in ALL for c in k.codes} == set(range(1, 74)) - unused


def test_every_kind_of_the_vectors_has_a_row() -> None:
    vectors = json.loads(data_bytes("vectors/ticdc_encoders.json.xz"))
    cases = {v["case"].removeprefix("ddl/") for v in vectors if v["case"].startswith("ddl/") and v["expected"].get("type") == "ddl"}
    assert cases == set(KINDS)
    assert set(KINDS.values()) <= {k.name for k in ALL}


def test_before_is_what_the_page_says() -> None:
    known = before()
    assert [i.name for i in known.alive()] == [f"shop.{t}" for t in ("t", "u", "w", "p", "k", "s", "fresh")]
    assert [i.name for i in known.alive() if i.empty] == ["shop.fresh"]
    assert all(i.from_ts > ALWAYS for i in known.alive())
