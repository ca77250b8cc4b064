"""What a window that values block says: the values, their rows and messages, and the setting that lets them pass."""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Any

import pytest

from tests.lake.histories import Feeder, publish, resolved, row, row_schema, rows_of
from tests.lake.windows import opened, table
from tests.logged import log_calls
from tidelake.config.feed import ColumnPolicy
from tidelake.config.policy import Policy
from tidelake.errors import QualityError
from tidelake.lake.opened import Lake
from tidelake.run import order
from tidelake.tso import parse_hour
from tidelake.validate.invalid_setting import setting

SQL = "CREATE TABLE d.k (id BIGINT PRIMARY KEY, mail VARCHAR(20), price DECIMAL(10,2), paid DATE);"
SENT = row_schema("id bigint", "mail varchar", "price decimal", "paid date")
MASKED = {"d.k": {"mail": ColumnPolicy(mask="hash"), "id": ColumnPolicy(mask="hash")}}
KEY = "a key of more than 16 bytes"


def heard(feed: Feeder) -> tuple[str, list[str]]:
    """The error of an hour whose values do not fit, and what running it told."""
    told: list[str] = []
    rows = [
        row(0, "insert", 10, SENT, ("1", "a@b.c", "12.50", "0000-00-00")),
        row(0, "insert", 11, SENT, ("2", "a@b.c", "12,5x", "2026-01-05")),
        row(0, "update", 12, SENT, ("1", "a@b.c", "1.005\n", "0000-00-00"), ("1", "a@b.c", "12.50", "0000-00-00")),
    ]
    with log_calls(lambda stage, what: told.append(f"{stage}: {what}")), Lake.of(feed.feed) as lake:
        hour = feed.add(lake, [*rows, *resolved(15)])
        with pytest.raises(QualityError) as refused:
            publish(lake, hour)
    return str(refused.value), told


@pytest.mark.usefixtures("small_hours")
def test_a_value_that_does_not_fit_is_shown_with_its_row_and_the_setting_that_lets_it_pass(tmp_path: Path) -> None:
    with opened(tmp_path, SQL) as (feed, _):
        error, told = heard(feed)
        assert error.startswith(
            "EXPECTATION_FAILED: d.k.price: types parsed: expected every value fits its type, found 2 values that do not, "
            "such as '12,5x' of id='2' at t[0]@1; nothing of the window is published; "
        )
        assert (
            'set [columns."d.k".price] invalid_values = "null" in feed.toml, or "string" (docs/types.md), then run the hour again' in error
        )
        assert "order: d.k: 4 changes, 3 zero dates become NULL, 2 values do not fit" in told
        assert not [t for t in told if "Failed to parse" in t]
        settled: dict[str, Any] = {"columns": {"d.k": {"price": ColumnPolicy(invalid_values="null")}}}
        with Lake.of(feed.feed.model_copy(update=settled)) as again:
            publish(again, "2026-01-05T10")
            names = ("id", "mail", "price", "paid")
            assert rows_of(again, "d.k") == table(("1", "a@b.c", None, None), ("2", "a@b.c", None, "2026-01-05"), names=names)


@pytest.mark.usefixtures("small_hours")
def test_a_masked_key_is_shown_under_its_mask(tmp_path: Path) -> None:
    with opened(tmp_path, SQL, columns=MASKED, policy=Policy(mask_key=KEY)) as (feed, _):
        error, _ = heard(feed)
    assert f"'12,5x' of id='{hmac.digest(KEY.encode(), b'2', 'sha256').hex()}'" in error
    assert "a@b.c" not in error


@pytest.mark.parametrize(
    ("table", "column", "said"),
    [
        ("d.k", "c", '[columns."d.k".c] invalid_values = "null"'),
        ('d.a"b', "a b", '[columns."d.a\\"b"."a b"] invalid_values = "null"'),
    ],
)
def test_the_setting_is_toml(table: str, column: str, said: str) -> None:
    assert setting(table, column, "null") == said


@pytest.mark.usefixtures("small_hours")
def test_a_lost_value_is_counted_once_for_each_row_of_the_changelog(tmp_path: Path) -> None:
    zero, day = ("1", "a@b.c", "1.00", "0000-00-00"), ("1", "a@b.c", "1.00", "2026-01-05")
    rows = [
        row(0, "insert", 10, SENT, day),
        row(0, "update", 11, SENT, zero),  # as Avro sends updates: without the row before
        row(0, "update", 12, SENT, day, zero),
    ]
    with opened(tmp_path, SQL) as (feed, lake):
        staged = order(lake, parse_hour(feed.add(lake, [*rows, *resolved(15)]))).staged
        assert staged is not None
        counts = staged.counts["d.k@-1"]
    assert (counts.changes, counts.nulled_zero_dates) == (4, {"paid": 2})
