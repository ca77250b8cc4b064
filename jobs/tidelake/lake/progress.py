"""How far a feed's changes are complete: M for an hour, from the decode records since the last cut (design sections 7, 8)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tidelake.archives import layout_of
from tidelake.errors import Coordinates, OrderError
from tidelake.feed import Feed
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Cut
from tidelake.lake.decisions import Rejected
from tidelake.lake.decode import DecodeRecord, read_record
from tidelake.lake.events import control_batches
from tidelake.lake.offset_rules import Again, repeated
from tidelake.lake.refused import refusals_named
from tidelake.lake.waiting import held_back
from tidelake.land.coverage import Coverage, coverage, missing_hours
from tidelake.land.manifest import Manifest, all_newest
from tidelake.land.ranges import Range
from tidelake.ordering import resolved_ts
from tidelake.storage import Store, open_store
from tidelake.tso import end_ts, parse_hour, show

Partitions = dict[str, dict[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is complete by an hour. hours: those since the last cut; changed: earlier ones that were decoded again since; scan: all that may
    hold rows of the window.

    records: of all these hours and of the last cut's. again: offsets that came with earlier hours, too, where hours order a feed.
    held_back: the first row that waits for its table's schema, where the resolved ts stays below it.
    """

    resolved_ts: int
    watermarks: Partitions
    prefixes: dict[str, dict[int, Range]]
    checkpoint_at_ms: int | None
    hours: list[str]
    changed: list[str]
    scan: list[str]
    records: dict[str, DecodeRecord]
    messages: int
    message_bytes: int
    again: tuple[Again, ...] = ()
    held_back: Rejected | None = None


def progress(feed: Feed, store: Store, events: LakeTable, cut: Cut | None, hour: str) -> Progress:
    """M and what it rests on. Raises OrderError: HOUR_MISSING, NOT_DECODED, NO_WATERMARK, GAP; each says where and what to do."""
    manifests = all_newest(store, feed.name, since=cut.hour if cut else "", until=hour)
    hours = [h for h in manifests if cut is None or h > cut.hour]
    changed = _changed(events, cut) if cut else []
    scan = sorted({*(cut.open_hours if cut else ()), *changed, *hours})
    _check_hours(feed, cut, list(manifests), hour)
    every = _older(feed, store, scan, manifests) | manifests
    records = {h: _decoded(feed, store, h, m) for h, m in every.items()}
    covered = coverage(every.values(), cut.prefixes if cut else None, layout_of(feed.source.layout).file_bits if feed.source.layout else 0)
    with refusals_named({h: records[h] for h in hours}):
        watermarks = _watermarks(events, cut, {h: records[h] for h in manifests}, covered.prefixes)
        resolved, at_ms = resolved_now(feed, watermarks, covered, hour)
    again = repeated(feed, hours, every, cut.prefixes if cut else {}) if feed.by_offsets else ()
    held = _held_back(feed, store, events, [h for h in scan if records[h].waiting], cut, hour, resolved)
    return Progress(
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
        held_back=held,
    )


def _changed(events: LakeTable, cut: Cut) -> list[str]:
    """Hours of this cut or before whose events were written again after it: a new generation, recovered messages, another decoder."""
    hours = {summary.get("tidelake.hour", "") for summary in events.since(cut.events_snapshot_id)}
    return sorted(h for h in hours if h and h <= cut.hour)


def _older(feed: Feed, store: Store, scan: Sequence[str], manifests: Mapping[str, Manifest]) -> dict[str, Manifest]:
    """Of hours from before the last cut's: those left open until the resolved ts has passed all their rows, and those decoded again."""
    older = [h for h in scan if h not in manifests]
    found = all_newest(store, feed.name, since=older[0], until=older[-1]) if older else {}
    return {h: found[h] for h in older}


def _held_back(
    feed: Feed, store: Store, events: LakeTable, hours: Sequence[str], cut: Cut | None, until: str, resolved: int
) -> Rejected | None:
    """The waiting row that keeps the resolved ts from going as far as the watermarks allow."""
    found = held_back(feed, store, events, hours, cut.resolved_ts if cut else 0, until) if hours else None
    return found if found is not None and (found.commit_ts or 0) <= resolved else None


