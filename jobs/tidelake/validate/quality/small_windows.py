"""Which expectations Great Expectations judges with pandas exactly as with Spark, so that a small window needs no JVM.

Its engines differ: regular expressions are those of Python or Java, NaN is NULL in pandas only, decimals are compared with floats exactly
or as doubles, conditions are SQL. Only what is the same is listed here, and a test judges every kind of rule with both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from tidelake.history.contract import Expectation

_FIRST_ROUNDED = 1 << 53  # from here on, doubles round integers
_CHARACTER = r"[^\\^$.|?*+()\[\]{}]|\\[.^$*+?()\[\]{}|\\/-]"
_CLASS = r"\[\^?(?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9 _.:/@,#+*])+\]"
_PLAIN = re.compile(rf"\^?(?:(?:{_CHARACTER}|{_CLASS}|\(\?:|\((?![?*+{{])|\))(?:[*+?]|\{{[0-9]{{1,3}}(?:,[0-9]{{0,3}})?\}})?|\|)*")
_KEYWORDS = frozenset({"column", "column_list", "mostly"})


def as_on_spark(e: Expectation, columns: pa.Schema) -> bool:
    """Return whether pandas judges an expectation exactly as Spark does.

    Args:
        e: A valid expectation that is judged from rows.
        columns: The table's columns with their Arrow types.
    """
    rule = _RULES.get(e.type)
    names = e.arguments.get("column_list", [e.arguments.get("column")])
    if rule is None or not isinstance(names, list) or not names or not all(n in columns.names for n in names):
        return False
    given = {k: v for k, v in e.arguments.items() if k not in _KEYWORDS}
    return all(rule(columns.field(n).type, given) for n in names)


def _exists(kind: pa.DataType, given: Mapping[str, Any]) -> bool:
    return not given


def _null(kind: pa.DataType, given: Mapping[str, Any]) -> bool:
    return not given and not pa.types.is_floating(kind)


def _unique(kind: pa.DataType, given: Mapping[str, Any]) -> bool:
    return not given and (_is_text(kind) or pa.types.is_integer(kind))


def _in_set(kind: pa.DataType, given: Mapping[str, Any]) -> bool:
    values = given.get("value_set")
    if given.keys() != {"value_set"} or not isinstance(values, list) or not values:
        return False
    return all(isinstance(v, str) for v in values) if _is_text(kind) else pa.types.is_integer(kind) and all(map(_is_integer, values))


def _between(kind: pa.DataType, given: Mapping[str, Any]) -> bool:
    limits = [v for k, v in given.items() if k in ("min_value", "max_value")]
    known = given.keys() <= {"min_value", "max_value", "strict_min", "strict_max"}
    return known and (pa.types.is_integer(kind) or pa.types.is_decimal(kind)) and all(map(_is_integer, limits))


def _length(kind: pa.DataType, given: Mapping[str, Any]) -> bool:
    known = given.keys() <= {"value", "min_value", "max_value", "strict_min", "strict_max"}
    return known and _is_text(kind) and all(map(_is_integer, (v for k, v in given.items() if not k.startswith("strict"))))


def _regex(kind: pa.DataType, given: Mapping[str, Any]) -> bool:
    pattern = given.get("regex")
    return given.keys() == {"regex"} and _is_text(kind) and isinstance(pattern, str) and is_plain(pattern)


def is_plain(pattern: str) -> bool:
    """Return whether Python and Java find the same with a regular expression: no `.`, `$`, `\\d` and the like, and no options."""
    return _PLAIN.fullmatch(pattern) is not None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _FIRST_ROUNDED


_RULES: Mapping[str, Callable[[pa.DataType, Mapping[str, Any]], bool]] = {
    "expect_column_to_exist": _exists,
    "expect_column_value_lengths_to_be_between": _length,
    "expect_column_value_lengths_to_equal": _length,
    "expect_column_values_to_be_between": _between,
    "expect_column_values_to_be_in_set": _in_set,
    "expect_column_values_to_be_null": _null,
    "expect_column_values_to_be_unique": _unique,
    "expect_column_values_to_match_regex": _regex,
    "expect_column_values_to_not_be_in_set": _in_set,
    "expect_column_values_to_not_be_null": _null,
    "expect_column_values_to_not_match_regex": _regex,
    "expect_compound_columns_to_be_unique": _unique,
}
