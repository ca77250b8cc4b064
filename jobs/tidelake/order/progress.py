"""How far a feed's changes are complete: the resolved ts M of an hour (docs/architecture.md 7, 8.1).

M is computed from the decode records since the last cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from tidelake.archives import layout_of
from tidelake.config.feed import Feed
from tidelake.config.lake_paths import events_table
from tidelake.decode.record import DecodeRecord, read_record, refusals_named
from tidelake.decode.waiting import held_back
from tidelake.errors import Coordinates, OrderError
from tidelake.history.ordering import resolved_ts
from tidelake.io.storage import Store, open_store
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut import Cut
from tidelake.lake.decisions import Rejected
from tidelake.lake.turns import check_hours, starts_with
from tidelake.land.store.coverage import Coverage, beyond, coverage
from tidelake.land.store.manifest import Manifest, all_newest
from tidelake.land.store.ranges import Range
from tidelake.order.clocks import RESOLVED, ClockAhead, believed_before, checkpoint_counts, counts, marks, recorded_ahead, rows_ahead
from tidelake.order.offset_rules import repeated
from tidelake.order.repeated_offsets import Again
from tidelake.tso import end_ts, parse_hour, show

PartitionTs = dict[str, dict[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowProgress:
    """What is complete by an hour.

    Attributes:
        resolved_ts: M (TSO).
        watermarks: Largest resolved ts of every partition.
        prefixes: Complete offsets of every partition.
        checkpoint_at_ms: When the checkpoint M was recorded (ms), if it is one.
        hours: Hours since the last cut.
        changed: Earlier hours that were decoded again since.
        scan: All hours that may have rows of the window.
        records: Decode records of all these hours and of the last cut's.
        messages: Number of messages.
        message_bytes: Their size.
        again: Offsets that came with earlier hours as well, if hours order the feed.
        objects: First offsets of the landed objects, by topic and partition, if hours order the feed.
        ahead: Ts that cannot be true (order/clocks.py).
        holes: Missing offsets that the resolved ts may have passed, because it is not in the messages.
        held_back: The first row that waits for its table's schema, if the resolved ts stays below it.
        beyond: Hours with offsets after a gap that stops the resolved ts.
    """

    resolved_ts: int
    watermarks: PartitionTs
    prefixes: dict[str, dict[int, Range]]
    checkpoint_at_ms: int | None
    hours: list[str]
    changed: list[str]
    scan: list[str]
    records: dict[str, DecodeRecord]
    messages: int
    message_bytes: int
    again: tuple[Again, ...] = ()
    objects: Mapping[str, Mapping[int, Sequence[int]]] = field(default_factory=dict)
    ahead: tuple[ClockAhead, ...] = ()
    holes: Mapping[Coordinates, Range] = field(default_factory=dict)
    held_back: Rejected | None = None
    beyond: list[str] = field(default_factory=list)


def open_hours(done: WindowProgress) -> list[str]:
    """Return the hours with rows or statements after M, or with offsets after a gap.

    If deletes have no commit ts: also hours with messages from after M's checkpoint was recorded.
    """
    at_ms = done.checkpoint_at_ms
    late = {
        h for h, r in done.records.items() if _last_ts(r) > done.resolved_ts or (at_ms is not None and (r.max_timestamp_ms or 0) > at_ms)
    }
    return sorted({*late, *done.beyond})


def _last_ts(record: DecodeRecord) -> int:
    """Last commit ts of the hour's rows and statements, including rows that wait for their table's schema."""
    return max([record.max_commit_ts or 0, *(w.max_commit_ts for w in record.waiting)])


def progress(feed: Feed, store: Store, events: LakeTable, cut: Cut | None, hour: str, since: str | None = None) -> WindowProgress:
    """Return M and the facts that it is based on.

    Args:
        feed: The feed.
        store: The lake's store.
        events: The events table.
        cut: The last cut, if any.
        hour: The hour that the window ends with.
        since: First hour that counts, if the window does not build on a cut.

    Raises:
        OrderError: HOUR_MISSING, NOT_DECODED, NO_WATERMARK, GAP; each names the place and the remedy.
    """
    manifests = all_newest(store, feed.name, since=starts_with(feed, cut) if since is None else since, until=hour)
    hours = [h for h in manifests if cut is None or h > cut.hour]
    changed = changed_hours(events, cut) if cut else []
    scan = sorted({*(cut.open_hours if cut else ()), *changed, *hours})
    check_hours(feed, cut, manifests, hour)
    every = _older(feed, store, scan, manifests) | manifests
    records = {h: _decoded(feed, store, h, m) for h, m in every.items()}
    file_bits = layout_of(feed.source.layout).file_bits if feed.source.layout else 0
    covered = coverage(every.values(), cut.prefixes if cut else None, file_bits)
    with refusals_named({h: records[h] for h in hours}):
        watermarks, ahead = _watermarks(feed, events, cut, records, covered.prefixes)
        ahead += rows_ahead(feed, events, {h: records[h] for h in hours})
        _refuse_ahead(feed, ahead)
        resolved, at_ms = resolved_now(feed, watermarks, covered, hour, ahead)
    again = repeated(feed, hours, every, cut.prefixes if cut else {}) if feed.by_offsets else ()
    held = _held_back(feed, store, events, [h for h in scan if records[h].waiting], cut, hour, resolved)
    return WindowProgress(
        resolved_ts=resolved if held is None else (held.commit_ts or 0) - 1,
        watermarks=watermarks,
        prefixes=covered.prefixes,
        checkpoint_at_ms=at_ms,
        hours=hours,
        changed=changed,
        scan=scan,
        records=records,
        messages=sum(o.count for h in hours for o in manifests[h].objects),
        message_bytes=sum(o.bytes for h in hours for o in manifests[h].objects),
        again=again,
        objects=_first_offsets(every.values()) if feed.by_offsets else {},
        ahead=tuple(ahead),
        holes={} if feed.watermark.source == "messages" else covered.holes,
        held_back=held,
        beyond=beyond(every, covered.prefixes, file_bits) if feed.watermark.source == "messages" else [],
    )


def _first_offsets(manifests: Iterable[Manifest]) -> dict[str, dict[int, list[int]]]:
    out: dict[str, dict[int, list[int]]] = {}
    for o in sorted((o for m in manifests for o in m.objects), key=lambda o: o.first):
        out.setdefault(o.topic, {}).setdefault(o.partition, []).append(o.first)
    return out


def changed_hours(events: LakeTable, cut: Cut) -> list[str]:
    """Return hours of this cut or before whose events were rewritten after it: a new generation, recovered messages, another decoder."""
    hours = {summary.get("tidelake.hour", "") for summary in events.since(cut.events_snapshot_id)}
    return sorted(h for h in hours if h and h <= cut.hour)


def why_published(catalog: LakeCatalog, feed: Feed, cut: Cut, hour: str) -> str:
    """Say why there is nothing to order for a published hour, and how to publish an hour that was decoded again since."""
    said = f"hour {hour} is published: cut {cut.seq} reaches to hour {cut.hour}"
    events = catalog.find_own(events_table(feed.name), feed.name)
    if events is None or hour not in changed_hours(events, cut):
        return said
    return (
        f"{said}, and contains the hour as decoded before; the next window compares the rows, and "
        f"`tidelake redo --feed {feed.name} --from {hour}` publishes the hour again"
    )


def _older(feed: Feed, store: Store, scan: Sequence[str], manifests: Mapping[str, Manifest]) -> dict[str, Manifest]:
    """Manifests of hours before the last cut's: those still open, and those decoded again."""
    older = [h for h in scan if h not in manifests]
    found = all_newest(store, feed.name, since=older[0], until=older[-1]) if older else {}
    return {h: found[h] for h in older}


