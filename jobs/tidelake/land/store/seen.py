"""Find watermarks and statements in the messages of a partition while they are landed, without decoding them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tidelake.config.feed import Feed
from tidelake.config.options import SinkOptions
from tidelake.land.store.manifest import LandedWatermarks, PartitionFacts
from tidelake.tso import wrap
from tidelake.wire.masks import marks_at_decode
from tidelake.wire.resolved_ts import resolved
from tidelake.wire.statements import WITHOUT_DDL, may_hold_statements


@dataclass(slots=True)
class PartitionSeen:
    """Takes messages in the order of their offsets, for `facts`. options: the feed's, if statements are counted."""

    protocol: str
    options: SinkOptions | None = None
    watermarks: LandedWatermarks | None = None
    statements: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add messages: offset, key and value."""
        if self.options is not None:
            self.statements += may_hold_statements(self.protocol, batch, self.options).num_rows
        rows, stamps = resolved(self.protocol, batch)
        if not stamps:
            return
        largest = max(stamps)
        offset = batch.column("offset")[int(rows[stamps.index(largest)])].as_py()
        found, before = LandedWatermarks(count=len(stamps), resolved_ts=wrap(largest), offset=offset), self.watermarks
        if before:
            larger = found if found.resolved_ts > before.resolved_ts else before
            found = larger.model_copy(update={"count": before.count + found.count})
        self.watermarks = found

    def facts(self, others: PartitionFacts) -> PartitionFacts:
        """Return the partition's facts with what was found."""
        counted = None if self.options is None else self.statements
        return others.model_copy(update={"watermarks": self.watermarks, "statements": counted})


def seen_in(feed: Feed) -> PartitionSeen:
    """Return what takes a partition's messages. Statements are counted where decode needs them before rows, because it masks columns."""
    counted = marks_at_decode(feed) and feed.protocol not in WITHOUT_DDL
    return PartitionSeen(feed.protocol, feed.options if counted else None)
