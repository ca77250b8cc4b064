"""Suggested expectations: what a profile leads to, and the TOML that is written of it."""

from __future__ import annotations

import tomllib
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tidelake.tso import from_ms
from tidelake.validate.suggest.profile import MOST_VALUES, ColumnProfile, TableProfile
from tidelake.validate.suggest.rules import Described, Suggested, above, suggested
from tidelake.validate.suggest.text import as_toml

BETWEEN = "expect_column_values_to_be_between"
IN_SET = "expect_column_values_to_be_in_set"
NOT_NULL = "expect_column_values_to_not_be_null"
ROW_COUNT = "expect_table_row_count_to_be_between"


def rules(values: list[Any], kind: pa.DataType | None = None, **described: Any) -> dict[str, dict[str, Any]]:
    """What is suggested of a column with these values, in batches of seven."""
    profile = TableProfile(columns={1: ColumnProfile()})
    for start in range(0, len(values), 7):
        profile.add_published(pa.RecordBatch.from_arrays([pa.array(values[start : start + 7], kind)], ["c"]), {1: "c"})
    found = suggested(profile, {1: Described(name="c", **described)})
    return {r.type: {k: v for k, v in r.arguments.items() if k != "column"} for r in found}


def test_a_column_without_null_is_suggested_to_have_none() -> None:
    assert NOT_NULL in rules(["x"] * 30)
    assert NOT_NULL not in rules(["x"] * 30 + [None])
    assert rules(["x"] * 19) == {}


@pytest.mark.parametrize(
    ("values", "limits"),
    [
        (list(range(3, 400)), {"min_value": 0, "max_value": 1000}),
        (list(range(-7, 40)), {"min_value": -20, "max_value": 100}),
        ([-n for n in range(1, 30)], {"min_value": -100, "max_value": 0}),
        ([n / 100 for n in range(30)], {"min_value": 0, "max_value": 1}),
        ([Decimal(n) / 8 for n in range(100)], {"min_value": 0, "max_value": 50}),
        ([date(2025, 3, n) for n in range(1, 31)], {"min_value": date(2024, 1, 1)}),
        ([datetime(2025, 1, 1, n % 24) for n in range(30)], {"min_value": datetime(2024, 1, 1)}),  # noqa: DTZ001
    ],
)
def test_numbers_and_times_get_round_limits_with_room(values: list[Any], limits: dict[str, Any]) -> None:
    assert rules(values)[BETWEEN] == limits


def test_the_key_has_no_upper_limit_and_odd_floats_have_none() -> None:
    assert rules(list(range(1, 400)), key=True)[BETWEEN] == {"min_value": 0}
    assert BETWEEN not in rules([float(n) for n in range(30)] + [float("nan")])
    assert BETWEEN not in rules([None] * 30, pa.int64())


@pytest.mark.parametrize(
    ("value", "limit"),
    [
        (0, 0),
        (-3, 0),
        (1, 2),
        (2, 5),
        (5, 10),
        (0.3, 1),
        (0.04, 0.1),
        (999, 2000),
        (2**64, 5e19),
        (1e300, 2e300),
        (1.7e308, 1.7976931348623157e308),
    ],
)
def test_a_limit_is_a_round_number_of_at_least_twice_the_value(value: float, limit: float) -> None:
    assert above(value) == limit
    assert value <= 0 or above(value) >= min(2 * value, 1.7e308)


def test_few_values_that_repeat_are_a_set_and_many_or_rare_or_long_ones_are_not() -> None:
    assert rules(["b", "a", None] * 30)[IN_SET] == {"value_set": ["a", "b"]}
    assert rules([0, 1] * 30)[IN_SET] == {"value_set": [0, 1]}
    assert IN_SET not in rules(["a", "b", "c"] * 15)
    assert IN_SET not in rules([str(n % (MOST_VALUES + 1)) for n in range(1000)])
    assert IN_SET not in rules(["x" * 65] * 100)
    assert IN_SET not in rules(["{}"] * 100, json=True)
    assert IN_SET not in rules(["a"] * 100, key=True)
    assert rules([n % 7 for n in range(700)]).keys() == {NOT_NULL, BETWEEN}