def _held_back(
    feed: Feed, store: Store, events: LakeTable, hours: Sequence[str], cut: Cut | None, until: str, resolved: int
) -> Rejected | None:
    """The waiting row that keeps the resolved ts below what the watermarks allow."""
    found = held_back(feed, store, events, hours, cut.resolved_ts if cut else 0, until) if hours else None
    return found if found is not None and (found.commit_ts or 0) <= resolved else None


def expected_partitions(feed: Feed, topics: Mapping[str, object]) -> list[Coordinates]:
    """Return every (topic, partition) that must have a resolved ts: of the named topics, or of those that match the pattern."""
    names = sorted(topics) if feed.topic_pattern else feed.topics
    return [Coordinates(t, p) for t in names for p in range(feed.partitions_of(t))]


def _decoded(feed: Feed, store: Store, hour: str, manifest: Manifest) -> DecodeRecord:
    record = read_record(store, feed.name, hour)
    if record is None or record.generation != manifest.generation:
        what = "not decoded" if record is None else f"decoded from generation {record.generation}, landed again as {manifest.generation}"
        remedy = f"run `tidelake decode --feed {feed.name} --hour {hour}`"
        raise OrderError(f"hour {hour} of feed {feed.name} is {what}", code="NOT_DECODED", remedy=remedy)
    return record


