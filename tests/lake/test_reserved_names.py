"""Source columns that are called like columns of the lake's own, of Iceberg or of the queries: renamed by one rule, everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tidelake
from tests.lake import lakes
from tests.lake.histories import ddl, publish, publish_again, resolved, row, row_schema, rows_of
from tests.lake.lakes import incarnation, with_columns
from tests.lake.windows import opened, table
from tidelake.config.feed import TablePolicy
from tidelake.config.lake_paths import RESERVED_COLUMNS, column_name
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.incarnations import ALWAYS, Column
from tidelake.lake.opened import Lake
from tidelake.lake.tables import CHANGELOG_COLUMNS, PARTIAL, create_snapshot, reshape
from tidelake.query.asof import life_at
from tidelake.query.diff import differences
from tidelake.query.frames import scd2
from tidelake.query.verify.cell_texts import SourceCell
from tidelake.query.verify.table import plan_of

NAMES = ("_change_type", "_OFFSET", "_offset__src", "_partial", "_pos", "_at", "_valid_from")
SENT = ("id", *NAMES)
WIDE = row_schema("id bigint", *(f"{name} varchar" for name in NAMES))
NEWER = row_schema("id bigint", *(f"{name.replace('_pos', 'pos')} varchar" for name in NAMES), "_topic varchar")
TEXT = row_schema("_change_type varchar", "_n varchar", key=())
SQL = (
    f"CREATE TABLE d.k (id BIGINT PRIMARY KEY, {', '.join(f'{name} VARCHAR(20)' for name in NAMES)});"
    "CREATE TABLE d.m (_change_type VARCHAR(20), _n VARCHAR(20)); CREATE TABLE d.b (_commit_ts BIGINT PRIMARY KEY, _commit_ts_bucket INT);"
)
BUCKETED = row_schema("_commit_ts bigint", "_commit_ts_bucket int", key=("_commit_ts",))
HERE = ("id", "_change_type__src", "_OFFSET__src", "_offset__src__src", "_partial__src", "_pos__src", "_at__src", "_valid_from__src")
NOW = (*(name.replace("_pos__src", "pos") for name in HERE), "_topic__src")


def values(id: str, v: str) -> tuple[str, ...]:
    return (id, *(f"{v}{n}" for n in range(len(NAMES))))


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("id", "id"),
        ("_id", "_id"),
        ("_offset", "_offset__src"),
        ("_OffSet", "_OffSet__src"),
        ("_offset__SRC", "_offset__SRC__src"),
        ("a__src", "a__src"),
        ("__src", "__src"),
        ("_offset__5", "_offset__5"),
    ],
)
def test_a_reserved_name_gets_a_suffix_and_so_does_what_would_meet_it_then(name: str, here: str) -> None:
    assert (column_name(name), Column(id=1, name=name, type=MysqlType("int")).lake_name) == (here, here)


def test_different_columns_keep_different_names_in_any_case() -> None:
    names = [f"{plain}{'__src' * n}" for plain in ("_offset", "_at", "x") for n in range(4)]
    assert len({column_name(n).lower() for n in names}) == len(names)
    assert not {column_name(n).lower() for n in names} & RESERVED_COLUMNS


def test_all_columns_of_the_lakes_own_and_of_its_queries_are_reserved() -> None:
    written = re.compile(r"""\bAS (_[a-z]\w*)\b|(?:alias|withColumn)\("(_[a-z]\w*)""")
    of_columns = ("compact/filled_table", "publish/replace", "query/asof", "query/diff", "query/scd2", "order/exchanged_rows")
    queries = [Path(folder) / f"{name}.py" for folder in tidelake.__path__ for name in of_columns]  # others query events, or keys alone
    found = {(path.name, a or b) for path in queries for a, b in written.findall(path.read_text())}
    assert {("scd2.py", "_row"), ("replace.py", "_n")} <= found
    assert {name for _, name in found} - {"_k", "_h"} <= RESERVED_COLUMNS  # DuckDB's tables of hashes in diff
    assert {c.name for c in (*CHANGELOG_COLUMNS, PARTIAL)} <= RESERVED_COLUMNS


