"""Batches of decoded events."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.lake.histories import Message
from tidelake.errors import Coordinates
from tidelake.history.event import EventRows


def batch(*messages: Message) -> pa.RecordBatch:
    rows = EventRows()
    for offset, m in enumerate(messages):
        rows.add(Coordinates("t", 0, offset), 1, [m.event])
    return rows.batch(row_schemas=True)


def images(events: pa.RecordBatch) -> list[tuple[Any, Any]]:
    return [(r["after"], r["before"]) for r in events.to_pylist() if r["kind"] == "row"]
