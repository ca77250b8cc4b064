"""The gauges of a feed: of its state, and of its newest cut. docs/how-to/metrics.md lists them.

Times are epoch seconds, so that the age of a cut and the lag of a feed grow while nothing runs: `time() -
tidelake_resolved_timestamp_seconds`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import find_certificate
from tidelake.pages.feed_row import FeedRow, feed_row
from tidelake.pages.feed_source import FeedSource
from tidelake.tso import physical_ms

HELP: Mapping[str, str] = {
    "tidelake_up": "Whether the state of the feed could be read",
    "tidelake_blocked": "Whether the hour after the newest cut is blocked or failed",
    "tidelake_waiting_hours": "Landed hours after the newest cut",
    "tidelake_quarantine_messages": "Rejected messages, and groups of rows that fit no table, without a decision",
    "tidelake_late_rows": "Rows in the late ledger",
    "tidelake_cut": "Number of the newest cut",
    "tidelake_cut_incomplete": "Whether the newest cut lacks something",
    "tidelake_cut_published_timestamp_seconds": "When the newest cut was published",
    "tidelake_resolved_timestamp_seconds": "Resolved ts of the newest cut",
    "tidelake_tables": "Tables of the newest cut",
    "tidelake_table_rows": "Rows of the tables of the newest cut together",
    "tidelake_cut_messages": "Messages landed in the hours of the newest cut",
    "tidelake_cut_message_bytes": "Bytes of these messages",
    "tidelake_cut_events": "Events of these messages by kind",
    "tidelake_cut_rejected_messages": "Messages of these hours that could not be decoded, by code",
    "tidelake_cut_changes": "Rows that the newest cut added to changelogs",
    "tidelake_cut_late_events": "Row events that arrived after the cut that should hold them",
    "tidelake_cut_failed_checks": "Checks of the newest cut that failed, by severity",
    "tidelake_cut_stage_seconds": "Seconds that each stage took for the newest cut",
}

_BY_LABEL = (  # end of the name, member of the certificate, label
    ("events", "events", "kind"),
    ("rejected_messages", "rejected", "code"),
    ("stage_seconds", "seconds", "stage"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """A value. labels: beside `feed`."""

    name: str
    feed: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


def feed_gauges(source: FeedSource) -> Iterator[Gauge]:
    """Yield the gauges of a feed that can be read. Those of the newest cut are absent until there is one."""
    yield from row_gauges(feed_row(source))
    yield _gauge(source.feed.name, "tidelake_waiting_hours", len(source.newer_hours))
    if source.cut is not None:
        yield from _cut_gauges(source.cut)
        certificate = find_certificate(source.lake.store, source.feed.name, source.cut.seq)
        yield from certificate_gauges(source.feed.name, certificate or {})


def row_gauges(row: FeedRow) -> Iterator[Gauge]:
    """Yield the gauges of a feed's state. A feed that cannot be read has only `tidelake_up`."""
    yield _gauge(row.feed, "tidelake_up", row.can_be_read)
    if row.can_be_read:
        yield _gauge(row.feed, "tidelake_blocked", row.word in ("blocked", "failed"))
        yield _gauge(row.feed, "tidelake_quarantine_messages", row.quarantine)
        yield _gauge(row.feed, "tidelake_late_rows", row.late_rows)


def _cut_gauges(cut: Cut) -> Iterator[Gauge]:
    values = {
        "tidelake_cut": cut.seq,
        "tidelake_cut_incomplete": cut.incomplete,
        "tidelake_cut_published_timestamp_seconds": cut.published_at_ms / 1000,
        "tidelake_resolved_timestamp_seconds": physical_ms(cut.resolved_ts) / 1000,
        "tidelake_tables": sum(1 for _ in cut.catalog.alive()),
        "tidelake_table_rows": sum(t.rows for t in cut.snapshots.values()),
    }
    return (_gauge(cut.feed, name, value) for name, value in values.items())


def certificate_gauges(feed: str, certificate: Mapping[str, Any]) -> Iterator[Gauge]:
    """Yield the gauges of the newest cut that its certificate has. Members that an earlier version did not write are left out."""
    for name in ("messages", "message_bytes", "late_events"):
        if name in certificate:
            yield _gauge(feed, f"tidelake_cut_{name}", certificate[name])
    if "rows" in certificate:
        yield _gauge(feed, "tidelake_cut_changes", sum(t.get("changes", 0) for t in certificate["rows"].values()))
    for name, member, label in _BY_LABEL:
        yield from (_gauge(feed, f"tidelake_cut_{name}", value, {label: key}) for key, value in certificate.get(member, {}).items())
    checks = certificate.get("expectations", {}).get("checks", ())
    for severity in ("critical", "warning") if checks else ():
        failed = sum(not c["success"] and c["severity"] == severity for c in checks)
        yield _gauge(feed, "tidelake_cut_failed_checks", failed, {"severity": severity})


def _gauge(feed: str, name: str, value: float, labels: Mapping[str, str] | None = None) -> Gauge:
    return Gauge(name=name, feed=feed, value=float(value), labels=labels or {})
