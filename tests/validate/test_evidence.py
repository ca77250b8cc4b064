"""Rows that break a rule: what is kept of them, and what the error, the stored verdict and the page say."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.validate.facts import HOSTILE, HOUR, RESOLVED, Page, check, page, published
from tidelake.config.evidence import MOST_CHARACTERS, MOST_ROWS
from tidelake.errors import QualityError
from tidelake.lake.cut import InvalidValue, TableCounts
from tidelake.lake.tables import CHANGELOG_COLUMNS
from tidelake.validate.broken_rows import invalid_rows
from tidelake.validate.quality.evidence import PLACE, UnexpectedRows, cell, first_row, unexpected_rows
from tidelake.validate.quality.report import render
from tidelake.validate.quality.verdict import Verdict


def at(offset: int | None, **columns: Any) -> dict[str, Any]:
    """A row of a changelog, without message if offset is None."""
    topic, partition = ("t", 0) if offset is not None else (None, None)
    message = dict(zip(PLACE, (RESOLVED, topic, partition, offset, 0 if offset is not None else None), strict=True))
    return columns | message | {"_change_type": "INSERT"}


def some(*rows: dict[str, Any], key: tuple[str, ...] = ("id",), judged: tuple[str, ...] = ("price",)) -> UnexpectedRows:
    found = unexpected_rows([*key, *PLACE], judged, rows)
    assert found is not None
    return found


def test_the_place_of_a_row_is_in_columns_of_the_changelog() -> None:
    assert set(PLACE) < {c.name for c in CHANGELOG_COLUMNS}


def test_rows_have_the_members_that_great_expectations_writes() -> None:
    assert json.loads(some(at(7, id=2, price=Decimal("-1.50"), note="left out")).model_dump_json()) == {
        "unexpected_index_column_names": ["id", "_commit_ts", "_topic", "_kafka_partition", "_offset", "_ordinal"],
        "partial_unexpected_index_list": [
            {"id": 2, "_commit_ts": RESOLVED, "_topic": "t", "_kafka_partition": 0, "_offset": 7, "_ordinal": 0, "price": "-1.50"}
        ],
        "partial_unexpected_list": ["-1.50"],
    }


def test_rows_are_in_the_order_of_their_events_and_no_more_than_a_few() -> None:
    found = some(*(at(n, id=n, price=-n) for n in reversed(range(MOST_ROWS + 5))))
    assert [r["_offset"] for r in found.partial_unexpected_index_list] == list(range(MOST_ROWS))
    assert found.partial_unexpected_list == [-n for n in range(MOST_ROWS)]


def test_no_row_is_no_evidence() -> None:
    assert unexpected_rows(["id", *PLACE], ["price"], []) is None


def test_a_rule_of_several_columns_has_a_value_of_each() -> None:
    assert some(at(1, id=1, a=1, b=None), judged=("a", "b")).partial_unexpected_list == [{"a": 1, "b": None}]


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (None, None),
        (True, True),
        ((1 << 63) - 1, (1 << 63) - 1),
        (0.5, 0.5),
        (math.nan, "nan"),
        (math.inf, "inf"),
        (Decimal("18446744073709551615"), "18446744073709551615"),
        (b"\x00\xff", "0x00ff"),
        (b"\x01" * 500, "0x" + "01" * (MOST_CHARACTERS // 2 - 1) + "…"),
        ("a" * MOST_CHARACTERS, "a" * MOST_CHARACTERS),
        ("a" * MOST_CHARACTERS + "b", "a" * MOST_CHARACTERS + "…"),
        (date(2026, 1, 5), "2026-01-05"),
        (datetime(2026, 1, 5, 10, tzinfo=UTC), "2026-01-05 10:00:00+00:00"),
        ([1.0, -2.5], "[1.0, -2.5]"),
    ],
)
def test_a_value_is_kept_exactly_as_json_or_text_and_long_text_is_cut_off(value: object, kept: object) -> None:
    assert cell(value) == kept
    assert json.loads(json.dumps(cell(value), allow_nan=False)) == kept


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (some(at(7, id=2, price=-1), at(8, id=3, price=-2)), "-1 of id=2 at t[0]@7"),
        (some(at(7, id=None, part="x"), key=("id", "part"), judged=("id", "part")), "id=NULL, part='x' at t[0]@7"),
        (some(at(7, id=2, a=1, b="z"), judged=("a", "b")), "a=1, b='z' of id=2 at t[0]@7"),
        (some(at(7, price="12,5\n"), key=()), r"'12,5\n' at t[0]@7"),
        (some(at(7, id=2), judged=("_commit_ts",)), "id=2 at t[0]@7"),
        (some(at(7), key=(), judged=("_commit_ts",)), "a row at t[0]@7"),
        (some(at(None, id=2, price=-1)), "-1 of id=2"),
    ],
)
def test_the_first_row_is_one_line(found: UnexpectedRows, said: str) -> None:
    assert first_row(found) == said


def refused(**more: Any) -> QualityError:
    with pytest.raises(QualityError) as error:
        Verdict(feed="shop", hour=HOUR, seq=1, run="r", checks=[check(False, expected="none", observed="2 rows", **more)]).refuse()
    return error.value


def test_the_error_says_the_first_row_and_what_lets_it_pass() -> None:
    error = refused(result=some(at(7, id=2, price=-1), at(8, id=3, price=-2)), examples=["-1", "-2"], remedy="set x")
    assert "found 2 rows, such as -1 of id=2 at t[0]@7; nothing of the window is published" in error.message
    assert "id=3" not in error.message
    assert error.remedy.endswith("; set x, then run the hour again")


def test_the_error_of_a_rule_that_is_not_about_rows_says_a_value_or_nothing() -> None:
    assert "found 2 rows, such as x; nothing of" in refused(examples=["x", "y"]).message
    assert "found 2 rows; nothing of" in refused().message


def test_a_stored_verdict_keeps_its_rows_and_a_passed_check_has_no_member_for_them() -> None:
    kept = Verdict(feed="shop", hour=HOUR, seq=1, run="r", checks=[check(), check(False, result=some(at(7, id=2, price="x")))])
    assert Verdict.model_validate_json(kept.model_dump_json()) == kept
    said = kept.summary()["checks"]
    assert isinstance(said, list)
    assert [("result" in c) for c in said] == [False, True]


def shown(found: UnexpectedRows, unexpected: int = 1, **more: Any) -> Page:
    return page(published(checks=[check(False, column="price", unexpected=unexpected, result=found, **more)]))


def test_the_page_shows_rows_below_their_rule_with_key_value_message_and_time() -> None:
    words = shown(some(at(7, id=1234567, price="12,5x")), examples=["not shown twice"], remedy='set [columns."d.k".price] x').words
    assert "All rows that break the rule id price Message Commit ts 1234567 12,5x t[0]@7 2026-01-05 10:59:56.593Z" in words
    assert 'What to do: set [columns."d.k".price] x' in words
    assert "not shown twice" not in words


def test_the_page_says_whether_there_are_more_rows() -> None:
    assert "Some rows that break the rule" in shown(some(at(7, id=1, price=1)), 2).words


def test_null_is_not_the_text_null() -> None:
    source = render(published(checks=[check(False, result=some(at(7, id="NULL", price=None)))]), [])
    assert '<td><span class="muted">NULL</span></td>' in source
    assert "<td><code><bdi>NULL</bdi></code></td>" in source


def test_a_row_without_message_says_so_and_one_of_a_table_without_key_has_its_message() -> None:
    assert "id price Message Commit ts 2 -1 – 2026-01-05" in shown(some(at(None, id=2, price=-1))).words
    assert "break the rule price Message Commit ts -1 t[0]@7 2026-01-05" in shown(some(at(7, price=-1), key=())).words


def test_rows_of_own_sql_have_the_columns_that_the_query_chose() -> None:
    found = unexpected_rows(["id"], ["total"], [{"id": 4, "total": 9}])
    assert found is not None
    words = shown(found).words
    assert "break the rule id total 4 9" in words
    assert "Message" not in words.partition("break the rule")[2].partition("Conversions")[0]


def test_hostile_names_and_values_do_not_become_markup() -> None:
    row = at(7) | {"_topic": HOSTILE, HOSTILE: HOSTILE, "price": f"\u202e{HOSTILE}"}
    found = some(row, key=(HOSTILE,))
    taken = shown(found, remedy=HOSTILE)
    assert taken.elements("script") == []
    assert "\u202e" not in taken.source
    assert taken.words.count(HOSTILE) == 5  # name, key, value, topic, remedy


def test_values_that_do_not_fit_are_rows_with_the_key_as_it_was_sent() -> None:
    value = InvalidValue(cell="12,5x", key={"id": "2"}, topic="t", partition=1, offset=7, ordinal=0, commit_ts=RESOLVED)
    found = invalid_rows(TableCounts(invalid_values={"price": 1}, invalid_value_examples={"price": [value]}), "price")
    assert found is not None
    assert first_row(found) == "'12,5x' of id='2' at t[1]@7"
    assert invalid_rows(TableCounts(invalid_values={"price": 1}), "price") is None
