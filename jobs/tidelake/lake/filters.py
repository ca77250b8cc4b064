"""Filters of a scan as pyiceberg's expressions."""

from __future__ import annotations

from typing import Any

from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, EqualTo, GreaterThan, In, IsNull, LessThanOrEqual

from tidelake.lake.scans import After, Where


def filter_of(where: Where) -> BooleanExpression:
    """Return the pyiceberg expression of a filter."""
    expression: BooleanExpression = AlwaysTrue()
    for name, value in where.items():
        expression = And(expression, _term(name, value))
    return expression


def _term(name: str, value: Any) -> BooleanExpression:
    match value:
        case None:
            return IsNull(name)  # type: ignore[call-arg, arg-type]
        case After():
            return And(GreaterThan(name, value.low), LessThanOrEqual(name, value.high))  # type: ignore[arg-type, call-arg]
        case list():
            return In(name, value)  # type: ignore[arg-type, call-arg]
        case _:
            return EqualTo(name, value)  # type: ignore[arg-type, call-arg]