def _watermarks(
    feed: Feed, events: LakeTable, cut: Cut | None, records: Mapping[str, DecodeRecord], prefixes: Mapping[str, Mapping[int, Range]]
) -> tuple[PartitionTs, list[ClockAhead]]:
    """Return (largest resolved ts of every partition, those that cannot be true and do not count)."""
    out: PartitionTs = {t: dict(ps) for t, ps in (believed_before(feed, cut) if cut else {}).items()}
    ahead = list[ClockAhead]()
    for hour, record in records.items():
        found, to_read = dict[tuple[str, int], int](), dict[tuple[str, int], int]()
        for topic, partitions in record.watermarks.items():
            for number, mark in partitions.items():
                end = prefixes[topic][number][1]
                if mark.offset <= end and counts(feed, hour, mark.resolved_ts):
                    found[topic, number] = mark.resolved_ts
                else:
                    to_read[topic, number] = end
        if to_read:
            read, wrong = marks(feed, events, hour, to_read)
            found, ahead = found | read, ahead + wrong
        for (topic, number), ts in found.items():
            of_topic = out.setdefault(topic, {})
            of_topic[number] = max(ts, of_topic.get(number, ts))
    return out, ahead


def resolved_now(
    feed: Feed, watermarks: PartitionTs, covered: Coverage, hour: str, ahead: Sequence[ClockAhead] = ()
) -> tuple[int, int | None]:
    """Return (resolved ts of an hour by the feed's rule, when its checkpoint was recorded (ms) or None).

    Args:
        feed: The feed.
        watermarks: Largest resolved ts of every partition.
        covered: Offsets that are landed.
        hour: The hour.
        ahead: Resolved ts that do not count.

    Raises:
        OrderError: GAP, RESOLVED_TS_AHEAD, and what the watermark rule raises.
    """
    gaps = covered.holes
    if feed.watermark.source == "metadata":
        _refuse_missing_files(feed, covered)
        return end_ts(parse_hour(hour)), None  # land waited until the checkpoint had passed the hour
    if feed.watermark.source != "messages":
        if gaps and feed.policy.severity("GAP", feed.policy.gap_severity) == "critical":
            at, (first, last) = next(iter(gaps.items()))
            raise OrderError(
                f"offsets {first} to {last} are not landed",
                code="GAP",
                at=at,
                remedy="restore the missing files and land again; where `land` reports that a later hour has them (GAP_AHEAD, "
                "GAP_CLOSED), run that hour: its window contains both",
            )
        return _checkpoint(feed, hour) if feed.watermark.source == "checkpoints" else (end_ts(parse_hour(hour)), None)
    known = {at: watermarks.get(at.topic, {}).get(at.partition) for at in expected_partitions(feed, watermarks)}
    only = [a for a in ahead if a.at is not None and known.get(Coordinates(a.at.topic, a.at.partition), 0) is None]
    if only:
        raise only[0].error(len(only) - 1)  # the partition has no other resolved ts
    return resolved_ts(known), None


def _refuse_ahead(feed: Feed, ahead: Sequence[ClockAhead]) -> None:
    """Raise the first finding's error if the feed's policy is to block."""
    blocking = [a for a in ahead if feed.policy.severity(a.code, "warning") == "critical"]
    if blocking:
        raise blocking[0].error(len(blocking) - 1)


def _refuse_missing_files(feed: Feed, covered: Coverage) -> None:
    """Raise OrderError (GAP) for missing files. A storage sink numbers its files from 1 in every folder."""
    late = {Coordinates(t, p): (1, first - 1) for t, ps in covered.prefixes.items() for p, (first, _) in ps.items() if first > 1}
    missing = {**covered.holes, **late}
    if missing and feed.policy.severity("GAP", feed.policy.gap_severity) == "critical":
        at, (first, last) = min(missing.items(), key=lambda item: (item[0].topic, item[0].partition))
        raise OrderError(
            f"files {first} to {last} of a folder are not landed", code="GAP", at=at, remedy="restore the missing files and land again"
        )


