"""A window that expectations refuse: its rows in the error, the stored verdict and the report, under the masks of their columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lake.histories import Feeder, Message, publish, resolved, row, row_schema
from tests.lake.windows import TEXT, opened
from tidelake.config.feed import ColumnPolicy
from tidelake.config.lake_paths import quality_key, report_key, run_key
from tidelake.config.policy import Policy
from tidelake.errors import QualityError
from tidelake.io.printable import printable_lines
from tidelake.lake.opened import Lake

SQL = (
    "CREATE TABLE d.k (id BIGINT PRIMARY KEY, mail VARCHAR(40), note VARCHAR(40), pin INT, price DECIMAL(10,2)); CREATE TABLE d.m (v TEXT);"
)
SENT = row_schema("id bigint", "mail varchar", "note varchar", "pin int", "price decimal")
KEY = "a key of more than 16 bytes"
MASKED = {
    "d.k": {
        "id": ColumnPolicy(mask="hash"),
        "mail": ColumnPolicy(mask="hash"),
        "note": ColumnPolicy(mask="truncate(3)"),
        "pin": ColumnPolicy(mask="null"),
    }
}
CLEAR = ("7654321", "ann@example.com", "a secret note", "987123")
RULES = """
[[expect]]
type = "expect_column_values_to_match_regex"
column = "mail"
regex = "^x"

[[expect]]
type = "expect_column_value_lengths_to_be_between"
column = "note"
max_value = 1

[[expect]]
type = "expect_column_values_to_not_be_null"
column = "pin"

[[expect]]
type = "expect_column_values_to_be_between"
column = "price"
max_value = 100

[[expect]]
type = "unexpected_rows_expectation"
unexpected_rows_query = "SELECT * FROM {batch} WHERE price > 100"

[[expect]]
type = "expect_table_row_count_to_be_between"
min_value = 5
"""


def refused(feed: Feeder, lake: Lake, messages: list[Message], rules: str, table: str = "d.k") -> tuple[QualityError, dict[str, str]]:
    """The error of an hour, and what its run wrote: the verdict, the report's JSON and its page."""
    (feed.feed.folder / "expectations").mkdir()
    (feed.feed.folder / "expectations" / f"{table}.toml").write_text(rules)
    hour = feed.add(lake, [*messages, *resolved(50)])
    with pytest.raises(QualityError) as error:
        publish(lake, hour)
    keys = {"verdict": run_key("shop", 1, "validate"), "facts": quality_key("shop", hour), "page": report_key("shop", hour)}
    return error.value, {name: lake.store.read(key).decode() for name, key in keys.items()}


@pytest.mark.usefixtures("small_hours")
def test_a_refused_window_shows_its_rows_everywhere_and_masked_columns_only_under_their_masks(tmp_path: Path) -> None:
    sent = [row(0, "insert", 10, SENT, (*CLEAR, "12.50")), row(0, "insert", 11, SENT, (*CLEAR[:-1], None, "999.00"))]
    with opened(tmp_path, SQL, columns=MASKED, policy=Policy(mask_key=KEY)) as (feed, lake):
        error, written = refused(feed, lake, sent, RULES)
        (changelog,) = [n for n in lake.catalog.tables("d_changelog") if n.endswith(".k")]
        staged = lake.catalog.load(changelog)
        kept = staged.scan({}, ["id", "mail"], staged.branch(staged.branches[0])).read_all().to_pylist()
    (hashed,) = {r["id"] for r in kept}
    (mail,) = {r["mail"] for r in kept}
    assert len(hashed) == len(mail) == 64

    checks = {(c["rule"], c["column"]): c for c in json.loads(written["verdict"])["checks"] if not c["success"]}
    places = {rule: [r["_offset"] for r in c["result"]["partial_unexpected_index_list"]] for rule, c in checks.items() if c["result"]}
    assert places == {
        ("column values to match regex", "mail"): [0, 1],
        ("column value lengths to be between", "note"): [0, 1],
        ("column values to not be null", "pin"): [0, 1],
        ("column values to be between", "price"): [1],
        ("unexpected rows expectation", None): [1],
    }
    assert set(checks) - set(places) == {("table row count to be between", None)}
    price = checks["column values to be between", "price"]["result"]
    event = {"_commit_ts": 11, "_topic": "t", "_kafka_partition": 0, "_offset": 1, "_ordinal": 0}
    assert price == {
        "unexpected_index_column_names": ["id", *event],
        "partial_unexpected_index_list": [{"id": hashed} | event | {"price": "999.00"}],
        "partial_unexpected_list": ["999.00"],
    }
    assert checks["column value lengths to be between", "note"]["result"]["partial_unexpected_list"] == ["a s", "a s"]
    assert checks["column values to match regex", "mail"]["result"]["partial_unexpected_list"] == [mail, mail]
    assert [c for c in json.loads(written["facts"])["checks"] if not c["success"]] == list(checks.values())
    assert written["page"].count("t[0]@1") >= 5

    first = f"such as 'a s' of id='{hashed}' at t[0]@0 (and "
    assert first in error.message
    assert "\n" not in printable_lines(str(error))
    rules = feed.feed.folder / "expectations" / "d.k.toml"
    assert f'({rules}: [[expect]] 2). To publish such rows with a warning, set severity = "warning" in the rule' in error.remedy
    for clear in CLEAR:
        assert not [name for name, text in (written | {"error": str(error)}).items() if clear in text], clear


@pytest.mark.usefixtures("small_hours")
def test_a_row_of_a_table_without_key_is_shown_by_its_value_and_its_message(tmp_path: Path) -> None:
    rule = '[[expect]]\ntype = "expect_column_values_to_match_regex"\ncolumn = "v"\nregex = "^a"\n'
    sent = [row(0, "insert", 10, TEXT, ("a",), table="m"), row(0, "insert", 11, TEXT, ("b",), table="m")]
    with opened(tmp_path, SQL) as (feed, lake):
        error, written = refused(feed, lake, sent, rule, "d.m")
    (check,) = [c for c in json.loads(written["verdict"])["checks"] if not c["success"]]
    assert check["result"]["partial_unexpected_index_list"] == [
        {"_commit_ts": 11, "_topic": "t", "_kafka_partition": 0, "_offset": 1, "_ordinal": 0, "v": "b"}
    ]
    assert "found 1 bad value among 2 (50 %), such as 'b' at t[0]@1; nothing of the window is published" in error.message


@pytest.mark.usefixtures("small_hours")
def test_null_in_a_key_is_shown_with_its_event(tmp_path: Path) -> None:
    sent = [row(0, "insert", 10, SENT, ("1", "a", "b", "1", "1.00")), row(0, "insert", 11, SENT, (None, "a", "b", "1", "1.00"))]
    with opened(tmp_path, SQL) as (feed, lake):
        error, _ = refused(feed, lake, sent, "")
    assert error.message == (
        "d.k: key not null: expected no NULL in the key, found 1 row, such as id=NULL at t[0]@1; nothing of the window is published"
    )
    assert "correct the rows at the source, or the key of d.k in tables.sql" in error.remedy
