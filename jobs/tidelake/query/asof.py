"""A table at a TSO: the newest cut at or before it plus the changelog after that cut (docs/architecture.md 8.6).

At a cut the query does not need Spark, nor between cuts if the files to fold are small. Snapshots are read by id, so later publications do
not affect the result.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidelake.config.table_name import parse, written
from tidelake.errors import ConfigError, StorageError
from tidelake.history.incarnations import Catalog, Column, Incarnation, Name
from tidelake.lake.branches import sql_name
from tidelake.lake.cut import Cut, TableCut
from tidelake.lake.cuts import KEEP_CHANGES, changelog_retained_after, cut_for, last_snapshot, lineage, newest_cut, places
from tidelake.lake.folding.fold import Fold
from tidelake.lake.folding.table_fold import TableAt
from tidelake.lake.opened import Lake
from tidelake.lake.tables import kept, shown_type
from tidelake.query.render import Rendered
from tidelake.spark.sql_text import quote
from tidelake.tso import show

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidelake.spark.part_reader import PartReader


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """A table's rows at a TSO.

    Attributes:
        name: The table, db.table.
        ts: The TSO.
        columns: Columns to print, in table order.
        rows: The rows in the lake's types.
    """

    name: str
    ts: int
    columns: list[Rendered]
    rows: pa.RecordBatchReader


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAsOf:
    """The tables of a feed at a TSO.

    Attributes:
        ts: The TSO.
        names: Names of the tables that exist at the TSO, by incarnation.
        catalog: The catalog of the first cut that covers the TSO.
        cut: The cut at exactly this TSO, if there is one.
    """

    ts: int
    names: dict[str, str]
    catalog: Catalog
    cut: Cut | None

    def snapshot(self, incarnation: str) -> tuple[str, int] | None:
        """Return the physical table and the snapshot with the table's rows; None between cuts."""
        at = self.cut.snapshots.get(incarnation) if self.cut is not None else None
        return None if at is None else (at.uuid, at.snapshot_id)


def standing(lake: Lake, ts: int | None) -> TableAsOf:
    """Return the feed's tables at a TSO; None means the newest cut.

    Raises:
        StorageError: NOT_PUBLISHED.
    """
    ts, before, after = _cuts(lake, ts)
    alive = ((i, _name_at(i, ts)) for i in after.catalog.incarnations.values())
    names = {i.id: written(n.database, n.table) for i, n in alive if n is not None}
    return TableAsOf(ts=ts, names=names, catalog=after.catalog, cut=before if before is not None and before.resolved_ts == ts else None)


def tables_at(lake: Lake, ts: int | None) -> tuple[int, list[str]]:
    """Return (TSO, sorted names of all tables at it). None means the newest cut."""
    at = standing(lake, ts)
    return at.ts, sorted(at.names.values())


def life_at(lake: Lake, table: str, ts: int | None) -> tuple[int, Incarnation]:
    """Return (TSO, incarnation that has the name at it). Raises what table_asof raises."""
    ts, _, after = _cuts(lake, ts)
    return ts, _named(after.catalog, table, ts)


@contextmanager
def table_asof(lake: Lake, table: str, ts: int | None) -> Iterator[AsOf]:
    """Yield the table that has the name at a TSO.

    Args:
        lake: The feed's lake.
        table: Name, db.table.
        ts: The TSO; None means the newest cut.

    Raises:
        ConfigError: UNKNOWN_TABLE; the message has the times at which the name existed.
        StorageError: NOT_PUBLISHED; NOT_RETAINED: the TSO is between cuts whose changes maintenance removed.
        QualityError: KEY_NOT_UNIQUE: a key occurs twice in the earlier cut.
    """
    ts, before, after = _cuts(lake, ts)
    incarnation = _named(after.catalog, table, ts)
    columns = kept(lake.feed, incarnation, incarnation.columns_at(ts))
    shown = [Rendered(name=c.lake_name, type=shown_type(lake.feed, incarnation, c)) for c in columns]
    newest = newest_cut(lake.catalog, lake.store, lake.feed.name) or after
    if before is not None and before.resolved_ts == ts:
        here = placed_now(newest, before.snapshots[incarnation.id])
        yield AsOf(name=table, ts=ts, columns=shown, rows=_rows(lake, here, columns))
        return
    reader, sizes = _between(lake, incarnation, ts, before, after, newest)
    with tempfile.TemporaryDirectory(prefix="tidelake-asof-") as folder:
        yield AsOf(name=table, ts=ts, columns=shown, rows=lake.workers(sizes).stream(reader, Path(folder)))


def frame_asof(lake: Lake, table: str, ts: int | None, spark: SparkSession) -> DataFrame:
    """Return the table at a TSO as a Spark frame: the source's columns in the lake's types, in table order.

    Raises what table_asof raises.
    """
    from tidelake.spark.part_reader import read_parts

    ts, before, after = _cuts(lake, ts)
    incarnation = _named(after.catalog, table, ts)
    newest = newest_cut(lake.catalog, lake.store, lake.feed.name) or after
    if before is None or before.resolved_ts < ts:
        return read_parts(spark, _between(lake, incarnation, ts, before, after, newest)[0])
    here = placed_now(newest, before.snapshots[incarnation.id])
    frame = spark.read.option("versionAsOf", here.snapshot_id).table(sql_name(here.identifier))
    names = _names(lake, here)
    return frame.selectExpr(
        *(f"{quote(names[c.id])} AS {quote(c.lake_name)}" for c in kept(lake.feed, incarnation, incarnation.columns_at(ts)))
    )


