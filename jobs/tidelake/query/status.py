"""State of a feed: landed, decoded and published hours, tables, quarantine. Reads only the lake, without Spark."""

from __future__ import annotations

from typing import Any

from tidelake.config.lake_paths import decoded, events_table
from tidelake.errors import OrderError
from tidelake.lake.cut import Cut
from tidelake.lake.cuts import first_held, newest_cut
from tidelake.lake.decisions import by_decision, rejected
from tidelake.lake.opened import Lake
from tidelake.land.store.manifest import generations
from tidelake.order.incomplete import known
from tidelake.order.progress import progress
from tidelake.order.schema_mismatches import mismatch_groups
from tidelake.query.cut_changes import changed_tables
from tidelake.query.origins import differences, origin

Status = dict[str, Any]


def feed_status(lake: Lake) -> Status:
    """Return what `tidelake status` shows, ready for JSON. TSOs are integers, None where there is none yet."""
    feed, store = lake.feed.name, lake.store
    cut = newest_cut(lake.catalog, store, feed)
    landed, done = generations(store, feed), _decoded_hours(lake)
    first = first_held(lake.catalog, store, cut) if cut else None
    resolved, waits = _resolved(lake, cut, landed, done)
    return {
        "feed": feed,
        "protocol": lake.feed.protocol,
        "resolved_ts": resolved,
        "published_ts": cut.resolved_ts if cut else None,
        "cut": cut.seq if cut else None,
        "seeded_ts": cut.seeded_ts or None if cut else None,
        "published_hour": cut.hour if cut else None,
        "cut_hours": sorted(cut.generations) if cut else [],
        "published_at_ms": cut.published_at_ms if cut else None,
        "incomplete": bool(cut and cut.incomplete),
        "incomplete_because": [r.model_dump() for r in known(cut)] if cut else [],
        "hours": [_hour(hour, n, done, cut, first) for hour, n in landed.items()],
        "tables": _tables(lake, cut),
        "quarantine": _quarantined(lake, list(landed)),
        "waits_for": waits,
        "definitions": differences(lake.catalog, store, lake.feed, cut),
    }


def _decoded_hours(lake: Lake) -> set[str]:
    prefix = decoded(lake.feed.name)
    return {o.key.removeprefix(prefix).removeprefix("hour=").removesuffix(".json") for o in lake.store.objects(prefix)}


def _resolved(lake: Lake, cut: Cut | None, landed: dict[str, int], done: set[str]) -> tuple[int | None, str | None]:
    """Return (resolved ts of the newest hour that is landed and decoded, what a later one waits for)."""
    published = cut.resolved_ts if cut else None
    ready = [hour for hour in landed if hour in done]
    if not ready or (cut is not None and ready[-1] <= cut.hour):
        return published, None
    events = lake.catalog.find_own(events_table(lake.feed.name), lake.feed.name)
    if events is None:
        return published, None
    try:
        return progress(lake.feed, lake.store, events, cut, ready[-1]).resolved_ts, None
    except OrderError as e:
        return published, str(e)


def _hour(hour: str, generation: int, done: set[str], cut: Cut | None, first: str | None) -> Status:
    """State of an hour. first: the first hour that the cuts cover; hours before it are not published."""
    stage = "published" if cut is not None and (first or "") <= hour <= cut.hour else "decoded" if hour in done else "landed"
    return {"hour": hour, "generation": generation, "stage": stage}


def _tables(lake: Lake, cut: Cut | None) -> dict[str, Status]:
    """State of each table at the cut. changed: numbers of changes that the cut applied, None for a table that it left as it was."""
    if cut is None:
        return {}
    changed = changed_tables(lake, cut)
    alive = sorted(cut.catalog.alive(), key=lambda i: i.name)
    return {
        i.name: {
            "rows": t.rows,
            "snapshot_ts": cut.resolved_ts,
            "table": t.identifier,
            "snapshot_id": t.snapshot_id,
            "key": bool(i.key),
            "types": origin(i),
            "changed": changed.get(i.name),
        }
        for i in alive
        if (t := cut.snapshots.get(i.id)) is not None
    }


def _quarantined(lake: Lake, hours: list[str]) -> int:
    """Count the rejected messages and the groups of rows that fit no table, without a decision."""
    feed, events = lake.feed.name, lake.catalog.find_own(events_table(lake.feed.name), lake.feed.name)
    if events is None:
        return 0
    found = mismatch_groups(lake.catalog, lake.store, feed)
    if any(f.rows for f in events.files({"kind": "rejected"}, [], events.main)):  # file metrics: if nothing was rejected, no row is read
        found += rejected(events, hours)
    return len(by_decision(lake.store, feed, found)[0])