def expected_partitions(feed: Feed, topics: Mapping[str, object]) -> list[Coordinates]:
    """Every (topic, partition) that must have a resolved ts: of the topics named, or of those found by the pattern."""
    names = sorted(topics) if feed.topic_pattern else feed.topics
    return [Coordinates(t, p) for t in names for p in range(feed.partitions_of(t))]


def _check_hours(feed: Feed, cut: Cut | None, landed: list[str], hour: str) -> None:
    if hour not in landed:
        raise OrderError(f"hour {hour} of feed {feed.name} is not landed", code="HOUR_MISSING", remedy=_run(feed, hour))
    start = [cut.hour] if cut and not cut.is_seed else []  # a changefeed may begin hours after the export that it goes on from
    missing = missing_hours(sorted({*start, *landed}), hour)
    if missing:
        raise OrderError(
            f"feed {feed.name}: {len(missing)} hours before {hour} are not landed: {', '.join(missing[:5])}",
            code="HOUR_MISSING",
            remedy=_run(feed, missing[0], len(missing)),
        )


def _decoded(feed: Feed, store: Store, hour: str, manifest: Manifest) -> DecodeRecord:
    record = read_record(store, feed.name, hour)
    if record is None or record.generation != manifest.generation:
        what = "not decoded" if record is None else f"decoded from generation {record.generation}, landed again as {manifest.generation}"
        remedy = f"run `tidelake decode --feed {feed.name} --hour {hour}`"
        raise OrderError(f"hour {hour} of feed {feed.name} is {what}", code="NOT_DECODED", remedy=remedy)
    return record


def _watermarks(
    events: LakeTable, cut: Cut | None, records: Mapping[str, DecodeRecord], prefixes: Mapping[str, Mapping[int, Range]]
) -> Partitions:
    out: Partitions = {t: dict(ps) for t, ps in (cut.watermarks if cut else {}).items()}
    for hour, record in records.items():
        for topic, partitions in record.watermarks.items():
            for number, mark in partitions.items():
                end = prefixes[topic][number][1]
                ts = mark.resolved_ts if mark.offset <= end else _largest_up_to(events, hour, topic, number, end)
                if ts is not None:
                    of_topic = out.setdefault(topic, {})
                    of_topic[number] = max(ts, of_topic.get(number, ts))
    return out


def _largest_up_to(events: LakeTable, hour: str, topic: str, partition: int, end: int) -> int | None:
    """The largest resolved ts of an hour at or before an offset: what lies behind a hole does not count."""
    found: list[int] = []
    for batch in control_batches(events, "resolved", [hour], ["topic", "partition", "offset", "commit_ts"]):
        rows = batch.to_pylist()
        found += [r["commit_ts"] for r in rows if (r["topic"], r["partition"]) == (topic, partition) and r["offset"] <= end]
    return max(found, default=None)


def resolved_now(feed: Feed, watermarks: Partitions, covered: Coverage, hour: str) -> tuple[int, int | None]:
    """The resolved ts of an hour by the feed's rule, and when the recorded checkpoint that it is was written (ms), if it is one.

    Raises OrderError (GAP and what the rule of watermarks raises).
    """
    gaps = covered.holes
    if feed.watermark.source == "metadata":
        _refuse_missing_files(feed, covered)
        return end_ts(parse_hour(hour)), None  # landing waited for the checkpoint to pass it
    if feed.watermark.source != "messages":
        if gaps and feed.policy.severity("GAP", feed.policy.gap_severity) == "critical":
            at, (first, last) = next(iter(gaps.items()))
            raise OrderError(
                f"offsets {first} to {last} are not landed", code="GAP", at=at, remedy="bring the missing files back and land again"
            )
        return _checkpoint(feed, hour) if feed.watermark.source == "checkpoints" else (end_ts(parse_hour(hour)), None)
    expected = expected_partitions(feed, watermarks)
    return resolved_ts({at: watermarks.get(at.topic, {}).get(at.partition) for at in expected}), None