def _checkpoint(feed: Feed, hour: str) -> tuple[int, int]:
    """Return (last checkpoint recorded before the hour's end, when it was first recorded)."""
    end_ms = int((parse_hour(hour) + timedelta(hours=1)).timestamp() * 1000)
    known = [(at, ts) for at, ts in _checkpoints(feed) if at < end_ms]
    if not known:
        raise OrderError(
            f"no checkpoint was recorded before the end of hour {hour}", code="NO_WATERMARK", remedy=f"check {feed.watermark.uri}"
        )
    true = [(at, ts) for at, ts in known if checkpoint_counts(feed, at, ts)]
    if not true:
        raise recorded_ahead(feed, hour, max(ts for _, ts in known)).error(len(known) - 1)
    last = max(ts for _, ts in true)
    return last, min(at for at, ts in true if ts == last)


def _checkpoints(feed: Feed) -> Iterator[tuple[int, int]]:
    """Yield (at_ms, checkpoint_ts) of recorded `cdc cli changefeed query` output: a JSON list, or one object per line."""
    folder, _, name = (feed.watermark.uri or "").rpartition("/")
    text = open_store(folder).read(name).decode()
    try:
        entries: list[dict[str, Any]] = (
            json.loads(text) if text.lstrip().startswith("[") else [json.loads(x) for x in text.splitlines() if x]
        )
        yield from ((int(e["at_ms"]), int(e["checkpoint_ts"])) for e in entries)
    except (ValueError, KeyError, TypeError) as e:
        raise OrderError(
            f"{name}: not recorded checkpoints: {e!r}", code="NO_WATERMARK", remedy='expected: [{"at_ms": …, "checkpoint_ts": …}, …]'
        ) from e


def not_after_seed(feed: Feed, done: WindowProgress, cut: Cut, hour: str) -> OrderError:
    """Return the error for an hour that ends at or before the TSO of the export that the tables began with."""
    return OrderError(
        f"feed {feed.name}: hour {hour} reaches to {show(done.resolved_ts)}, and the export that seeded the tables is at "
        f"{show(cut.seeded_ts)}",
        code="BEFORE_SEED",
        remedy="nothing to do for this hour: run the hours after it",
    )


def published_ahead(feed: Feed, cut: Cut, before: Cut | None) -> OrderError:
    """Return the error for a lake whose newest cut has a ts that cannot be true. before: the newest earlier cut that can be true."""
    way = (
        f"`tidelake rollback --feed {feed.name} --to 'cut {before.seq}'` goes back to the cut before it; then run the hours after "
        f"{before.hour}"
        if before is not None
        else f"`tidelake redo --feed {feed.name} --from {cut.first_hour or min(cut.generations, default=cut.hour)}` rebuilds the lake"
    )
    return OrderError(
        f"feed {feed.name}: cut {cut.seq} was published at {show(cut.resolved_ts)}, which is ahead of all clocks of its hour {cut.hour}: "
        "the resolved ts cannot advance, and rows before it arrive late",
        code="STANDS_STILL",
        remedy=way,
    )


def stands_still(feed: Feed, done: WindowProgress, applied: int) -> OrderError:
    """Return the error for an hour that did not move the resolved ts."""
    if done.held_back is not None:
        return OrderError(
            f"feed {feed.name}: the resolved ts does not advance from {show(applied)}, because a later row waits: {done.held_back.error}",
            code="WAITS_FOR_SCHEMA",
            at=done.held_back.at,
            remedy=f"a later hour with its BOOTSTRAP or DDL continues from here; after wait_hours = {feed.policy.wait_hours} "
            "it counts as not decoded. Does the changefeed send BOOTSTRAP (send-bootstrap-interval-in-sec)?",
        )
    watermarks = done.watermarks
    behind = [str(Coordinates(t, p)) for t, ps in watermarks.items() for p, ts in ps.items() if ts <= applied]
    where = f" in {', '.join(behind[:5])}" if behind else ""
    return OrderError(
        f"feed {feed.name}: the resolved ts does not advance from {show(applied)}{where}{_not_counted(done)}",
        code="STANDS_STILL",
        remedy="is the changefeed running, and does the archiver write every partition? A later hour that advances it continues from here",
    )


def _not_counted(done: WindowProgress) -> str:
    """Describe resolved ts that would have moved it but cannot be true."""
    found = [f"{a.where}: {a.detail}" for a in done.ahead if a.at is not None and a.code == RESOLVED]
    return f"; {found[0]}{f' (and {len(found) - 1} more)' if len(found) > 1 else ''}" if found else ""
