"""Statements that came again. They are few, so every one is compared that may have come before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidelake.errors import TopicPartition
from tidelake.history.window import Window
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Cut
from tidelake.lake.events import control_rows
from tidelake.order.progress import WindowProgress
from tidelake.order.repeats.names_seen import NamesSeen

StatementPlace = tuple[str, str, int, int, int]  # hour, topic, partition, offset, ordinal
_AT = ("hour", "topic", "partition", "offset", "ordinal")
_SAID = ("topic", "partition", "source", "database", "table", "ddl")


def place_of(statement: Mapping[str, Any]) -> StatementPlace:
    """Return the place of a row of kind `ddl`."""
    hour, topic, partition, offset, ordinal = (statement[c] for c in _AT)
    return hour, topic, partition, offset, ordinal


def repeated_statements(
    events: LakeTable, cut: Cut | None, window: Window, done: WindowProgress, before: Mapping[TopicPartition, NamesSeen]
) -> tuple[frozenset[StatementPlace], list[tuple[TopicPartition, str]]]:
    """Return (the window's statements that are repeats, partition and name of all its statements with names, in the order of offsets).

    Args:
        events: The events table.
        cut: The cut that the window builds on.
        window: The window.
        done: The progress of the feed.
        before: The names that earlier windows had.
    """
    columns = list(dict.fromkeys((*_AT, *_SAID, "commit_ts")))
    rows = [r for r in control_rows(events, "ddl", done.scan, columns) if r["source"] is not None]
    rows = [r for r in rows if window.applied_ts < r["commit_ts"] <= window.resolved_ts and not any(a.has(r) for a in done.again)]
    rows.sort(key=place_of)
    asked = {r["source"] for r in rows if (at := (r["topic"], r["partition"])) in before and before[at].may_have(r["source"])}
    first = _earlier(events, cut, asked, columns)
    again = set[StatementPlace]()
    for r in rows:
        at = r["hour"], r["offset"]
        if first.setdefault(_said(r), at) != at:
            again.add(place_of(r))
    return frozenset(again), [((r["topic"], r["partition"]), r["source"]) for r in rows]


def _earlier(events: LakeTable, cut: Cut | None, names: set[str], columns: list[str]) -> dict[tuple[Any, ...], tuple[str, int]]:
    """Hour and offset of the first statement of earlier windows, by what it says, of those with one of these names."""
    out: dict[tuple[Any, ...], tuple[str, int]] = {}
    if cut is None or not names:
        return out
    for batch in events.scan({"kind": "ddl", "source": sorted(names)}, columns, cut.events_snapshot_id or events.main):
        for r in batch.to_pylist():
            if r["hour"] <= cut.hour and r["commit_ts"] <= cut.resolved_ts:
                out[_said(r)] = min(out.get(_said(r), (r["hour"], r["offset"])), (r["hour"], r["offset"]))
    return out


def _said(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[c] for c in _SAID)
