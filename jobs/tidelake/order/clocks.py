"""Checks which resolved ts can be true: none is later than the moment at which its message was written.

That moment is not known exactly: TiDB's TSO, the timestamps of producers and brokers and the hours of an archive come from different
clocks. So a resolved ts counts up to the end of its archive hour, or up to its message's Kafka timestamp if that is later and not in the
future, plus `[policy] clock_skew_minutes`. A later one is a finding (RESOLVED_TS_AHEAD) and does not count: all later changes would be
late.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.config.feed import Feed
from tidelake.config.finding_kinds import KINDS
from tidelake.decode.record import DecodeRecord
from tidelake.errors import Coordinates, OrderError
from tidelake.io.storage import Store
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Cut
from tidelake.lake.events import control_batches
from tidelake.land.store.manifest import newest
from tidelake.tso import LOGICAL_BITS, end_ts, parse_hour, physical_ms, show

RESOLVED, COMMIT = "RESOLVED_TS_AHEAD", "COMMIT_TS_AHEAD"
_MINUTE_MS = 60_000
_PLACE = ("topic", "partition", "offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockAhead:
    """A ts that no clock had reached when its message was written.

    Attributes:
        code: Code of the finding.
        ts: The TSO.
        hour: Its archive hour.
        where: Coordinates, or the file that it was read from.
        at: Coordinates, if it was in a message.
    """

    code: str
    ts: int
    hour: str
    where: str
    at: Coordinates | None = None

    @property
    def detail(self) -> str:
        """Description for people."""
        if self.code == COMMIT:
            return f"rows or statements of hour {self.hour} have commit ts up to {show(self.ts)}, ahead of all clocks; they wait until then"
        return f"the resolved ts {show(self.ts)} of hour {self.hour} is ahead of the clocks of its message and hour; it does not count"

    def finding(self, feed: Feed) -> dict[str, str]:
        """Return the finding as certificates hold it: the fields of validate.quality.facts.FindingFacts."""
        kind = KINDS[self.code]
        severity = feed.policy.severity(self.code, kind.severity)
        return {"code": self.code, "severity": severity, "where": self.where, "detail": self.detail, "remedy": kind.remedy}

    def error(self, more: int = 0) -> OrderError:
        """Return the error that blocks a window. more: number of further ones."""
        others = f" (and {more} more)" if more else ""
        place = f"{self.where}: " if self.at is None else ""
        return OrderError(f"{place}{self.detail}{others}", code=self.code, at=self.at, remedy=KINDS[self.code].remedy)


def counts(feed: Feed, hour: str, ts: int) -> bool:
    """Whether a ts of this hour counts for any Kafka timestamp of its message."""
    return ts >= 0 and physical_ms(ts) <= _latest_ms(feed, hour, None)


def marks(
    feed: Feed, events: LakeTable, hour: str, ends: Mapping[tuple[str, int], int]
) -> tuple[dict[tuple[str, int], int], list[ClockAhead]]:
    """Return (the largest resolved ts of each partition that counts, the furthest one of each that does not).

    Args:
        feed: The feed.
        events: The events table.
        hour: The hour.
        ends: Last offset of each partition that counts; offsets after a gap do not.
    """
    found = list(control_batches(events, "resolved", [hour], [*_PLACE, "timestamp_ms", "commit_ts"]))
    best, ahead = dict[tuple[str, int], int](), list[ClockAhead]()
    if not found:
        return best, ahead
    rows = pa.Table.from_batches(found)
    for (topic, number), end in ends.items():
        own = rows.filter((pc.field("topic") == topic) & (pc.field("partition") == number) & (pc.field("offset") <= end))
        good = _believed(feed, hour, own)
        if (top := pc.max(own.column("commit_ts").filter(good)).as_py()) is not None:
            best[topic, number] = top
        wrong = own.filter(pc.invert(good)).sort_by([("commit_ts", "descending"), ("offset", "ascending")]).slice(0, 1).to_pylist()
        ahead += [_ahead(RESOLVED, hour, Coordinates(topic, number, r["offset"]), r["commit_ts"]) for r in wrong]
    return best, ahead


def rows_ahead(feed: Feed, events: LakeTable, records: Mapping[str, DecodeRecord]) -> list[ClockAhead]:
    """Return for each hour the row or statement with the latest commit ts, if that cannot be true.

    It waits until the resolved ts reaches it.
    """
    found = []
    for hour, record in records.items():
        ts = record.max_commit_ts
        if ts is None or feed.by_offsets or physical_ms(ts) <= _latest_ms(feed, hour, record.max_timestamp_ms):
            continue
        at = next((r for b in events.scan({"hour": hour, "kind": ["row", "ddl"], "commit_ts": ts}, _PLACE) for r in b.to_pylist()), None)
        found.append(_ahead(COMMIT, hour, Coordinates(at["topic"], at["partition"], at["offset"]) if at else None, ts))
    return found


def believed_before(feed: Feed, cut: Cut) -> dict[str, dict[int, int]]:
    """Return the watermarks of a published cut without those that cannot be true; an earlier version accepted such ones."""
    latest = max(_end_ms(cut.hour), _now_ms()) + _skew_ms(feed)
    return {topic: {p: ts for p, ts in marks.items() if physical_ms(ts) <= latest} for topic, marks in cut.watermarks.items()}


def checkpoint_counts(feed: Feed, at_ms: int, ts: int) -> bool:
    """Whether a recorded checkpoint can be true. at_ms: when it was recorded (ms since the epoch)."""
    return physical_ms(ts) <= at_ms + _skew_ms(feed)


def recorded_ahead(feed: Feed, hour: str, ts: int) -> ClockAhead:
    """Return the finding for a checkpoint that cannot be true."""
    return ClockAhead(code=RESOLVED, ts=ts, hour=hour, where=(feed.watermark.uri or "").rpartition("/")[2])


def is_ahead(feed: Feed, store: Store, cut: Cut) -> bool:
    """Whether a published cut is later than the end of its hour and the timestamps of its messages, so that later hours do not move it."""
    manifest = newest(store, feed.name, cut.hour)
    partitions = [p for of_topic in manifest.partitions.values() for p in of_topic.values()] if manifest else []
    stamp = max((p.max_timestamp_ms for p in partitions if p.max_timestamp_ms is not None), default=None)
    return physical_ms(cut.resolved_ts) > _latest_ms(feed, cut.hour, stamp)


def _believed(feed: Feed, hour: str, rows: pa.Table) -> pa.Array:
    """Which rows' commit ts count. A TSO after the year 3084 is stored as a negative number (tso.wrap)."""
    end, ts = _end_ms(hour), rows.column("commit_ts")
    stamp = pc.fill_null(rows.column("timestamp_ms"), end)
    latest = pc.add(pc.max_element_wise(pc.min_element_wise(stamp, _now_ms()), end), _skew_ms(feed))
    return pc.and_(pc.greater_equal(ts, 0), pc.less_equal(pc.shift_right(ts, LOGICAL_BITS), latest))


def _ahead(code: str, hour: str, at: Coordinates | None, ts: int) -> ClockAhead:
    return ClockAhead(code=code, ts=ts, hour=hour, where=str(at) if at else "", at=at)


def _latest_ms(feed: Feed, hour: str, timestamp_ms: int | None) -> int:
    """The latest time that a message can report. timestamp_ms: its Kafka timestamp."""
    end = _end_ms(hour)
    return max(end, end if timestamp_ms is None else min(timestamp_ms, _now_ms())) + _skew_ms(feed)


def _end_ms(hour: str) -> int:
    return physical_ms(end_ts(parse_hour(hour))) + 1


def _skew_ms(feed: Feed) -> int:
    return feed.policy.clock_skew_minutes * _MINUTE_MS


def _now_ms() -> int:
    return int(time.time() * 1000)
