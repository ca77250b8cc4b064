"""The compact stage: staged changelogs ⊕ snapshots → snapshots, on a branch; checked; then published as one cut.

Tables that the window does not touch get no commit. The choice of what is rewritten follows from counts and stands in the certificate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidelake.compact.fold_tables import fold_tables
from tidelake.compact.fold_target import Changes, Folded, Work, work_of
from tidelake.config.feed import Feed
from tidelake.config.lake_paths import run_key
from tidelake.errors import OrderError, QualityError
from tidelake.history.incarnations import Incarnation
from tidelake.io.documents import find_document
from tidelake.io.storage import Store, open_store
from tidelake.io.texts import plural
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import Cut, ImageCounts, Intent, Staged, TableCounts, TableCut
from tidelake.lake.cut_documents import read_cut
from tidelake.lake.cuts import last_snapshot, places
from tidelake.lake.fold import Fold
from tidelake.lake.names import changelog_name, is_parking, parking_name, retired, snapshot_name, stands_as_before
from tidelake.lake.namespaces import clear_way
from tidelake.lake.staged import read_staged
from tidelake.lake.tables import kept
from tidelake.order.incomplete import refuse
from tidelake.order.offset_rules import findings
from tidelake.publish.replace import redone, replace
from tidelake.publish.steps import carry_out, declare, placed, plan_moves
from tidelake.spark.spread import THREADS
from tidelake.validate.quality.verdict import Check, Verdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactReport:
    """What a compact run did. cut is None where the hour was published before."""

    cut: Cut | None
    certificate: dict[str, Any]


def compact_window(
    session: Callable[[], SparkSession],
    catalog: LakeCatalog,
    feed: Feed,
    hour: str,
    tell: Callable[[str], None] = lambda _: None,
    redo_from: str | None = None,
) -> CompactReport:
    """Fold what order staged and publish it; redo_from: in place of what is published from this hour on.

    Raises QualityError (critical expectations, KEY_NOT_UNIQUE, BEFORE_IMAGES), OrderError (NOT_ORDERED, NOT_VALIDATED, INCOMPLETE),
    StorageError (TAKEN, TABLE_MOVED), OwnershipError (NOT_OURS, NAME_COLLISION).
    """
    started, store = time.time(), open_store(feed.lake.uri)
    cut, staged = read_staged(catalog, store, feed, hour, redo_from)
    if staged is None:
        return CompactReport(cut=None, certificate={})
    verdict, spark = _verdict(store, feed, staged), session()
    alive, needed = staged.cut.catalog.alive(), frozenset(places(cut)) if cut else frozenset()

    def work(i: Incarnation) -> Work:
        return _work(catalog, feed, staged, i, _since(catalog, store, cut, staged, i), needed)

    def tell_of(name: str, done: Folded) -> None:
        tell(f"{name}: {done.table.rows} rows, rewrote {done.written}")
        if done.images is not None and done.images.found:
            tell(f"{name}: {said(done.images)}")

    with ThreadPoolExecutor(THREADS) as pool:
        works = list(pool.map(work, alive))
    folded = fold_tables(spark, catalog, works, tell_of)
    verdict.checks += _reconciled(feed, {i.name: f.images for i in alive if (f := folded.get(i.id)) and f.images and f.images.compared})
    intent = intent_of(feed, staged, folded)
    if cut is not None and staged.cut.follows is not None:
        replace(catalog, intent, cut)
    clear_way(catalog, intent, needed, tell)
    seconds = staged.seconds | verdict.seconds | {"compact": round(time.time() - started, 3)}
    intent.certificate = proof_of(staged, verdict, folded, cut, intent.cut, seconds)
    if told := [*findings(feed), *staged.findings]:
        intent.certificate["findings"] = told
    if cut is not None and staged.cut.follows is not None:
        intent.certificate["redo"] = redone(spark, catalog, cut, intent)
    refuse(feed, intent.cut)  # what order staged under another policy
    declare(store, intent)
    published = carry_out(catalog, store, intent, tell)
    return CompactReport(cut=published, certificate=intent.certificate)


def _verdict(store: Store, feed: Feed, staged: Staged) -> Verdict:
    verdict = find_document(store, run_key(feed.name, staged.cut.seq, "validate"), Verdict)
    if verdict is None or verdict.run != staged.cut.run:
        remedy = f"run `tidelake validate --feed {feed.name} --hour {staged.cut.hour}` first"
        raise OrderError(f"the window of hour {staged.cut.hour} is not validated", code="NOT_VALIDATED", remedy=remedy)
    verdict.refuse()
    return verdict


def _since(catalog: LakeCatalog, store: Store, newest: Cut | None, staged: Staged, i: Incarnation) -> tuple[int, TableCut | None]:
    """TSO and snapshot that a table goes on from: of an earlier cut where it was dropped and recovered."""
    cut, own = staged.cut, staged.cut.snapshots.get(i.id)
    if own is not None or not i.recovered:
        return cut.applied_ts, own
    base = newest if cut.follows is None else read_cut(store, cut.feed, cut.follows) if cut.follows else None
    since, snapshot = last_snapshot(catalog, store, base, i)
    if snapshot is not None and snapshot.uuid in cut.past:
        snapshot = snapshot.model_copy(update={"identifier": cut.past[snapshot.uuid]})
    return since, snapshot


def _work(
    catalog: LakeCatalog, feed: Feed, staged: Staged, i: Incarnation, base: tuple[int, TableCut | None], needed: frozenset[str]
) -> Work:
    """What is folded of one table. base: TSO and snapshot that it goes on from; needed: uuids of the tables that published cuts need."""
    counts = staged.counts.get(i.id, TableCounts())
    advance = staged.changelogs.get(i.id)
    since, snapshot = base
    fold = Fold(
        feed=feed,
        incarnation=i,
        columns=kept(feed, i, i.columns),
        applied_ts=since,
        until_ts=staged.cut.resolved_ts,
        by_arrival=feed.by_arrival,
    )
    changes, earlier = None, staged.cut.changelogs.get(i.id)
    if advance is not None:
        of_window = counts if since == staged.cut.applied_ts else None
        changes = Changes(table=catalog.load(advance.identifier), snapshot_id=advance.to, counts=of_window)
    elif since < staged.cut.applied_ts and earlier is not None:
        changes = Changes(table=catalog.load(earlier.identifier), snapshot_id=earlier.snapshot_id, counts=None)
    buckets = advance.buckets if advance else earlier.buckets if earlier else 1
    return work_of(catalog, fold, changes, snapshot, staged.cut.run, buckets, needed)


def _reconciled(feed: Feed, images: dict[str, ImageCounts]) -> list[Check]:
    """One check a table: whether its changes fit what stood here. Raises QualityError (BEFORE_IMAGES) where the policy is to block."""
    blocks = feed.policy.on_before_image == "block"
    checks = [
        Check(
            table=name,
            rule="old values fit the snapshot",
            severity="critical" if blocks else "warning",
            success=not c.found,
            expected="every change finds the row that it says it replaces",
            observed=said(c),
            unexpected=c.found,
            examples=c.examples,
        )
        for name, c in sorted(images.items())
    ]
    failed = [c for c in checks if not c.success]
    if blocks and failed:
        first = failed[0]
        raise QualityError(
            f"{first.table}: {first.observed}; the first: {first.examples[0] if first.examples else '-'}; changes were lost before this "
            "window, or the snapshot is wrong; nothing of the window is published",
            code="BEFORE_IMAGES",
            remedy='find out what was lost; to publish all the same and be warned, set [policy] on_before_image = "warn"',
        )
    return checks


def said(c: ImageCounts) -> str:
    """What became of a table's old values, for people."""
    columns = ", ".join(f"{name} {n:,}" for name, n in sorted(c.columns.items()))
    found = (
        (c.differs, f"{plural(c.differs, 'change')} with another old row than stood here ({columns})"),
        (c.missing, f"{plural(c.missing, 'change')} of a row that did not stand here"),
        (c.twice, f"{plural(c.twice, 'insert')} of a row that stood here"),
    )
    return f"{plural(c.compared, 'row')} compared" + "".join(f"; {text}" for n, text in found if n)