def _names(lake: Lake, at: TableCut) -> dict[int, str]:
    """Return the names of the source's columns in a snapshot, by id. An older version that reserved fewer names may have written it."""
    return {k: name for k, (_, name) in lake.catalog.load(at.identifier).fields(at.snapshot_id).items()}


def _rows(lake: Lake, at: TableCut, columns: Sequence[Column]) -> pa.RecordBatchReader:
    names = _names(lake, at)
    reader = lake.catalog.load(at.identifier).scan(columns=[names[c.id] for c in columns], snapshot_id=at.snapshot_id)
    called = {names[c.id]: c.lake_name for c in columns}
    if all(was == now for was, now in called.items()):
        return reader
    schema = pa.schema([f.with_name(called[f.name]) for f in reader.schema])
    return pa.RecordBatchReader.from_batches(schema, (b.rename_columns(schema.names) for b in reader))


def alive_at(lake: Lake, table: str, ts: int | None) -> tuple[int, Cut, Incarnation]:
    """Return (TSO, first cut that covers it, incarnation that has the name at it). Raises what table_asof raises."""
    ts, _, after = _cuts(lake, ts)
    return ts, after, _named(after.catalog, table, ts)


def lives(catalog: Catalog, table: str) -> str:
    """Say when a name belonged to a table, for messages."""
    names = ((i, n) for i in catalog.incarnations.values() for n in i.lasting_names)
    own = [(i, n) for i, n in names if written(n.database, n.table).lower() == table.lower()]
    if not own:
        known, ts = sorted({i.name for i in catalog.alive()}), catalog.dropped_retained_after
        when = f"no table that was dropped after {show(ts)} or is there now" if ts else "no table ever"
        return f"{when} had that name; tables now: {', '.join(known) or 'none'}"
    alive = {i.name for i in catalog.alive()}
    spans = []
    for incarnation, name in own:
        since = f"from {show(name.after_ts)} " if name.after_ts > 0 else ""
        then = f", is {incarnation.name} now" if incarnation.name in alive else ", was dropped then"
        spans.append(f"{since}until {show(name.until_ts)}{then}" if name.until_ts else f"{since or 'always '}up to now")
    return f"a table had that name {'; '.join(spans)}"


def _cuts(lake: Lake, ts: int | None) -> tuple[int, Cut | None, Cut]:
    if ts is None:
        cut = newest_cut(lake.catalog, lake.store, lake.feed.name)
        if cut is not None:
            return cut.resolved_ts, cut, cut
        ts = 0
    return ts, *cut_for(lake.catalog, lake.store, lake.feed.name, ts)


def _named(catalog: Catalog, table: str, ts: int) -> Incarnation:
    found = catalog.asof(*parse(table), ts)
    if found is None:
        raise ConfigError(f"no table {table!r} at TSO {show(ts)}: {lives(catalog, table)}", code="UNKNOWN_TABLE")
    return found


def _name_at(i: Incarnation, ts: int) -> Name | None:
    return next((n for n in i.names if n.after_ts <= ts and (n.until_ts is None or ts < n.until_ts)), None)


def placed_now(newest: Cut, t: TableCut) -> TableCut:
    """Return a table of a cut with the identifier that its physical table has now."""
    return t.model_copy(update={"identifier": places(newest).get(t.uuid, t.identifier)})


def _between(lake: Lake, i: Incarnation, ts: int, before: Cut | None, after: Cut, newest: Cut) -> tuple[PartReader[Any], list[int]]:
    """Return what reads a table between two cuts, the earlier cut plus the changelog, and the bytes of its parts.

    Raises StorageError (NOT_RETAINED).
    """
    _refuse_gap(lake, i, ts, before, after)
    since, snapshot = last_snapshot(lake.catalog, lake.store, before, i)
    fold = Fold(
        feed=lake.feed,
        incarnation=i,
        columns=kept(lake.feed, i, i.columns_at(ts)),
        applied_ts=since,
        until_ts=ts,
    )
    return _folded(lake, fold, snapshot, after, newest)


def _refuse_gap(lake: Lake, i: Incarnation, ts: int, before: Cut | None, after: Cut) -> None:
    """Raise StorageError (NOT_RETAINED) if changes since the earlier cut, or since the table began, are gone."""
    gone = changelog_retained_after(lake.catalog, lake.feed.name)
    since = before.resolved_ts if before is not None else 0
    if not gone or max(since, i.changes_after) >= gone:
        return
    cuts = " or ".join(show(cut.resolved_ts) for cut in (before, after) if cut is not None)
    first = first_whole(lake, gone)
    raise StorageError(
        f"feed {lake.feed.name}: {i.name} cannot be read at TSO {show(ts)}: changes up to {show(gone)} are not all kept",
        code="NOT_RETAINED",
        remedy=f"use the cut at {cuts}{f', or any TSO from {show(first)} on' if first is not None else ''}; {KEEP_CHANGES}",
    )


def first_whole(lake: Lake, gone: int) -> int | None:
    """Return the TSO of the first cut after which no change is missing; None if there is none yet. gone: the changelog_retained_after."""
    return min((ts for ts in lineage(lake.catalog, lake.feed.name).values() if ts >= gone), default=None)


def _folded(lake: Lake, fold: Fold, snapshot: TableCut | None, after: Cut, newest: Cut) -> tuple[PartReader[Any], list[int]]:
    from tidelake.lake.folding.folded_frame import folded_reader  # imports what folds, which a query at a cut does not need

    def at(t: TableCut | None) -> TableAt | None:
        if t is None:
            return None
        here = placed_now(newest, t)
        return TableAt(lake.catalog.load(here.identifier), here.snapshot_id)

    return folded_reader(fold, at(snapshot), at(after.changelogs.get(fold.incarnation.id)))
