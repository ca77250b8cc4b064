"""Stages a window's changes on a branch of a table's changelog."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any

from tidelake.config.lake_paths import CATALOG, MAIN, cut_of_branch
from tidelake.errors import OrderError
from tidelake.history.event import CHECKSUMS
from tidelake.history.projection import lived
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut import Advance, TableCounts, TableCut
from tidelake.lake.names import changelog_name, taking, vacant
from tidelake.lake.tables import create_changelog, grow_changelog, physical
from tidelake.order.sql.invalid_values import invalid_value_examples
from tidelake.order.sql.rows import TableRows, changes, counters, deduplicated, typed
from tidelake.spark.observed_counts import Observed
from tidelake.spark.sql_casts import LOSSES, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_OPEN_FILES = 32  # maximum open files of a task, each with its buffers


def stage_changelog(
    catalog: LakeCatalog, rows: DataFrame, table: TableRows, branch: str, previous: TableCut | None, kept: Container[str]
) -> tuple[Advance | None, TableCounts]:
    """Write one table's changes of the window to a branch of its changelog. Return (advance or None if there were none, counts).

    Args:
        catalog: The lake's catalog.
        rows: The table's row events of the window, with `replay_epoch` and `content` if it has no key, `unsettled` for Avro.
        table: The table.
        branch: Name of the branch.
        previous: The changelog at the last cut, if any.
        kept: UUIDs of the tables that published cuts need.

    Raises:
        OrderError: HANDLE_ONLY: partial rows of a table without a key cannot be identified.
    """
    from pyspark.sql import functions as F

    target, base = open_changelog(catalog, table, previous, kept)
    begin_branch(catalog, target, branch, base)
    marks = [F.coalesce(F.sum(F.col(m).cast("int")), F.lit(0)).alias(m) for m in ("unsettled", "undated") if m in rows.columns]
    sums = [F.count(F.when(F.col("checksum") == word, 1)).alias(word) for word in CHECKSUMS]
    before = Observed(rows, F.count(F.lit(1)).alias("events"), *marks, *sums)

    def distinct(events: DataFrame) -> DataFrame:
        return deduplicated(typed(events, table), table)

    after = Observed(distinct(before.rows), *_measures(table), again=lambda: distinct(rows))
    names = {p.column.id: physical(target.columns(), p.column.id)[0].name for p in table.projections}
    frame = all_columns(changes(after.rows, table, names), target)
    writer = frame.writeTo(sql_name(target.identifier, branch)).option("snapshot-property.tidelake.run", branch)
    if table.buckets * table.hours <= _OPEN_FILES and not table.feed.by_offsets:
        # They come sorted but for updates that leave a bucket. Iceberg's own sort takes a third of the stage: it evaluates the
        # transforms of both rows for each comparison.
        writer = writer.option("use-table-distribution-and-ordering", "false").option("fanout-enabled", "true")
    writer.append()
    counts = counts_of(table, before.values(), after.values())
    if counts.partial and not table.incarnation.key:
        raise OrderError(
            f"{counts.partial} rows of {table.incarnation.name}, which has no key, arrived with only their handle",
            code="HANDLE_ONLY",
            remedy='say the table\'s key in tables.sql, or set handle_only = "quarantine" and decode the hours again',
        )
    if counts.invalid_values:
        counts = counts.model_copy(update={"invalid_value_examples": invalid_value_examples(rows, table, counts.invalid_values)})
    advance, written = advanced(catalog, table, catalog.load(target.identifier), branch, base, previous)
    return advance, counts.model_copy(update={"changes": written})


def open_changelog(catalog: LakeCatalog, table: TableRows, previous: TableCut | None, kept: Container[str]) -> tuple[LakeTable, int]:
    """Return (a changelog with all columns of the window, the snapshot that a branch begins at)."""
    target = _target(catalog, table, previous, kept)
    return target, previous.snapshot_id if previous else target.main


def advanced(
    catalog: LakeCatalog, table: TableRows, staged: LakeTable, branch: str, base: int, previous: TableCut | None
) -> tuple[Advance | None, int]:
    """Return (how far the branch advances, or None; number of rows that it adds). Without new rows, remove what was created for them.

    staged: the changelog as it is now.
    """
    head = staged.branch(branch) if branch in staged.branches else base
    written = _rows(staged, head) - _rows(staged, base)
    if not written:
        if previous is None:  # no cut refers to it, and another incarnation of the window may need its name
            catalog.drop(staged.identifier, table.feed.name)
        elif branch in staged.branches:
            catalog.drop_branches(staged, [branch])
        return None, 0
    advance = Advance(
        identifier=staged.identifier,
        uuid=staged.uuid,
        base=base,
        to=head,
        branch=branch,
        incarnation=table.incarnation.id,
        buckets=table.buckets,
    )
    return advance, written


def _rows(changelog: LakeTable, snapshot_id: int) -> int:
    return int(changelog.summary(snapshot_id).get("total-records", 0))


def sql_name(identifier: str, branch: str = MAIN) -> str:
    """Return the Spark SQL name of a table or of its branch."""
    parts = [CATALOG, *identifier.split("."), *([] if branch == MAIN else [f"branch_{branch}"])]
    return ".".join(quote(p) for p in parts)


def begin_branch(catalog: LakeCatalog, table: LakeTable, branch: str, base: int) -> None:
    """Create a fresh branch at base; drop branches of earlier attempts."""
    catalog.drop_branches(table, [b for b in table.branches if cut_of_branch(b) is not None])
    catalog.set_branch(catalog.load(table.identifier), branch, base)


def _target(catalog: LakeCatalog, table: TableRows, previous: TableCut | None, kept: Container[str]) -> LakeTable:
    """The changelog with all columns of the window."""
    i, columns = table.incarnation, lived(table.incarnation)
    if previous is not None:
        return grow_changelog(catalog, table.feed, i, catalog.load(previous.identifier), columns)
    wanted = changelog_name(table.feed, i)
    with taking(wanted):
        identifier = vacant(catalog, table.feed.name, wanted, i, kept)
        return create_changelog(catalog, table.feed, i, identifier, columns, table.buckets)


def all_columns(frame: DataFrame, target: LakeTable) -> DataFrame:
    """Return the frame with the table's columns in order; retired ones are NULL."""
    have = set(frame.columns)
    spelled = (quote(c.name) if c.name in have else f"CAST(NULL AS {c.type}) AS {quote(c.name)}" for c in target.columns())
    return frame.selectExpr(*spelled)


