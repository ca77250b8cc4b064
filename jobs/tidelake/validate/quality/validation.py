"""Runs one validation of Great Expectations: in a temporary context, without output, and without an exception for a single rule."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from great_expectations.data_context.types.base import DataContextConfig
    from great_expectations.datasource.fluent.interfaces import Batch
    from great_expectations.expectations.expectation import Expectation as GxExpectation

Engine = Literal["pandas", "spark"]
SUMMARY: Mapping[str, Any] = {"result_format": "SUMMARY"}
_ERROR_CHARACTERS = 300
_JAVA = "An error occurred while calling"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOutcome:
    """Outcome of one expectation. result: Great Expectations' result; error: why it could not be validated (success is then False)."""

    success: bool
    result: Mapping[str, Any]
    error: str | None = None


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress output of Great Expectations, which warns about its own use of deprecated names, logs, and redirects warnings.

    Every import and call of Great Expectations runs inside.
    """
    own = logging.getLogger("great_expectations")
    queries = [
        logging.getLogger(f"{kind}QueryContextLogger") for kind in ("DataFrame", "SQL")
    ]  # Spark's loggers; the outcome has the error
    before = own.propagate, [q.disabled for q in queries]
    nowhere = logging.NullHandler()
    own.addHandler(nowhere)
    own.propagate = False
    for q in queries:
        q.disabled = True
    try:
        with warnings.catch_warnings():  # also restores the hook that importing Great Expectations replaces
            warnings.simplefilter("ignore")
            yield
    finally:
        own.propagate = before[0]
        for q, was in zip(queries, before[1], strict=True):
            q.disabled = was
        own.removeHandler(nowhere)


def validate(
    engine: Engine, frame: Any, expectations: Sequence[GxExpectation], result_format: Mapping[str, Any] = SUMMARY
) -> list[RuleOutcome]:
    """Return the outcomes in the order of the expectations. Those that fail with an error are tried again alone: one can break others."""
    if not expectations:
        return []
    with quiet():
        import great_expectations as gx

        context = gx.get_context(mode="ephemeral", project_config=_settings())
        source = context.data_sources.add_spark("window", persist=False) if engine == "spark" else context.data_sources.add_pandas("window")
        rows = source.add_dataframe_asset("rows").add_batch_definition_whole_dataframe("all")
        batch = rows.get_batch(batch_parameters={"dataframe": frame})
        if engine == "spark":  # otherwise its SQL runs in the process's first session, which lacks its views
            batch.data.execution_engine.spark = frame.sparkSession
        outcomes = _validate(batch, expectations, result_format)
        spoiled = [n for n, outcome in enumerate(outcomes) if outcome.error is not None]
        for n in spoiled if len(expectations) > 1 else ():
            outcomes[n] = _validate(batch, [expectations[n]], result_format)[0]
    return outcomes


def _settings() -> DataContextConfig:
    """No analytics, no progress bars: each setting made on a context writes its whole configuration again."""
    from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults, ProgressBarsConfig

    return DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(),
        analytics_enabled=False,
        progress_bars=ProgressBarsConfig(globally=False),
    )


def _validate(batch: Batch, expectations: Sequence[GxExpectation], result_format: Mapping[str, Any]) -> list[RuleOutcome]:
    from great_expectations import ExpectationSuite

    numbered = [copy.copy(e) for e in expectations]
    for number, expectation in enumerate(numbered):
        expectation.meta = {"number": number}  # results come in another order
    try:
        done = batch.validate(ExpectationSuite("window", expectations=list(numbered)), result_format=dict(result_format))
    except Exception as e:  # noqa: BLE001 - any error: these expectations were not checked, and each result states it
        return [_unjudged(str(e) or repr(e))] * len(expectations)
    outcomes = [_unjudged("Great Expectations gave no result")] * len(expectations)
    for r in done.results:
        error = _error(r.exception_info or {})
        success = bool(r.success) and error is None
        number = ((r.expectation_config and r.expectation_config.meta) or {})["number"]
        outcomes[number] = RuleOutcome(success=success, result=r.result or {}, error=error)
    return outcomes


def _error(info: Mapping[str, Any]) -> str | None:
    """The message of a raised exception; info is one description, or one per failed metric."""
    each = [info] if "raised_exception" in info else [i for i in info.values() if isinstance(i, Mapping)]
    return next((_unjudged(str(i.get("exception_message"))).error for i in each if i.get("raised_exception")), None)


def _unjudged(message: str) -> RuleOutcome:
    """Outcome with one line of the message: the last cause if the JVM names one, else the first line; the rest is the stack."""
    lines = [line.strip() for line in message.splitlines() if line.strip()] or ["no message"]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    line = causes[-1] if causes else lines[1].removeprefix(": ") if lines[0].startswith(_JAVA) and len(lines) > 1 else lines[0]
    short = line if len(line) <= _ERROR_CHARACTERS else f"{line[:_ERROR_CHARACTERS]}…"
    return RuleOutcome(success=False, result={}, error=short.removeprefix("Error: "))
