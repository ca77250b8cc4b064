"""Rows that break an expectation, found by Great Expectations itself in a second validation, which only failed expectations get."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tidelake.config.evidence import MOST_COLUMNS, MOST_ROWS
from tidelake.history.contract import OWN_SQL, Expectation
from tidelake.validate.quality.evidence import UnexpectedRows, unexpected_rows
from tidelake.validate.quality.expectations import runnable
from tidelake.validate.quality.validation import Engine, validate
from tidelake.validate.quality.verdict import Check

_COLUMNS = ("column", "column_A", "column_B")


def with_rows(
    frame: Any,
    expectations: Sequence[Expectation],
    checks: Sequence[Check],
    index: Sequence[str],
    engine: Engine = "spark",
) -> list[Check]:
    """Return the checks, those that count unexpected rows with some of them.

    Args:
        frame: The rows that were judged: a DataFrame of the engine.
        expectations: What they were judged by.
        checks: What judge_frame said of it, in this order.
        index: The frame's columns that name a row.
        engine: What judges the rows.
    """
    failed = [n for n, c in enumerate(checks) if not c.success and c.unexpected]
    found = dict[int, UnexpectedRows | None]()
    for by_sql in (False, True):
        chosen = [n for n in failed if (expectations[n].type == OWN_SQL) is by_sql]
        outcomes = validate(engine, frame, [runnable(expectations[n]) for n in chosen], _format(index, by_sql=by_sql))
        for n, outcome in zip(chosen, outcomes, strict=True):
            found[n] = _rows(expectations[n], list(_utc(_given(outcome.result), _instants(frame, engine))), index)
    return [c.model_copy(update={"result": found[n]}) if found.get(n) else c for n, c in enumerate(checks)]


def _format(index: Sequence[str], *, by_sql: bool) -> Mapping[str, Any]:
    """Result format. COMPLETE would collect every row, except for own SQL, which gives no rows in other formats and limits them itself."""
    if by_sql:
        return {"result_format": "COMPLETE"}
    names = {"unexpected_index_column_names": list(index), "return_unexpected_index_query": False}
    return {"result_format": "SUMMARY", "partial_unexpected_count": MOST_ROWS} | names


def _given(result: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The rows in a result; none where the expectation is not about rows."""
    details = result.get("details")
    found = result.get("partial_unexpected_index_list") or (details.get("unexpected_rows") if isinstance(details, Mapping) else None)
    return [r for r in found[:MOST_ROWS] if isinstance(r, Mapping)] if isinstance(found, list) else []


def _instants(frame: Any, engine: Engine) -> frozenset[str]:
    """Columns whose values Spark gives as local times of this process."""
    return frozenset(name for name, kind in frame.dtypes if kind == "timestamp") if engine == "spark" else frozenset()


def _utc(rows: Iterable[Mapping[str, Any]], instants: frozenset[str]) -> Iterator[Mapping[str, Any]]:
    """Rows with instants in UTC, and numbers of numpy as Python's."""
    for r in rows:
        plain = {k: v.item() if hasattr(v, "dtype") else v for k, v in r.items()}
        yield {k: v.astimezone(UTC) if k in instants and isinstance(v, datetime) else v for k, v in plain.items()}


def _rows(e: Expectation, rows: Sequence[Mapping[str, Any]], index: Sequence[str]) -> UnexpectedRows | None:
    if not rows:
        return None
    if e.type == OWN_SQL:  # its query chooses the columns
        known = [name for name in index if name in rows[0]]
        return unexpected_rows(known, [name for name in rows[0] if name not in known][:MOST_COLUMNS], rows)
    several = e.arguments.get("column_list")
    named = [*(e.arguments.get(argument) for argument in _COLUMNS), *(several if isinstance(several, list) else ())]
    return unexpected_rows(index, [name for name in named if isinstance(name, str) and name in rows[0]], rows)
