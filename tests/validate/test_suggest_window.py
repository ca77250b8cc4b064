"""Suggested files load, and the hours that they came from pass them."""

from __future__ import annotations

import tomllib
from datetime import timedelta
from pathlib import Path

import pytest

from tests.lake.histories import Feeder, Message, ddl, publish, publish_again, resolved, row, row_schema
from tests.lake.windows import opened
from tidelake.config.feed import ColumnPolicy
from tidelake.config.policy import Policy
from tidelake.history.contract import read_expectations
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.opened import Lake
from tidelake.tso import begin_ts, format_hour, from_ms, parse_hour
from tidelake.validate.quality.applicable import check_rules
from tidelake.validate.quality.judge import check_expectation
from tidelake.validate.suggest.suggest import SuggestedFile, suggest, tables_of

SQL = """CREATE TABLE d.k (id BIGINT UNSIGNED, part INT, kind ENUM('a','b','c'), price DECIMAL(10,2), weight DOUBLE, day DATE,
made DATETIME, seen TIMESTAMP, grade VARCHAR(9), note VARCHAR(40), mail VARCHAR(40), doc JSON,
offset BIGINT, `_commit_ts` INT, PRIMARY KEY (id, part));
CREATE TABLE d.m (v VARCHAR(20)); CREATE TABLE d.empty (id INT PRIMARY KEY);"""
SENT = row_schema(
    "id bigint unsigned",
    "part int",
    "kind enum",
    "price decimal",
    "weight double",
    "day date",
    "made datetime",
    "seen timestamp",
    "grade varchar",
    "note varchar",
    "mail varchar",
    "doc json",
    "offset bigint",
    "_commit_ts int",
    key=("id", "part"),
)
HOURS = ("2026-01-05T10", "2026-01-05T11")


def values(n: int, price: str = "12.50") -> tuple[str | None, ...]:
    """A row of d.k."""
    day = f"2025-03-{n % 28 + 1:02d}"
    kind, grade = str(n % 2 + 1), ("new", "used", 'so "so"', None)[n % 4]
    texts = (f"note {n}" if n % 3 else None, f"person{n}@example.com", f'{{"n": {n}}}', str(-n), "7")
    return (str(n + 2**63), "1", kind, price, f"{n}.25", day, f"{day} 10:00:00", f"{day} 11:00:00", grade, *texts)


def hour(feed: Feeder, lake: Lake, name: str, first: int) -> str:
    """An hour of 60 inserts, some updates and deletes."""
    at, end = begin_ts(parse_hour(name)), begin_ts(parse_hour(name) + timedelta(hours=1))
    sent: list[Message] = [row(0, "insert", at + n, SENT, values(first + n)) for n in range(60)]
    sent += [row(0, "update", at + 100 + n, SENT, values(first + n, "999.00"), values(first + n)) for n in range(5)]
    sent += [row(0, "update", at + 200 + n, SENT, values(first + n, "3.00"), values(first + n, "999.00")) for n in range(5)]
    sent += [row(0, "delete", at + 300 + n, SENT, None, values(first + 50 + n)) for n in range(3)]
    sent += [row(0, "insert", at + 400 + n, row_schema("v varchar", key=()), ("x",), table="m") for n in range(25)]
    return feed.add(lake, [*sent, *resolved(end - from_ms(1000))])


def files(lake: Lake) -> dict[str, SuggestedFile]:
    cut, tables = tables_of(lake, None)
    return {i.name: suggest(lake, cut, i, 48) for i in tables}


