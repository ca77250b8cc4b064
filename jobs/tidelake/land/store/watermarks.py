"""Collect the watermarks of a partition from its messages while they are landed."""

from __future__ import annotations

import pyarrow as pa

from tidelake.land.store.manifest import LandedWatermarks
from tidelake.tso import wrap
from tidelake.wire.resolved_ts import resolved


class WatermarksSeen:
    """Takes messages in the order of their offsets; `found` is the manifest's entry."""

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self.found: LandedWatermarks | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Add messages: offset, key and value."""
        rows, stamps = resolved(self._protocol, batch)
        if not stamps:
            return
        largest = max(stamps)
        offset = batch.column("offset")[int(rows[stamps.index(largest)])].as_py()
        found, before = LandedWatermarks(count=len(stamps), resolved_ts=wrap(largest), offset=offset), self.found
        if before:
            larger = found if found.resolved_ts > before.resolved_ts else before
            found = larger.model_copy(update={"count": before.count + found.count})
        self.found = found