def test_a_column_called_like_the_partition_field_of_another_one_is_no_trouble(tmp_path: Path) -> None:
    feed, catalog = lakes.feed(tmp_path), lakes.catalog(tmp_path)
    i = incarnation(id="bigint", id_bucket="int")
    made = create_snapshot(catalog, feed, i, "d.t", 4)
    assert [str(f) for f in made.table.spec().fields] == ["1000: tidelake_bucket: bucket[4](1)"]
    added = Column(id=3, name="tidelake_bucket", type=MysqlType("int"), since_ts=5)
    shaped = reshape(catalog, feed, with_columns(i, *i.columns, added), made)
    assert shaped is not None
    assert [c.name for c in shaped[0].columns()] == ["id", "id_bucket", "tidelake_bucket__src", "_commit_ts"]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, small_hours: None) -> Iterator[Lake]:
    """Two cuts: columns are renamed to and from a reserved name, and one is added, between them."""
    with opened(tmp_path_factory.mktemp("reserved"), SQL, tables={"d.k": TablePolicy(buckets=2)}) as (feed, lake):
        first = [
            row(0, "insert", 10, WIDE, values("1", "a")),
            row(0, "insert", 11, WIDE, values("2", "a")),
            row(0, "update", 12, WIDE, values("2", "b"), values("2", "a")),
            row(0, "insert", 13, TEXT, ("x", "1"), table="m"),
            row(0, "insert", 14, TEXT, ("x", "1"), table="m"),
            row(0, "insert", 14, BUCKETED, ("1", "1"), table="b"),
        ]
        second = [
            *ddl(20, "ALTER TABLE k RENAME COLUMN _pos TO pos, ADD COLUMN _topic VARCHAR(20) DEFAULT 'none'"),
            row(0, "update", 21, NEWER, (*values("2", "c"), "t"), (*values("2", "b"), "none")),
            row(0, "delete", 22, TEXT, None, ("x", "1"), table="m"),
            row(0, "update", 23, BUCKETED, ("1", "2"), ("1", "1"), table="b"),
        ]
        hours = [feed.add(lake, [*first, *resolved(15)]), feed.add(lake, [*second, *resolved(30)])]
        for hour in hours:
            publish(lake, hour)
        yield lake
        assert publish_again(lake, hours[1], hours[0])[1] == {}


def test_rows_stand_under_the_new_names_at_cuts_and_between_them(lake: Lake) -> None:
    assert rows_of(lake, "d.k", 15) == table(values("1", "a"), values("2", "b"), names=HERE)
    assert rows_of(lake, "d.k", 11) == table(values("1", "a"), values("2", "a"), names=HERE)
    assert rows_of(lake, "d.k") == table((*values("1", "a"), "none"), (*values("2", "c"), "t"), names=NOW)
    assert rows_of(lake, "d.m") == table(("x", "1"), names=("_change_type__src", "_n__src"))
    assert rows_of(lake, "d.b") == table(("1", "2"), names=("_commit_ts__src", "_commit_ts_bucket"))


def test_a_snapshot_of_a_version_that_reserved_fewer_names_is_still_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Column, "lake_name", property(lambda c: f"{column_name(c.name)}__newer"))
    assert rows_of(lake, "d.m") == table(("x", "1"), names=("_change_type__src__newer", "_n__src__newer"))


def test_changelog_versions_and_diff_have_the_same_names(lake: Lake) -> None:
    assert {c.name for c in lake.catalog.load("d_changelog.k").columns() if c.source_id is not None} == set(NOW)
    versions = scd2(lake.spark, lake.feed, "d.k").collect()
    assert {(r["id"], r["_at__src"], r["_valid_from_ts"]) for r in versions} == {(1, "a5", 10), (2, "a5", 11), (2, "b5", 12), (2, "c5", 21)}
    (found,) = differences(lake, "d.k", 15, 30)
    assert (found.changed, found.columns_added) == (1, ("_topic__src",))


def test_verify_asks_the_source_by_its_names_and_the_lake_by_its_own(lake: Lake) -> None:
    _, life = life_at(lake, "d.k", None)
    plan, *_ = plan_of(lake.feed, life, "d.k", 30, SourceCell.tidb)
    assert plan is not None
    (offset,) = (t for t in plan.texts if t.name == "_OFFSET")
    assert "`_OFFSET`" in offset.upstream
    assert '"_OFFSET__src"' in offset.here
    assert life.from_ts == ALWAYS