def _measures(table: TableRows) -> list[Any]:
    from pyspark.sql import functions as F

    def count(condition: str, name: str) -> Any:
        return F.coalesce(F.sum(F.expr(f"CAST({condition} AS INT)")), F.lit(0)).alias(name)

    key = bool(table.incarnation.key)
    return [
        F.count(F.lit(1)).alias("distinct"),
        *(count(f"op = '{op}'", f"{op}s") for op in ("insert", "update", "delete", "upsert")),
        count("moved", "key_changes"),
        count("op = 'update' AND NOT has_before", "updates_without_before_image"),
        count("partial AND op != 'delete'" if key else "partial", "partial"),
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in counters(table)),
    ]


def counts_of(table: TableRows, before: dict[str, Any], after: dict[str, Any]) -> TableCounts:
    names = {p.column.id: p.column.name for p in table.projections}
    found: dict[str, dict[str, int]] = {kind: {} for kind in LOSSES}
    for measure in counters(table):
        kind, _, number = measure.rpartition("_")
        if after.get(measure):
            found[kind][names[int(number)]] = after[measure]
    events = before.get("events", 0)
    plain = {
        k: after.get(k, 0) for k in ("inserts", "updates", "deletes", "upserts", "key_changes", "updates_without_before_image", "partial")
    }
    plain |= {"events": events, "duplicates": events - after.get("distinct", 0)}
    plain |= {m: before.get(m, 0) for m in ("unsettled", "undated")}
    checksums = {word: n for word in CHECKSUMS if (n := before.get(word, 0))}
    return TableCounts.model_validate(
        plain | found | {"checksums": checksums, "untrusted": _untrusted(table), "key_only_deletes": table.key_only_deletes}
    )


def _untrusted(table: TableRows) -> list[str]:
    """Columns whose values Craft's encoder damages."""
    if table.feed.protocol != "craft":
        return []
    return [p.column.name for p in table.projections if any(place.type.word == "float" for place in p.places)]
