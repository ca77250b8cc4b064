"""Published cuts: find the newest, the one for a TSO, and record a new one."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from tidelake.errors import StorageError
from tidelake.lake.catalog import LakeCatalog, LakeColumn
from tidelake.lake.cut import Cut
from tidelake.lake.events import SYSTEM_OWNER
from tidelake.layout import SYSTEM, cut_key, cuts, published_table
from tidelake.storage import Store

_COLUMNS = (
    ("feed", "string"),
    ("seq", "bigint"),
    ("hour", "string"),
    ("applied_ts", "bigint"),
    ("resolved_ts", "bigint"),
    ("published_at", "timestamp"),
    ("incomplete", "boolean"),
    ("database", "string"),
    ("table", "string"),
    ("incarnation", "string"),
    ("identifier", "string"),
    ("uuid", "string"),
    ("snapshot_id", "bigint"),
    ("rows", "bigint"),
    ("expired", "boolean"),
)


def places(newest: Cut) -> dict[str, str]:
    """Where every physical table of the feed is now: uuid → identifier."""
    return newest.past | {t.uuid: t.identifier for t in (*newest.snapshots.values(), *newest.changelogs.values())}


def newest_cut(catalog: LakeCatalog, store: Store, feed: str) -> Cut | None:
    """The feed's newest published cut: the last document, unless it was written by a publishing that is not finished."""
    keys = [o.key for o in store.objects(cuts(feed))]
    for key in reversed(keys[-2:]):
        cut = Cut.model_validate_json(store.read(key))
        if is_published(catalog, feed, cut.seq):
            return cut
    return None


def is_published(catalog: LakeCatalog, feed: str, seq: int) -> bool:
    """Whether the cut stands in the table of published cuts."""
    table = catalog.find(published_table())
    return table is not None and any(batch.num_rows for batch in table.scan({"feed": feed, "seq": seq}, ["seq"]))


def published(catalog: LakeCatalog, feed: str) -> dict[int, int]:
    """All published cuts that can be read: number → resolved ts."""
    return {seq: resolved for seq, (resolved, expired) in _published(catalog, feed).items() if not expired}


def _published(catalog: LakeCatalog, feed: str) -> dict[int, tuple[int, bool]]:
    """Number → (resolved ts, whether upkeep let it go)."""
    table = catalog.find(published_table())
    if table is None:
        return {}
    names = [c.name for c in table.columns() if c.name in ("seq", "resolved_ts", "expired")]
    rows = [r for batch in table.scan({"feed": feed}, names) for r in batch.to_pylist()]
    return {r["seq"]: (r["resolved_ts"], bool(r.get("expired"))) for r in rows}


def read_cut(store: Store, feed: str, seq: int) -> Cut:
    """A published cut's document. Raises StorageError if it is missing."""
    return Cut.model_validate_json(store.read(cut_key(feed, seq)))


def cut_for(catalog: LakeCatalog, store: Store, feed: str, ts: int) -> tuple[Cut | None, Cut]:
    """(the newest cut at or before ts, the first cut at or after it); equal if ts is a cut.

    Raises StorageError: NOT_PUBLISHED for a ts after the newest cut, NOT_RETAINED for one before the oldest that upkeep kept.
    """
    every = _published(catalog, feed)
    seqs = {seq: resolved for seq, (resolved, expired) in every.items() if not expired}
    newest = max(seqs.values(), default=None)
    if newest is None or ts > newest:
        until = "nothing is published yet" if newest is None else f"the newest cut is at {newest}"
        raise StorageError(f"feed {feed}: TSO {ts} is not published: {until}", code="NOT_PUBLISHED")
    after = min((s for s, r in seqs.items() if r >= ts))
    exact = max((s for s, r in seqs.items() if r == ts), default=None)
    if exact is not None:
        cut = read_cut(store, feed, exact)
        return cut, cut
    before = max((s for s, r in seqs.items() if r < ts), default=None)
    if before is None and any(expired and resolved < seqs[after] for resolved, expired in every.values()):
        raise StorageError(
            f"feed {feed}: TSO {ts} is before the oldest cut that is kept, at {seqs[after]}",
            code="NOT_RETAINED",
            remedy="keep_cuts and keep_daily under [upkeep] in feed.toml say how long cuts are kept",
        )
    return (read_cut(store, feed, before) if before is not None else None), read_cut(store, feed, after)


def record(catalog: LakeCatalog, store: Store, cut: Cut) -> None:
    """Make a cut the published one: its document, then its rows in the table that other engines read, in one commit. Repeatable."""
    store.put_if_absent(cut_key(cut.feed, cut.seq), cut.model_dump_json(indent=1).encode())
    if is_published(catalog, cut.feed, cut.seq):
        return
    ensure_published(catalog)
    rows = pa.Table.from_pylist(_rows(cut), schema=catalog.load(published_table()).table.schema().as_arrow())
    catalog.append(published_table(), rows, {"tidelake.feed": cut.feed, "tidelake.cut": str(cut.seq)})


def ensure_published(catalog: LakeCatalog) -> None:
    """The table, with the columns that an earlier version did not write."""
    there = catalog.find(published_table())
    if there is None:
        _create(catalog)
    elif "expired" not in {c.name for c in there.columns()}:
        catalog.evolve(published_table(), lambda update: update.union_by_name(pa.schema([("expired", pa.bool_())])))


def _create(catalog: LakeCatalog) -> None:
    catalog.claim_namespace(SYSTEM, SYSTEM_OWNER)
    try:
        catalog.create(published_table(), [LakeColumn(name=name, type=kind) for name, kind in _COLUMNS])
    except StorageError as e:
        if e.code != "TABLE_EXISTS":  # another feed was first
            raise


def _rows(cut: Cut) -> list[dict[str, object]]:
    common = {
        "feed": cut.feed,
        "seq": cut.seq,
        "hour": cut.hour,
        "applied_ts": cut.applied_ts,
        "resolved_ts": cut.resolved_ts,
        "published_at": datetime.fromtimestamp(cut.published_at_ms / 1000, UTC),
        "incomplete": cut.incomplete,
    }
    tables = [
        common
        | {"database": i.names[-1].database, "table": i.names[-1].table, "incarnation": i.id}
        | cut.snapshots[i.id].model_dump(include={"identifier", "uuid", "snapshot_id", "rows"})
        for i in cut.catalog.alive()
        if i.id in cut.snapshots
    ]
    return tables or [common]