def _refuse_missing_files(feed: Feed, covered: Coverage) -> None:
    """A storage sink numbers its files from 1 in every folder. Raises OrderError (GAP)."""
    late = {Coordinates(t, p): (1, first - 1) for t, ps in covered.prefixes.items() for p, (first, _) in ps.items() if first > 1}
    missing = {**covered.holes, **late}
    if missing and feed.policy.severity("GAP", feed.policy.gap_severity) == "critical":
        at, (first, last) = min(missing.items(), key=lambda item: (item[0].topic, item[0].partition))
        raise OrderError(
            f"files {first} to {last} of a folder are not landed", code="GAP", at=at, remedy="bring the missing files back and land again"
        )


def _checkpoint(feed: Feed, hour: str) -> tuple[int, int]:
    """(the last checkpoint recorded before the hour's end, when it was recorded first)."""
    end_ms = int((parse_hour(hour) + timedelta(hours=1)).timestamp() * 1000)
    known = [(at, ts) for at, ts in _checkpoints(feed) if at < end_ms]
    if not known:
        raise OrderError(
            f"no checkpoint was recorded before the end of hour {hour}", code="NO_WATERMARK", remedy=f"look at {feed.watermark.uri}"
        )
    last = max(ts for _, ts in known)
    return last, min(at for at, ts in known if ts == last)


def _checkpoints(feed: Feed) -> Iterator[tuple[int, int]]:
    """(at_ms, checkpoint_ts): the recorded `cdc cli changefeed query`, as a JSON list or one object a line."""
    folder, _, name = (feed.watermark.uri or "").rpartition("/")
    text = open_store(folder).read(name).decode()
    try:
        entries: list[dict[str, Any]] = (
            json.loads(text) if text.lstrip().startswith("[") else [json.loads(x) for x in text.splitlines() if x]
        )
        yield from ((int(e["at_ms"]), int(e["checkpoint_ts"])) for e in entries)
    except (ValueError, KeyError, TypeError) as e:
        raise OrderError(
            f"{name}: not recorded checkpoints: {e!r}", code="NO_WATERMARK", remedy='wanted: [{"at_ms": …, "checkpoint_ts": …}, …]'
        ) from e


def not_after_seed(feed: Feed, done: Progress, cut: Cut, hour: str) -> OrderError:
    """The error for an hour that ends at or before the TSO of the export that the tables began with."""
    return OrderError(
        f"feed {feed.name}: hour {hour} reaches to {show(done.resolved_ts)}, the export that the tables began with stands at "
        f"{show(cut.seeded_ts)}",
        code="BEFORE_SEED",
        remedy="there is nothing to do for it: run the hours after it",
    )


def stands_still(feed: Feed, done: Progress, applied: int) -> OrderError:
    """The error for an hour that did not move the resolved ts."""
    if done.held_back is not None:
        return OrderError(
            f"feed {feed.name}: the resolved ts stands still at {show(applied)}, below a row that waits: {done.held_back.error}",
            code="WAITS_FOR_SCHEMA",
            at=done.held_back.at,
            remedy=f"a later hour that brings its BOOTSTRAP or DDL goes on from here; after wait_hours = {feed.policy.wait_hours} "
            "it counts as not decoded. Does the changefeed send BOOTSTRAP (send-bootstrap-interval-in-sec)?",
        )
    watermarks = done.watermarks
    behind = [str(Coordinates(t, p)) for t, ps in watermarks.items() for p, ts in ps.items() if ts <= applied]
    where = f" in {', '.join(behind[:5])}" if behind else ""
    return OrderError(
        f"feed {feed.name}: the resolved ts stands still at {show(applied)}{where}",
        code="STANDS_STILL",
        remedy="is the changefeed running, and does the archiver write every partition? A later hour that moves it goes on from here",
    )


def _run(feed: Feed, hour: str, hours: int = 1) -> str:
    more = f" --hours {hours}" if hours > 1 else ""
    return f"run `tidelake run --feed {feed.name} --hour {hour}{more}`"
