"""The compact stage: folds staged changelogs into snapshots, on a branch of this run. `publish` makes them visible.

Tables without changes get no commit. Counts decide what is rewritten; the certificate has the decision.
"""

from __future__ import annotations

import logging
from functools import partial

from tidelake.compact.fold_tables import fold_tables
from tidelake.compact.fold_target import ChangelogSlice, Folded, FoldWork, work_of
from tidelake.history.incarnations import Incarnation
from tidelake.io.texts import plural
from tidelake.lake.cut import Cut, Staged, TableCounts, TableCut
from tidelake.lake.cut_documents import read_cut
from tidelake.lake.cuts import last_snapshot, places
from tidelake.lake.folding.fold import Fold
from tidelake.lake.folding.images import described
from tidelake.lake.opened import Lake
from tidelake.lake.tables import kept

log = logging.getLogger(__name__)


def fold_window(lake: Lake, newest: Cut | None, staged: Staged) -> dict[str, Folded]:
    """Fold every table that the window changes.

    Args:
        lake: The feed's lake.
        newest: The newest published cut.
        staged: The staged window.

    Returns:
        The result for each table, by incarnation.

    Raises:
        QualityError: KEY_NOT_UNIQUE.
    """
    needed = frozenset(places(newest)) if newest else frozenset()

    def work(i: Incarnation) -> FoldWork:
        return _work(lake, staged, i, _since(lake, newest, staged, i), needed)

    return fold_tables(lake.workers, lake.catalog, [partial(work, i) for i in staged.cut.catalog.alive()], _log)


def _log(name: str, done: Folded) -> None:
    log.info(f"{name}: {plural(done.table.rows, 'row')}, rewrote {done.written}")
    if done.images is not None and done.images.found:
        log.info(f"{name}: {described(done.images)}")


def _since(lake: Lake, newest: Cut | None, staged: Staged, i: Incarnation) -> tuple[int, TableCut | None]:
    """TSO and snapshot that a table continues from: of an earlier cut if it was dropped and recovered."""
    cut, own = staged.cut, staged.cut.snapshots.get(i.id)
    if own is not None or not i.recovered:
        return cut.applied_ts, own
    base = newest if cut.parent_seq is None else read_cut(lake.store, cut.feed, cut.parent_seq) if cut.parent_seq else None
    since, snapshot = last_snapshot(lake.catalog, lake.store, base, i)
    if snapshot is not None and snapshot.uuid in cut.past:
        snapshot = snapshot.model_copy(update={"identifier": cut.past[snapshot.uuid]})
    return since, snapshot


def _work(lake: Lake, staged: Staged, i: Incarnation, base: tuple[int, TableCut | None], needed: frozenset[str]) -> FoldWork:
    """The work for one table. base: TSO and snapshot that it continues from; needed: UUIDs of the tables that published cuts need."""
    feed, catalog = lake.feed, lake.catalog
    counts = staged.counts.get(i.id, TableCounts())
    advance = staged.changelogs.get(i.id)
    since, snapshot = base
    fold = Fold(
        feed=feed,
        incarnation=i,
        columns=kept(feed, i, i.columns),
        applied_ts=since,
        until_ts=staged.cut.resolved_ts,
    )
    changes, earlier = None, staged.cut.changelogs.get(i.id)
    if advance is not None:
        after, of_window = (advance.base, counts) if since == staged.cut.applied_ts else (None, None)
        changes = ChangelogSlice(table=catalog.load(advance.identifier), snapshot_id=advance.to, after=after, counts=of_window)
    elif since < staged.cut.applied_ts and earlier is not None:
        changes = ChangelogSlice(table=catalog.load(earlier.identifier), snapshot_id=earlier.snapshot_id, after=None, counts=None)
    buckets = advance.buckets if advance else earlier.buckets if earlier else 1
    return work_of(catalog, fold, changes, snapshot, staged.cut.run, buckets, needed)
