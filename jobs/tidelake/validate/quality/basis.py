"""What each expectation of Great Expectations' core library is judged from, and why some are refused.

docs/how-to/expectations.md shows this table. It needs no import of Great Expectations, so files are checked before anything is validated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tidelake.errors import ConfigError
from tidelake.history.contract import OWN_SQL, Expectation

Basis = Literal["columns", "counts", "rows", "patterns", "sample"]
SAMPLE = 100_000  # rows of a sample: the first of the window in commit order

_CHANGE = re.compile(r"\s*_change_type\s*=\s*'(INSERT|UPDATE_BEFORE|UPDATE_AFTER|DELETE)'\s*")
_PATTERNS = {  # LIKE patterns, and the type that judges them as regular expressions
    "expect_column_values_to_match_like_pattern": "expect_column_values_to_match_regex",
    "expect_column_values_to_match_like_pattern_list": "expect_column_values_to_match_regex_list",
    "expect_column_values_to_not_match_like_pattern": "expect_column_values_to_not_match_regex",
    "expect_column_values_to_not_match_like_pattern_list": "expect_column_values_to_not_match_regex_list",
}
_TYPES: Mapping[Basis, tuple[str, ...]] = {
    "columns": (
        "expect_column_to_exist",
        "expect_column_type_to_be",
        "expect_column_values_to_be_in_type_list",
        "expect_column_values_to_be_of_type",
        "expect_table_column_count_to_be_between",
        "expect_table_column_count_to_equal",
        "expect_table_columns_to_match_ordered_list",
        "expect_table_columns_to_match_set",
    ),
    "counts": ("expect_table_row_count_to_be_between", "expect_table_row_count_to_equal"),
    "rows": (
        "expect_column_distinct_values_to_be_in_set",
        "expect_column_distinct_values_to_contain_set",
        "expect_column_distinct_values_to_equal_set",
        "expect_column_kl_divergence_to_be_less_than",
        "expect_column_max_to_be_between",
        "expect_column_mean_to_be_between",
        "expect_column_median_to_be_between",
        "expect_column_min_to_be_between",
        "expect_column_most_common_value_to_be_in_set",
        "expect_column_pair_values_a_to_be_greater_than_b",
        "expect_column_pair_values_to_be_equal",
        "expect_column_pair_values_to_be_in_set",
        "expect_column_proportion_of_non_null_values_to_be_between",
        "expect_column_proportion_of_unique_values_to_be_between",
        "expect_column_quantile_values_to_be_between",
        "expect_column_stdev_to_be_between",
        "expect_column_sum_to_be_between",
        "expect_column_unique_value_count_to_be_between",
        "expect_column_value_lengths_to_be_between",
        "expect_column_value_lengths_to_equal",
        "expect_column_value_z_scores_to_be_less_than",
        "expect_column_values_to_be_between",
        "expect_column_values_to_be_in_set",
        "expect_column_values_to_be_json_parseable",
        "expect_column_values_to_be_null",
        "expect_column_values_to_be_unique",
        "expect_column_values_to_match_json_schema",
        "expect_column_values_to_match_regex",
        "expect_column_values_to_match_regex_list",
        "expect_column_values_to_match_strftime_format",
        "expect_column_values_to_not_be_in_set",
        "expect_column_values_to_not_be_null",
        "expect_column_values_to_not_be_outliers",
        "expect_column_values_to_not_match_regex",
        "expect_column_values_to_not_match_regex_list",
        "expect_compound_columns_to_be_unique",
        "expect_multicolumn_sum_to_equal",
        "expect_multicolumn_values_to_be_equal",
        "expect_select_column_values_to_be_unique_within_record",
        OWN_SQL,
    ),
    "patterns": tuple(_PATTERNS),
    "sample": (
        "expect_column_values_to_be_dateutil_parseable",
        "expect_column_values_to_be_decreasing",
        "expect_column_values_to_be_increasing",
    ),
}
BASIS: Mapping[str, Basis] = {kind: basis for basis, kinds in _TYPES.items() for kind in kinds}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unjudged:
    """Why an expectation cannot be judged, and what to use instead."""

    why: str
    instead: str


REFUSED = {
    "expect_query_results_to_match_comparison": Unjudged(
        why="it compares with a query of another data source, and a window has the rows of one table only",
        instead="`tidelake verify`, which compares tables with the source, or unexpected_rows_expectation over one table",
    ),
    "expect_table_row_count_to_equal_other_table": Unjudged(
        why="it counts the rows of another table, and a window has the rows of one table only",
        instead="`tidelake verify`, or expect_table_row_count_to_be_between",
    ),
}


def basis_of(e: Expectation) -> Basis:
    """Return what an expectation is judged from. A number of rows with a condition of its own is counted from the rows."""
    basis = BASIS.get(e.type, "rows")
    return "rows" if basis == "counts" and e.arguments.get("row_condition") is not None and counted_change(e) is None else basis


def counted_change(e: Expectation) -> str | None:
    """Return the change type whose number an expectation is about; None for all new rows, or a condition that is not counted."""
    condition = e.arguments.get("row_condition")
    match = _CHANGE.fullmatch(condition) if isinstance(condition, str) else None
    return match[1] if match else None


def refuse(e: Expectation) -> None:
    """Raise ConfigError for an expectation that cannot be judged: file, table, expectation, why, what to use instead."""
    if refusal := REFUSED.get(e.type):
        raise ConfigError(f"{e.origin}: type: {e.type} of {e.table} cannot be judged: {refusal.why}", remedy=f"use {refusal.instead}")


def as_regex(e: Expectation) -> Expectation:
    """Return an expectation about LIKE patterns as one about regular expressions, which Spark can judge; others unchanged."""
    kind = _PATTERNS.get(e.type)
    if kind is None:
        return e
    given = {k: v for k, v in e.arguments.items() if not k.startswith("like_pattern") and k != "escape"}
    escape = e.arguments.get("escape")
    if "like_pattern" in e.arguments:
        given["regex"] = _regex(e.arguments["like_pattern"], escape)
    else:
        given["regex_list"] = [_regex(pattern, escape) for pattern in e.arguments["like_pattern_list"]]
    return Expectation(table=e.table, type=kind, arguments=given, severity=e.severity, origin=e.origin, later=e.later)


def _regex(pattern: str, escape: str | None) -> str:
    """A LIKE pattern as a regular expression for the whole value, in the syntax of Java."""
    out, escaped = list[str](), False
    for c in pattern:
        if escaped or c not in ("%", "_", escape):
            out.append(re.escape(c))
            escaped = False
        elif c == escape:
            escaped = True
        else:
            out.append(".*" if c == "%" else ".")
    out.append(re.escape(escape) if escaped and escape else "")
    return rf"\A(?s:{''.join(out)})\z"
