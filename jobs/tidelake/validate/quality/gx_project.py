"""Writes expectations and the results of an hour as a project of Great Expectations: its own JSON, and Data Docs."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidelake.config.lake_paths import lake_name
from tidelake.config.table_name import parse
from tidelake.errors import ConfigError
from tidelake.history.contract import Expectation
from tidelake.tso import parse_hour
from tidelake.validate.quality.expectations import build
from tidelake.validate.quality.facts import HourFacts
from tidelake.validate.quality.gx_results import match, suite_result
from tidelake.validate.quality.validation import quiet
from tidelake.validate.quality.verdict import Check

if TYPE_CHECKING:
    from great_expectations.core.expectation_suite import ExpectationSuite
    from great_expectations.data_context.data_context.file_data_context import FileDataContext
    from great_expectations.expectations.expectation import Expectation as GxExpectation

_IDS = uuid.UUID("6f0c3b1e-5d0a-4c6c-9c59-6c1c3c2f7a10")  # namespace of ids, so that an export repeated writes the same ids
_OURS = "tidelake"  # key of the meta data of suites that an export wrote


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written. changed: checks without result, because their expectation is another one now; docs: the page of Data Docs."""

    suites: Sequence[str]
    results: int
    changed: Sequence[Check]
    docs: str | None


def export(folder: Path, feed: str, rules: Sequence[Expectation], facts: HourFacts | None, *, docs: bool, force: bool = False) -> Exported:
    """Write a suite for each table with expectations, and the results of an hour.

    Args:
        folder: The project's folder; a new or an existing project.
        feed: Name of the feed.
        rules: The feed's expectations.
        facts: The hour whose checks are written as results; None for suites alone.
        docs: Build Data Docs.
        force: Overwrite suites of the same name that an export did not write.

    Raises:
        ConfigError: An expectation is wrong, or a suite of the same name is somebody's own.
    """
    built = [(e, build(e)) for e in rules]
    with quiet():
        from great_expectations import get_context

        folder.mkdir(parents=True, exist_ok=True)
        context = get_context(mode="file", project_root_dir=str(folder))
        suites = list(_suites(feed, built))
        _refuse_others(context, suites, force=force)
        for suite in suites:
            store = context.expectations_store  # a factory would give new ids
            store.set(store.get_key(name=suite.name, id=None), suite)
        found = match(rules, facts.checks if facts else ())
        if facts is not None:
            _store(context, feed, facts, {e.origin: g for e, g in built}, found.pairs)
        page = next(iter(context.build_data_docs().values()), None) if docs else None
    return Exported(suites=[s.name for s in suites], results=len(found.pairs), changed=found.changed, docs=page)


def suite_name(feed: str, table: str) -> str:
    """Return the name of a table's suite. Its dots are folders in the project."""
    name = parse(table)
    return f"{feed}.{lake_name(name.database)}.{lake_name(name.table)}"


def _suites(feed: str, built: Sequence[tuple[Expectation, GxExpectation]]) -> Iterator[ExpectationSuite]:
    from great_expectations import ExpectationSuite

    by_table: dict[str, list[GxExpectation]] = {}
    for e, g in built:
        rule = e.origin.rpartition("/")[2]
        g.id = str(uuid.uuid5(_IDS, f"{feed} {rule}"))
        g.meta = {_OURS: {"table": e.table, "rule": rule}}
        by_table.setdefault(e.table, []).append(g)
    for table, expectations in by_table.items():
        name = suite_name(feed, table)
        meta = {_OURS: {"feed": feed, "table": table}}
        configured = [g.configuration for g in expectations]  # objects with an id count as those of another suite
        yield ExpectationSuite(name, expectations=configured, meta=meta, id=str(uuid.uuid5(_IDS, name)))


def _refuse_others(context: FileDataContext, suites: Sequence[ExpectationSuite], *, force: bool) -> None:
    """Raise ConfigError for a suite of the same name that an export did not write."""
    there = {s.name: s for s in context.suites.all()}
    others = [s.name for s in suites if s.name in there and _OURS not in (there[s.name].meta or {})]
    if others and not force:
        raise ConfigError(
            f"--gx: the project has a suite {others[0]} that Tidelake did not write; nothing is written",
            remedy="give another folder, or add --force to overwrite it",
        )


def _store(
    context: FileDataContext,
    feed: str,
    facts: HourFacts,
    built: Mapping[str, GxExpectation],
    pairs: Sequence[tuple[Expectation, Check]],
) -> None:
    """Store a result of each table's suite."""
    from great_expectations.core.run_identifier import RunIdentifier
    from great_expectations.data_context.types.resource_identifiers import ExpectationSuiteIdentifier, ValidationResultIdentifier

    run = RunIdentifier(run_name=facts.hour, run_time=parse_hour(facts.hour))
    by_table: dict[str, list[tuple[GxExpectation, Check]]] = {}
    for e, c in pairs:
        by_table.setdefault(e.table, []).append((built[e.origin], c))
    for table, of_table in by_table.items():
        name = suite_name(feed, table)
        key = ValidationResultIdentifier(ExpectationSuiteIdentifier(name), run, f"cut_{facts.cut}" if facts.cut else facts.status)
        context.validation_results_store.set(key, suite_result(name, facts, of_table, {"run_id": run}))
