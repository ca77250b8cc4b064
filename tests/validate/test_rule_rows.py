"""Rows that break a user's expectation, of every kind of rule that is about rows, found by Great Expectations on Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.validate.test_frames import ORIGIN, rule
from tidelake.config.evidence import MOST_ROWS
from tidelake.spark.lake_settings import LakeSettings
from tidelake.spark.session import spark_session
from tidelake.validate.quality import rule_rows
from tidelake.validate.quality.evidence import PLACE, first_row
from tidelake.validate.quality.judge import judge_frame
from tidelake.validate.quality.rule_rows import with_rows
from tidelake.validate.quality.verdict import Check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark
INDEX = ["id", *PLACE]
BETWEEN = "expect_column_values_to_be_between"


@pytest.fixture(scope="module")
def orders(spark_app: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataFrame]:
    """Thirty changes of one topic: id, price and offset 0 to 29, every tenth without name, all of the day 2026-01-05."""
    nowhere = LakeSettings(warehouse=str(tmp_path_factory.mktemp("lake")), spark={}, iceberg={})
    with spark_session(nowhere, "rows") as spark:
        yield (
            spark.range(30)
            .selectExpr(
                "id",
                "CAST(id AS decimal(10,2)) AS price",
                "CASE WHEN id % 10 > 0 THEN concat('N-', id) END AS name",
                "id % 15 AS half",
                "timestamp'2026-01-05 10:00:00Z' AS at",
                "X'00FF' AS raw",
                "1000 + id AS _commit_ts",
                "'t' AS _topic",
                "0 AS _kafka_partition",
                "id AS _offset",
                "0 AS _ordinal",
            )
            .repartition(3)
            .cache()
        )


def judged(frame: DataFrame, kind: str, index: list[str] = INDEX, **arguments: Any) -> Check:
    rules = [rule(kind, **arguments)]
    (check,) = with_rows(frame, rules, judge_frame(frame, rules), index)
    return check


def ids(check: Check) -> list[object]:
    return [r["id"] for r in check.result.partial_unexpected_index_list] if check.result else []


@pytest.mark.parametrize(
    ("kind", "arguments", "found", "values"),
    [
        ("expect_column_values_to_not_be_null", {"column": "name"}, [0, 10, 20], [None] * 3),
        ("expect_column_values_to_be_null", {"column": "name", "row_condition": "id < 3"}, [1, 2], ["N-1", "N-2"]),
        (BETWEEN, {"column": "price", "max_value": 27}, [28, 29], ["28.00", "29.00"]),
        (BETWEEN, {"column": "id", "min_value": 2}, [0, 1], [0, 1]),
        ("expect_column_values_to_be_in_set", {"column": "half", "value_set": list(range(14))}, [14, 29], [14, 14]),
        ("expect_column_values_to_not_be_in_set", {"column": "half", "value_set": [3]}, [3, 18], [3, 3]),
        ("expect_column_values_to_match_regex", {"column": "name", "regex": "^N-.$"}, None, None),
        ("expect_column_values_to_not_match_regex", {"column": "name", "regex": "^N-2.$"}, list(range(21, 30)), None),
        ("expect_column_value_lengths_to_be_between", {"column": "name", "max_value": 3, "row_condition": "id < 12"}, [11], ["N-11"]),
        ("expect_column_values_to_be_unique", {"column": "half", "row_condition": "id % 15 < 2"}, [0, 1, 15, 16], [0, 1, 0, 1]),
        ("expect_column_pair_values_a_to_be_greater_than_b", {"column_A": "id", "column_B": "half", "or_equal": True}, [], []),
    ],
)
def test_rows_of_each_kind_of_rule(
    orders: DataFrame, kind: str, arguments: dict[str, Any], found: list[int] | None, values: list[object] | None
) -> None:
    check = judged(orders, kind, **arguments)
    if found is None:
        assert check.unexpected > MOST_ROWS
        assert len(ids(check)) == MOST_ROWS
        return
    assert (ids(check), check.success) == (found, not found)
    if check.result and values is not None:
        assert check.result.partial_unexpected_list == values


def test_rules_of_several_columns_show_all_of_them(orders: DataFrame) -> None:
    pair = judged(orders, "expect_column_pair_values_a_to_be_greater_than_b", column_A="half", column_B="id", or_equal=True)
    assert pair.result is not None
    assert pair.unexpected == 15
    assert pair.result.partial_unexpected_list[0] == {"half": ids(pair)[0] - 15, "id": ids(pair)[0]}  # type: ignore[operator]
    both = judged(orders, "expect_compound_columns_to_be_unique", column_list=["half", "raw"], row_condition="id % 15 = 4")
    assert both.result is not None
    assert ids(both) == [4, 19]
    assert both.result.partial_unexpected_list == [{"half": 4, "raw": "0x00ff"}] * 2


def test_a_row_is_shown_with_its_event_in_the_members_of_great_expectations(orders: DataFrame) -> None:
    check = judged(orders, BETWEEN, column="price", max_value=28)
    assert check.result is not None
    assert check.result.model_dump() == {
        "unexpected_index_column_names": INDEX,
        "partial_unexpected_index_list": [
            {"id": 29, "_commit_ts": 1029, "_topic": "t", "_kafka_partition": 0, "_offset": 29, "_ordinal": 0, "price": "29.00"}
        ],
        "partial_unexpected_list": ["29.00"],
    }
    assert first_row(check.result) == "'29.00' of id=29 at t[0]@29"
    assert f'({ORIGIN}). To publish such rows with a warning, set severity = "warning" in the rule' in check.remedy


def test_a_table_without_key_has_the_judged_value_and_the_event(orders: DataFrame) -> None:
    check = judged(orders, BETWEEN, list(PLACE), column="price", max_value=28)
    assert check.result is not None
    assert check.result.key == []
    assert first_row(check.result) == "'29.00' at t[0]@29"


def test_no_more_than_a_few_rows_are_collected(orders: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    collected = list[int]()
    given = rule_rows._given
    monkeypatch.setattr(rule_rows, "_given", lambda r: collected.append(len(r.get("partial_unexpected_index_list") or ())) or given(r))
    check = judged(orders, BETWEEN, column="price", min_value=100)
    assert (check.unexpected, collected, len(ids(check))) == (30, [MOST_ROWS], MOST_ROWS)


def test_own_sql_shows_what_its_query_chose(orders: DataFrame) -> None:
    whole, sums = (
        judged(orders, "unexpected_rows_expectation", unexpected_rows_query=query)
        for query in (
            "SELECT * FROM {batch} WHERE id = 4",
            "SELECT half, count(*) AS n FROM {batch} WHERE half = 4 GROUP BY half",
        )
    )
    assert whole.result is not None
    assert whole.result.unexpected_index_column_names == INDEX
    assert whole.result.partial_unexpected_list[0] == {
        "price": "4.00", "name": "N-4", "half": 4, "at": "2026-01-05 10:00:00+00:00", "raw": "0x00ff"
    }  # fmt: skip
    assert sums.result is not None
    assert sums.result.model_dump() == {
        "unexpected_index_column_names": [],
        "partial_unexpected_index_list": [{"half": 4, "n": 2}],
        "partial_unexpected_list": [{"half": 4, "n": 2}],
    }


def test_instants_are_in_utc(orders: DataFrame) -> None:
    limit = datetime(2026, 1, 5, 9, tzinfo=UTC).isoformat()
    check = judged(orders, BETWEEN, column="at", max_value=limit, row_condition="id = 3")
    assert check.result is not None
    assert check.result.partial_unexpected_list == ["2026-01-05 10:00:00+00:00"]


def test_rules_without_rows_and_rules_that_cannot_be_judged_are_not_validated_again(
    orders: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = [
        rule("expect_table_row_count_to_be_between", max_value=1),
        rule("expect_column_mean_to_be_between", column="price", max_value=1),
        rule(BETWEEN, column="nope", max_value=1),
        rule(BETWEEN, column="price", max_value=29),
    ]
    checks = judge_frame(orders, rules)
    assert [c.success for c in checks] == [False, False, False, True]
    again = list[int]()
    monkeypatch.setattr(rule_rows, "validate", lambda engine, frame, expectations, form: again.append(len(expectations)) or [])
    assert with_rows(orders, rules, checks, INDEX) == checks
    assert again == [0, 0]


def test_only_failed_rules_get_rows_and_the_checks_keep_their_order(orders: DataFrame) -> None:
    rules = [
        rule(BETWEEN, column="price", max_value=29),
        rule(BETWEEN, "warning", column="price", max_value=28),
        rule("unexpected_rows_expectation", unexpected_rows_query="SELECT id FROM {batch} WHERE id = 1"),
        rule(BETWEEN, column="half", max_value=13),
    ]
    checks = judge_frame(orders, rules)
    found = with_rows(orders, rules, checks, INDEX)
    assert [ids(c) for c in found] == [[], [29], [1], [14, 29]]
    assert [c.model_copy(update={"result": None}) for c in found] == checks
    assert "severity" not in found[1].remedy