@pytest.mark.usefixtures("small_hours")
def test_a_suggested_file_loads_and_the_hours_that_it_came_from_pass_it(tmp_path: Path) -> None:
    masks = {"d.k": {"mail": ColumnPolicy(mask="hash"), "part": ColumnPolicy()}}
    with opened(tmp_path, SQL, columns=masks, policy=Policy(mask_key="a key of more than 16 bytes")) as (feed, lake):
        for n, name in enumerate(HOURS):
            publish(lake, hour(feed, lake, name, 100 * n))
        found = files(lake)
        folder = feed.feed.folder / "expectations"
        folder.mkdir()
        for f in found.values():
            (folder / f"{f.stem}.toml").write_text(f.text)
        rules = read_expectations(feed.feed.folder)
        check_rules(feed.feed)
        for rule in rules:
            check_expectation(rule)
        cut, _ = publish_again(lake, HOURS[1], HOURS[1])
        certificate = read_certificate(lake.store, "shop", cut.seq)
    judged = [c for c in certificate["expectations"]["checks"] if ": [[expect]] " in c.get("origin", "")]
    assert [c for c in judged if not c["success"]] == []
    assert len(judged) == len(rules) == sum(len(tomllib.loads(f.text)["expect"]) for f in found.values() if f.rules)

    k = found["d.k"]
    by_column = {(r.type.removeprefix("expect_"), r.arguments.get("column")): r.arguments for r in k.rules}
    assert by_column["compound_columns_to_be_unique", None]["column_list"] == ["id", "part"]
    assert by_column["column_values_to_be_in_set", "kind"]["value_set"] == ["a", "b", "c"]
    assert by_column["column_values_to_be_in_set", "grade"]["value_set"] == ["new", 'so "so"', "used"]
    assert by_column["column_values_to_be_between", "price"] == {"column": "price", "min_value": 0, "max_value": 2000}
    assert by_column["column_values_to_be_between", "offset"]["min_value"] == -500
    assert ("column_values_to_not_be_null", "_commit_ts__src") in by_column
    assert ("column_values_to_not_be_null", "note") not in by_column
    counts = [r for r in k.rules if r.type == "expect_table_row_count_to_be_between"]
    assert [r.seen.partition(" in each")[0] for r in counts] == [
        "new rows: 70 to 70",
        "inserts: 60 to 60",
        "updates: 10 to 10",
        "deletes: 3 to 3",
    ]
    assert "mail: masked (hash), nothing is suggested of its values" in k.text
    assert not [r for r in k.rules if "mail" in str(r.arguments)]
    assert "example.com" not in k.text
    assert found["d.empty"].rules == []
    assert "# nothing is suggested: a rule of values needs 20 rows" in found["d.empty"].text
    assert [r.type for r in found["d.m"].rules][:2] == ["expect_column_values_to_not_be_null", "expect_column_values_to_be_in_set"]


@pytest.mark.usefixtures("small_hours")
def test_a_column_that_was_masked_when_its_rows_were_written_reveals_nothing_after_its_mask_is_removed(tmp_path: Path) -> None:
    with opened(tmp_path, SQL, columns={"d.k": {"grade": ColumnPolicy(mask="truncate(1)")}}) as (feed, lake):
        publish(lake, hour(feed, lake, HOURS[0], 0))
        lake.feed = lake.feed.model_copy(update={"columns": {}})
        k = files(lake)["d.k"]
    assert "grade: masked (when its rows were written)" in k.text
    assert not [r for r in k.rules if r.arguments.get("column") == "grade"]


@pytest.mark.usefixtures("small_hours")
def test_a_renamed_column_is_suggested_by_its_present_name(tmp_path: Path) -> None:
    with opened(tmp_path, SQL) as (feed, lake):
        publish(lake, hour(feed, lake, HOURS[0], 0))
        at = begin_ts(parse_hour(HOURS[1]))
        statement = ddl(at + 1, "ALTER TABLE d.k RENAME COLUMN grade TO quality")
        publish(lake, feed.add(lake, [*statement, *resolved(at + from_ms(3_000_000))]))
        k = files(lake)["d.k"]
        (feed.feed.folder / "expectations").mkdir()
        (feed.feed.folder / "expectations" / "d.k.toml").write_text(k.text)
        check_rules(feed.feed)
    later = {r.arguments.get("column"): r.arguments.get("later", False) for r in k.rules}
    assert "grade" not in later
    assert (later["quality"], later["price"]) == (True, False)
    assert {e.later for e in read_expectations(feed.feed.folder) if e.arguments.get("column") == "quality"} == {True}
    assert format_hour(parse_hour(HOURS[1])) in k.text
