"""One validation by Great Expectations: in a context of its own that is kept nowhere, silent, and never an exception for one rule."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from great_expectations.datasource.fluent.interfaces import Batch
    from great_expectations.expectations.expectation import Expectation as GxExpectation

SUMMARY: Mapping[str, Any] = {"result_format": "SUMMARY"}
_ERROR_CHARACTERS = 300
_JAVA = "An error occurred while calling"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOutcome:
    """How one expectation was judged. result: Great Expectations' own; error: why it could not be judged (then success is False)."""

    success: bool
    result: Mapping[str, Any]
    error: str | None = None


@contextmanager
def quiet() -> Iterator[None]:
    """Whatever imports or calls Great Expectations stands in here: it warns about its own use of old names, logs and redirects warnings."""
    own = logging.getLogger("great_expectations")
    queries = [logging.getLogger(f"{kind}QueryContextLogger") for kind in ("DataFrame", "SQL")]  # Spark's: the outcome holds the error
    before = own.propagate, [q.disabled for q in queries]
    nowhere = logging.NullHandler()
    own.addHandler(nowhere)
    own.propagate = False
    for q in queries:
        q.disabled = True
    try:
        with warnings.catch_warnings():  # restores the hook that an import of Great Expectations replaces, too
            warnings.simplefilter("ignore")
            yield
    finally:
        own.propagate = before[0]
        for q, was in zip(queries, before[1], strict=True):
            q.disabled = was
        own.removeHandler(nowhere)


def validate(
    engine: Literal["pandas", "spark"], frame: Any, expectations: Sequence[GxExpectation], result_format: Mapping[str, Any] = SUMMARY
) -> list[RuleOutcome]:
    """The outcomes in the order of the expectations. Those that could not be judged are tried once more alone: one may spoil others."""
    if not expectations:
        return []
    with quiet():
        import great_expectations as gx

        context = gx.get_context(mode="ephemeral")
        context.enable_analytics(False)
        context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]
        source = context.data_sources.add_spark("window", persist=False) if engine == "spark" else context.data_sources.add_pandas("window")
        rows = source.add_dataframe_asset("rows").add_batch_definition_whole_dataframe("all")
        batch = rows.get_batch(batch_parameters={"dataframe": frame})
        if engine == "spark":  # else its SQL runs in whichever session is the process's first, which does not know its views
            batch.data.execution_engine.spark = frame.sparkSession
        outcomes = _validate(batch, expectations, result_format)
        spoiled = [n for n, outcome in enumerate(outcomes) if outcome.error is not None]
        for n in spoiled if len(expectations) > 1 else ():
            outcomes[n] = _validate(batch, [expectations[n]], result_format)[0]
    return outcomes


def _validate(batch: Batch, expectations: Sequence[GxExpectation], result_format: Mapping[str, Any]) -> list[RuleOutcome]:
    from great_expectations import ExpectationSuite

    numbered = [copy.copy(e) for e in expectations]
    for number, expectation in enumerate(numbered):
        expectation.meta = {"number": number}  # results come in an order of their own
    try:
        done = batch.validate(ExpectationSuite("window", expectations=list(numbered)), result_format=dict(result_format))
    except Exception as e:  # noqa: BLE001 - whatever it is: these expectations were not judged, and each says so
        return [_unjudged(str(e) or repr(e))] * len(expectations)
    outcomes = [_unjudged("Great Expectations gave no result")] * len(expectations)
    for r in done.results:
        error = _error(r.exception_info or {})
        success = bool(r.success) and error is None
        number = ((r.expectation_config and r.expectation_config.meta) or {})["number"]
        outcomes[number] = RuleOutcome(success=success, result=r.result or {}, error=error)
    return outcomes


def _error(info: Mapping[str, Any]) -> str | None:
    """The message of a raised exception; info is one description, or one for each metric that failed."""
    each = [info] if "raised_exception" in info else [i for i in info.values() if isinstance(i, Mapping)]
    return next((_unjudged(str(i.get("exception_message"))).error for i in each if i.get("raised_exception")), None)


def _unjudged(message: str) -> RuleOutcome:
    """One line of the message: its cause where the JVM names one, else the first; the rest is its stack."""
    lines = [line.strip() for line in message.splitlines() if line.strip()] or ["no message"]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    line = causes[-1] if causes else lines[1].removeprefix(": ") if lines[0].startswith(_JAVA) and len(lines) > 1 else lines[0]
    short = line if len(line) <= _ERROR_CHARACTERS else f"{line[:_ERROR_CHARACTERS]}…"
    return RuleOutcome(success=False, result={}, error=short.removeprefix("Error: "))
