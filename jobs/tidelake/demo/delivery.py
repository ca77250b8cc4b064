"""What a changefeed delivered, hour by hour: the numbers that a consumer of its archive must compute."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from tidelake.demo.history import HOUR_MS
from tidelake.demo.messages.model import Ddl, Row, SourceChange
from tidelake.demo.upstream import canonical

_NEAR_HOUR_END_MS = 300_000  # maximum age of a checkpoint


class Message(NamedTuple):
    """One Kafka record. timestamp_ms: CreateTime (ms since the epoch)."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


@dataclass
class Delivery:
    """Record of one changefeed's delivery, complete after its last message. Hours are aware datetimes, ts are TSOs.

    Attributes:
        marks: Messages have resolved ts. If not, `checkpoints` has recorded ones.
        ddl: The statements, each once.
        checkpoints: Recorded checkpoints, as {"at_ms", "checkpoint_ts"}.
        restarts: (ms since the epoch, checkpoint TSO from which everything was sent again).
    """

    marks: bool
    ddl: list[Ddl] = field(default_factory=list)
    checkpoints: list[dict[str, int]] = field(default_factory=list)
    restarts: list[tuple[int, int]] = field(default_factory=list)
    messages: Counter[tuple[str, int]] = field(default_factory=Counter)  # by topic and partition
    row_events: int = 0
    distinct_row_events: int = 0
    _resolved: dict[tuple[str, int], list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    _late: list[tuple[int, SourceChange]] = field(default_factory=list)

    def resolved(self, hour: datetime) -> int:
        """Return M of the hour: the ts up to which messages of hours up to this one are complete; 0 if nothing is.

        M is the minimum over the partitions of the largest resolved ts; without marks the last checkpoint recorded in those hours.
        """
        end_ms = int(hour.timestamp() * 1000) + HOUR_MS
        if not self.marks:
            return max((c["checkpoint_ts"] for c in self.checkpoints if c["at_ms"] < end_ms), default=0)
        largest = (max((ts for at_ms, ts in seen if at_ms < end_ms), default=0) for seen in self._resolved.values())
        return min(largest, default=0)

    def unsettled(self, hour: datetime) -> dict[str, list[list[Any]]]:
        """Return per `db.table` the keys with an event above M in messages of hours up to this one (Avro).

        Avro deletes have no commit ts, so a consumer does not know whether these rows are settled. Keys are canonical text in key order.
        """
        end_ms, resolved = int(hour.timestamp() * 1000) + HOUR_MS, self.resolved(hour)
        found: dict[str, dict[Row, list[Any]]] = defaultdict(dict)
        for at_ms, change in self._late:
            if at_ms < end_ms and change.commit_ts > resolved:
                columns = [change.table.columns[i] for i in change.table.key]
                key = [canonical(c, v) for c, v in zip(columns, change.key, strict=True)]
                found[f"{change.table.database}.{change.table.name}"][change.key] = key
        return {table: list(keys.values()) for table, keys in found.items()}

    def saw_rows(self, at_ms: int, changes: list[SourceChange]) -> None:
        """Count the rows of a message with this CreateTime (ms)."""
        self.row_events += len(changes)
        if not self.marks and at_ms % HOUR_MS > HOUR_MS - _NEAR_HOUR_END_MS:
            self._late += [(at_ms, c) for c in changes]

    def saw_resolved(self, partition: tuple[str, int], at_ms: int, ts: int) -> None:
        """Record a resolved ts in a message with this CreateTime (ms)."""
        self._resolved[partition].append((at_ms, ts))

    def saw_checkpoint(self, at_ms: int, ts: int) -> None:
        """Record a checkpoint. Checkpoints never decrease."""
        last = self.checkpoints[-1]["checkpoint_ts"] if self.checkpoints else 0
        self.checkpoints.append({"at_ms": at_ms, "checkpoint_ts": max(last, ts)})