def intent_of(feed: Feed, staged: Staged, folded: dict[str, Folded]) -> Intent:
    """What publishes these folded tables and staged changelogs. folded: by incarnation."""
    cut = staged.cut.model_copy(deep=True)
    alive = {i.id: i for i in cut.catalog.alive()}
    gone = {i: t for i, t in cut.snapshots.items() if i not in alive}
    cut.snapshots = {i: folded[i].table if i in folded else t for i, t in cut.snapshots.items() if i in alive}
    cut.snapshots |= {i: f.table for i, f in folded.items()}
    cut.past = {u: identifier for u, identifier in cut.past.items() if u not in {t.uuid for t in cut.snapshots.values()}}
    replaced = [f.replaced for f in folded.values() if f.replaced is not None]
    now, wanted = dict[str, str](), dict[str, str]()
    for t in [*gone.values(), *replaced]:
        now[t.uuid], wanted[t.uuid] = t.identifier, retired(t.identifier, t.uuid)
        cut.past[t.uuid] = wanted[t.uuid]
    for i, t in cut.snapshots.items():
        now[t.uuid], wanted[t.uuid] = t.identifier, snapshot_name(feed, alive[i])
    for i, t in cut.changelogs.items():
        now[t.uuid] = t.identifier
        wanted[t.uuid] = changelog_name(feed, alive[i]) if i in alive else _kept(t)
    moves = plan_moves(now, wanted | _staying(feed, alive, cut, wanted))
    cut.snapshots = {i: placed(t, moves) for i, t in cut.snapshots.items()}
    cut.changelogs = {i: placed(t, moves) for i, t in cut.changelogs.items()}
    advances = [*staged.changelogs.values(), *(f.advance for f in folded.values())]
    return Intent(cut=cut, advances=advances, moves=moves)