def test_an_enum_gets_all_elements_of_its_type_unless_other_values_were_seen() -> None:
    assert rules(["a"] * 20, elements=("b", "a", "c"))[IN_SET] == {"value_set": ["b", "a", "c"]}
    assert rules(["a", "1"] * 40, elements=("b", "a"))[IN_SET] == {"value_set": ["1", "a"]}


def test_nothing_is_suggested_of_a_masked_column() -> None:
    assert rules(["a"] * 100, mask="hash") == {}


def changes(*kinds: str, hour: int = 10, ids: list[int] | None = None, partial: list[bool | None] | None = None) -> pa.RecordBatch:
    columns: dict[str, Any] = {
        "_change_type": list(kinds),
        "_commit_ts": [from_ms(hour * 3_600_000 + n) for n in range(len(kinds))],
        "id": ids or list(range(len(kinds))),
    }
    return pa.RecordBatch.from_pydict(columns | ({"_partial": partial} if partial else {}))


def of_changes(*batches: pa.RecordBatch) -> list[Suggested]:
    profile = TableProfile(columns={1: ColumnProfile()}, key=(1,))
    for batch in batches:
        profile.add_changes(batch, {1: "id"})
    return suggested(profile, {1: Described(name="id", key=True)})


def test_numbers_of_an_hour_get_limits_by_change_type() -> None:
    first = changes(*["INSERT"] * 40, *["UPDATE_BEFORE", "UPDATE_AFTER"] * 3, hour=9)
    found = [
        r for r in of_changes(first, changes(*["INSERT"] * 100, hour=10), changes("INSERT", hour=10, ids=[9999])) if r.type == ROW_COUNT
    ]
    assert [(r.arguments, r.seen) for r in found] == [
        ({"min_value": 21, "max_value": 500}, "new rows: 43 to 101 in each of 2 hours with changes (median 72)"),
        (
            {"row_condition": "_change_type = 'INSERT'", "max_value": 500},
            "inserts: 40 to 101 in each of 2 hours with changes (median 70)",
        ),
        ({"row_condition": "_change_type = 'UPDATE_AFTER'", "max_value": 50}, "updates: 0 to 3 in each of 2 hours with changes (median 2)"),
        ({"row_condition": "_change_type = 'DELETE'", "max_value": 0}, "deletes: 0 to 0 in each of 2 hours with changes (median 0)"),
    ]


def test_partial_rows_are_no_new_rows() -> None:
    found = of_changes(changes("INSERT", "UPDATE_AFTER", "UPDATE_AFTER", partial=[None, True, False]))
    assert found[1].seen.startswith("new rows: 2 to 2 in each of 1 hour")


def test_the_key_of_inserts_is_unique_unless_one_occurs_twice() -> None:
    unique = of_changes(changes("INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "INSERT", ids=[1, 1, 1, 2]))[0]
    assert unique.type == "expect_column_values_to_be_unique"
    assert unique.arguments == {"column": "id", "row_condition": "_change_type = 'INSERT'"}
    assert unique.seen.startswith("2 inserts, no key twice.")
    twice = of_changes(changes("INSERT", "DELETE", ids=[1, 1]), changes("INSERT", ids=[1]))
    assert {r.type for r in twice} == {ROW_COUNT}


def test_the_text_is_toml_whatever_values_and_names_hold() -> None:
    hostile = ['"', "\\", "a\nb", "\x7f", "\u202e", "\U000e0001", "é", "]]", "#", ""]
    arguments = {"column": "a\n[[expect]]", "value_set": hostile, "min_value": date(2025, 1, 1), "at": datetime(2025, 1, 1), "mostly": 0.5}  # noqa: DTZ001
    text = as_toml(["made\nof", "two"], [Suggested(type=IN_SET, seen="x\ny = 1", arguments=arguments)] * 2, ["end\n= 5"])
    assert tomllib.loads(text)["expect"] == [{"type": IN_SET, **arguments, "severity": "warning"}] * 2
    assert "\u202e" not in text
    assert text.startswith("# made\\nof\n# two\n\n[[expect]]\n# x\\ny = 1\ntype = ")
    assert text.endswith("\n\n# end\\n= 5\n")
