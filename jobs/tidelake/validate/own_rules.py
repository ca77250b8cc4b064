"""Judges the expectations of a feed's files: about numbers of rows from counts, all others on a table's new row images.

Few rows are judged in this process if every rule of the table means the same there (quality/small_windows.py), else by Spark.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.config.feed import Feed
from tidelake.history.contract import Expectation, read_expectations
from tidelake.lake.cut import Staged, TableCounts
from tidelake.lake.opened import Lake
from tidelake.lake.tables import PARTIAL
from tidelake.spark.sql_text import literal
from tidelake.validate.broken_rows import index_columns
from tidelake.validate.quality.basis import basis_of
from tidelake.validate.quality.judge import Measure, judge_frame
from tidelake.validate.quality.judge_counts import ChangeCounts, count_measures
from tidelake.validate.quality.judge_sample import judge_sample
from tidelake.validate.quality.rule_rows import with_rows
from tidelake.validate.quality.small_windows import as_on_spark
from tidelake.validate.quality.verdict import Check
from tidelake.validate.written import KINDS, WrittenCounts, appended, as_frame, rows_at_hand

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)

_CHANGE_TYPE = "_change_type"
_IMAGES = ("INSERT", "UPDATE_AFTER")  # new row images
Rules = Mapping[str, Sequence[Expectation]]


def own_rules(feed: Feed, staged: Staged) -> Rules:
    """Return the expectations of tables that have changes, by incarnation."""
    names = {i.name: i.id for i in staged.cut.catalog.alive() if i.id in staged.changelogs}
    out: dict[str, list[Expectation]] = {}
    for e in read_expectations(feed.folder):
        if e.table in names:
            out.setdefault(names[e.table], []).append(e)
    return out


def judged_by_counts(own: Rules, found: Mapping[str, WrittenCounts], staged: Staged) -> tuple[list[Measure], list[Check]]:
    """Return measures of the rules about numbers of rows, and failed checks of those that cannot be validated."""
    measures, refused = list[Measure](), list[Check]()
    for i, rules in own.items():
        counts = ChangeCounts(new_rows=_new_rows(found[i], staged.counts[i]), by_type={kind: found[i][kind] for kind in KINDS})
        counted, wrong = count_measures((e for e in rules if basis_of(e) == "counts"), counts)
        measures += counted
        refused += wrong
    return measures, refused


def judged_by_rows(lake: Lake, own: Rules, found: Mapping[str, WrittenCounts], staged: Staged) -> list[Check]:
    """Return the checks of all other rules. Tables without new rows are left out: aggregates over no rows mean nothing."""
    checks, tables = list[Check](), staged.cut.catalog.incarnations
    for i, rules in own.items():
        others = [e for e in rules if basis_of(e) != "counts"]
        if not others or not _new_rows(found[i], staged.counts[i]):
            continue
        log.info(f"{tables[i].name}: {len(others)} expectations")
        changelog = lake.catalog.load(staged.changelogs[i].identifier)
        index = partial(index_columns, changelog, tables[i])
        rows = rows_at_hand(changelog, staged.changelogs[i], staged.counts[i].changes)
        if rows is not None and all(as_on_spark(e, rows.schema) for e in others):
            checks += _by_pandas(rows, others, index)
        else:
            frame = appended(lake.spark, staged.changelogs[i]) if rows is None else as_frame(lake.spark, rows)
            checks += _by_spark(frame, others, index)
    return checks


def _by_pandas(rows: pa.Table, rules: Sequence[Expectation], index: Callable[[], Sequence[str]]) -> list[Check]:
    images = _images(rows).to_pandas(integer_object_nulls=True, timestamp_as_object=True)  # as floats, large integers would be rounded
    checks = judge_frame(images, rules, "pandas")
    return with_rows(images, rules, checks, index(), "pandas") if any(not c.success for c in checks) else checks


def _images(rows: pa.Table) -> pa.Table:
    """The new row images, without partial rows."""
    images = rows.filter(pc.is_in(rows[_CHANGE_TYPE], pa.array(_IMAGES)))
    return images.filter(pc.invert(pc.fill_null(images[PARTIAL.name], False))) if PARTIAL.name in images.column_names else images


def _by_spark(frame: DataFrame, rules: Sequence[Expectation], index: Callable[[], Sequence[str]]) -> list[Check]:
    """The checks of rules about a table's new row images, partial rows left out. index: gives the columns that name a row."""
    whole = " AND NOT coalesce(_partial, false)" if PARTIAL.name in frame.columns else ""
    images = frame.where(f"{_CHANGE_TYPE} IN ({', '.join(literal(kind) for kind in _IMAGES)}){whole}").persist()
    sampled = [e for e in rules if basis_of(e) == "sample"]
    others = [e for e in rules if basis_of(e) != "sample"]
    checks = judge_frame(images, others)
    if any(not c.success for c in checks):
        checks = with_rows(images, others, checks, index())
    if sampled:
        checks += judge_sample(images, sampled, index())
    images.unpersist()
    return checks


def _new_rows(counted: WrittenCounts, c: TableCounts) -> int:
    """Number of new row images, without partial rows."""
    return max(sum(counted[kind] for kind in _IMAGES) - c.partial, 0)