def _staying(feed: Feed, alive: Mapping[str, Incarnation], cut: Cut, wanted: Mapping[str, str]) -> dict[str, str]:
    """Tables that stay where an earlier version put them, though new ones would be called otherwise; unless another needs the name."""
    every = [(i, t) for tables in (cut.snapshots, cut.changelogs) for i, t in tables.items() if i in alive]
    old = {t.uuid: t.identifier for i, t in every if stands_as_before(feed, alive[i], t.identifier)}
    return {u: identifier for u, identifier in old.items() if identifier not in {name for v, name in wanted.items() if v != u}}


def _kept(t: TableCut) -> str:
    """A dropped table's changelog leaves its name once."""
    return t.identifier if is_parking(t.identifier) else parking_name(t.identifier, t.uuid)


def _of_fold(f: Folded) -> dict[str, Any]:
    images = {"before_images": f.images.model_dump(exclude_defaults=True)} if f.images and f.images.compared else {}
    return {"written": f.written, "missing": f.missing} | images


def proof_of(
    staged: Staged, verdict: Verdict, folded: dict[str, Folded], previous: Cut | None, cut: Cut, seconds: dict[str, float]
) -> dict[str, Any]:
    """What the certificate says but for the tables' final snapshot ids. previous: the newest cut before; seconds: by stage."""
    tables = {i.id: i for i in cut.catalog.incarnations.values()}
    before = previous.snapshots if previous else {}
    rows = {
        tables[i].name: staged.counts.get(i, TableCounts()).model_dump(exclude_defaults=True)
        | {"rows_before": before[i].rows if i in before else 0, "rows_after": t.rows}
        | (_of_fold(folded[i]) if i in folded else {})
        for i, t in cut.snapshots.items()
    }
    rows |= {tables[i].name: c.model_dump(exclude_defaults=True) for i, c in staged.counts.items() if i not in cut.snapshots}
    return {
        "feed": cut.feed,
        "cut": cut.seq,
        "hour": cut.hour,
        "applied_ts": cut.applied_ts,
        "resolved_ts": cut.resolved_ts,
        "incomplete": cut.incomplete,
        "incomplete_because": [r.model_dump() for r in cut.incomplete_because],
        "accepted": cut.accepted,
        "run": cut.run,
        "version": cut.version,
        "generations": cut.generations,
        "resolved_ts_by_partition": cut.watermarks,
        "offsets": cut.prefixes,
        "messages": staged.messages,
        "message_bytes": staged.message_bytes,
        "events": staged.kinds,
        "rejected": staged.rejected,
        "seeded_events": staged.seeded_events,
        "late_events": staged.late_events,
        "late": {name: c.model_dump(exclude_defaults=True) for name, c in staged.late.items()},
        "waiting_events": staged.waiting_events,
        "rows": rows,
        "ddl": [{"commit_ts": e.commit_ts, "query": e.query, "effect": e.effect, "why": e.why} for e in cut.ledger],
        "expectations": verdict.summary(),
        "seconds": seconds,
    }
