"""Judges expectations that Spark cannot judge, or not in order, on a bounded sample: the first rows of the window in commit order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tidelake.errors import ConfigError
from tidelake.history.contract import Expectation
from tidelake.validate.quality import wording
from tidelake.validate.quality.basis import SAMPLE
from tidelake.validate.quality.expectations import build
from tidelake.validate.quality.judge import expectation_check, refused_check
from tidelake.validate.quality.rule_rows import with_rows
from tidelake.validate.quality.validation import validate
from tidelake.validate.quality.verdict import Check

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

ORDER = "_change_seq"


def judge_sample(frame: DataFrame, expectations: Sequence[Expectation], index: Sequence[str], rows: int = SAMPLE) -> list[Check]:
    """Return one check per expectation, in order; failed ones with rows that break them.

    Args:
        frame: One table's rows of the window.
        expectations: Expectations of one column each.
        index: The frame's columns that name a row.
        rows: Maximum number of rows that are judged.
    """
    return [_judged(frame, e, index, rows) for e in expectations]


def _judged(frame: DataFrame, e: Expectation, index: Sequence[str], rows: int) -> Check:
    plain = replace(e, arguments={k: v for k, v in e.arguments.items() if k not in ("row_condition", "condition_parser")})
    try:
        expected = wording.expected(e, build(e))
        sample = _sample(frame, e, index, rows + 1)
    except ConfigError as error:
        return refused_check(e, error)
    partial = len(sample) > rows
    sample = sample.head(rows)
    check = expectation_check(e, expected, validate("pandas", sample, [build(plain)])[0])
    if not check.success and check.unexpected:
        (check,) = with_rows(sample, [plain], [check], index, engine="pandas")
    seen = f"{check.observed}; only the first {rows:,} rows in commit order are judged" if partial else check.observed
    return check.model_copy(update={"observed": seen})


def _sample(frame: DataFrame, e: Expectation, index: Sequence[str], rows: int) -> pd.DataFrame:
    """The first rows that meet the expectation's condition. Raises ConfigError where Spark cannot read them."""
    condition, column = e.arguments.get("row_condition"), str(e.arguments["column"])
    try:
        chosen = frame.where(condition) if isinstance(condition, str) else frame
        found = chosen.orderBy(ORDER).limit(rows).select(*dict.fromkeys((*index, column))).toArrow()
        sample: pd.DataFrame = found.to_pandas(integer_object_nulls=True)  # as floats, large integers would be rounded
        return sample
    except Exception as error:
        first = next(iter(str(error).splitlines()), repr(error))
        raise ConfigError(f"{e.origin}: {first}", remedy="correct the rule's column or condition") from error
