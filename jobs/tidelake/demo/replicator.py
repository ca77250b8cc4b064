"""TiCDC's delivery of a history to Kafka partitions (docs/reference/protocols.md 1.7, 6.1, 11).

Every flush sends the commits up to a horizon that lags behind the clock, in order, batched per partition. Every partition gets a resolved
ts about every 5 s, and one exactly at a statement's commit ts before the statement. After a crash everything after an older checkpoint is
sent
again: first the lower resolved ts, then rows, statements and resolved ts, in other batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from random import Random

from tidelake.demo.delivery import Delivery, Message
from tidelake.demo.history import History
from tidelake.demo.messages.encode_simple import SimpleEncoder
from tidelake.demo.messages.model import Commit, Ddl, SourceChange, SourceTable, TopicRecord
from tidelake.demo.sinks import ProtocolSink
from tidelake.tso import from_ms, physical_ms

DEFAULT_CRASHES = (30.25, 60.33, 126.25)  # minutes: after ADD COLUMN, across an hour's end, after RENAME TABLE
_BACK_MS = (20_000, 60_000)
_RESOLVED_EVERY_MS = 4_000, 6_000
_CHECKPOINT_EVERY_MS = 10_000
_BEHIND_MS = 50
_Partition = tuple[str, int]


class Replicator:
    """One changefeed of a history. crashes: minutes after the start. Consume all of `messages`, then read `delivery`."""

    def __init__(self, history: History, sink: ProtocolSink, *, crashes: Sequence[float] = DEFAULT_CRASHES, seed: int = 0) -> None:
        self.delivery = Delivery(marks=sink.marks)
        self.encoder = sink.encoder(seed, filter(sink.wants, history.definitions()))
        self._sink = sink
        self._described: set[SourceTable] = set()
        self._random = Random(f"{seed} {sink.protocol}").random
        self._end_ms = history.end_ms
        self._crashes = deque(history.start_ms + int(m * 60_000) for m in sorted(crashes))
        self._source: Iterator[Commit] = history.commits()
        self._ahead: Commit | None = next(self._source, None)
        self._sent: deque[Commit] = deque()  # commits that are sent again after a crash
        self._clock_ms = self._horizon_ms = history.start_ms
        self._newest_ts = self._resolved_ts = 0
        self._resolved_due_ms = history.start_ms + 1_000
        self._checkpoint_due_ms = history.start_ms + 3_000
        self._checkpoints = deque([(self._clock_ms, from_ms(self._clock_ms))])  # (clock ms, ts) to which a restart can go back
        self._partitions: dict[_Partition, tuple[int, int]] = {(t, p): (0, 0) for t in sink.topics for p in range(sink.partitions)}

    def messages(self) -> Iterator[Message]:
        """Yield all messages in sending order."""
        while self._horizon_ms < self._end_ms:
            self._tick()
            commits = list(self._take())
            if self._crashes and self._clock_ms >= self._crashes[0]:
                self._crashes.popleft()
                yield from self._torn(commits)
                yield from self._restart()
            else:
                yield from self._deliver(commits)
                yield from self._advance()
        self._clock_ms = self._end_ms + 3_000
        yield from self._resolve(from_ms(self._end_ms + 1_500))
        self._record_checkpoint()

    def _between(self, low: int, high: int) -> int:
        return low + int(self._random() * (high - low))

    def _tick(self) -> None:
        """Advance the clock: by a flush interval, or in quick steps while the horizon is far behind after a restart."""
        behind = self._clock_ms - self._horizon_ms
        if behind > 3_000:
            self._clock_ms += self._between(20, 60)
            self._horizon_ms = min(self._horizon_ms + self._between(1_000, 4_000), self._clock_ms - _BEHIND_MS)
        else:
            self._clock_ms += self._between(100, 2_000)
            self._horizon_ms = max(self._horizon_ms, self._clock_ms - self._between(_BEHIND_MS, 300))

    def _take(self) -> Iterator[Commit]:
        """The next commits up to the horizon. They are kept as long as a crash can send them again."""
        while self._ahead is not None and physical_ms(self._ahead.commit_ts) <= self._horizon_ms:
            self._sent.append(self._ahead)
            if self._ahead.commit_ts > self._newest_ts:
                self._newest_ts = self._ahead.commit_ts
                self._count(self._ahead)
            yield self._ahead
            self._ahead = next(self._source, None)
        while self._sent and physical_ms(self._sent[0].commit_ts) < self._horizon_ms - 2 * _BACK_MS[1]:
            self._sent.popleft()

    def _count(self, commit: Commit) -> None:
        """Count a commit that was never sent before."""
        if isinstance(commit, Ddl):
            self.delivery.ddl.append(commit)
        else:
            self.delivery.distinct_row_events += sum(self._sink.wants(c.table) for c in commit.rows)

    def _deliver(self, commits: Iterable[Commit]) -> Iterator[Message]:
        rows: list[SourceChange] = []
        for commit in commits:
            if isinstance(commit, Ddl):
                yield from self._flush(rows)
                yield from self._resolve(commit.commit_ts)
                yield from self._state(commit)
                rows = []
            else:
                rows += commit.rows
        yield from self._flush(rows)

    def _batches(self, rows: Iterable[SourceChange]) -> Iterator[tuple[_Partition, list[SourceChange]]]:
        """Rows by partition, in order, with as many per message as the sink allows."""
        parts: dict[_Partition, list[SourceChange]] = {}
        for row in rows:
            if self._sink.wants(row.table):
                parts.setdefault(self._sink.route(row), []).append(row)
        for partition, changes in parts.items():
            for at in range(0, len(changes), self._sink.batch):
                yield partition, changes[at : at + self._sink.batch]

    def _flush(self, rows: Iterable[SourceChange]) -> Iterator[Message]:
        for partition, batch in self._batches(rows):
            yield from self._describe(batch)
            yield self._send_rows(partition, batch)

    def _describe(self, batch: Iterable[SourceChange]) -> Iterator[Message]:
        """Send the schemas that these rows name and that were not sent yet, to the partitions that get schemas."""
        if not isinstance(self.encoder, SimpleEncoder):
            return
        for table in dict.fromkeys(change.table for change in batch):
            if table not in self._described:
                self._described.add(table)
                describe = partial(self.encoder.bootstrap, table)
                for partition in [p for p in self._partitions if p[1] < self._sink.bootstraps]:
                    yield self._send(partition, describe)

    def _send_rows(self, partition: _Partition, batch: list[SourceChange]) -> Message:
        message = self._send(partition, lambda at_ms: self.encoder.rows(batch, at_ms))
        self.delivery.saw_rows(message.timestamp_ms, batch)
        return message

    def _send(self, partition: _Partition, encode: Callable[[int], TopicRecord]) -> Message:
        """Send one message. CreateTime never decreases inside a partition; the encoder's clock is a few ms earlier."""
        offset, last_ms = self._partitions.get(partition, (0, 0))
        at_ms = max(last_ms, self._clock_ms + self._between(0, 150))
        key, value = encode(at_ms - self._between(1, 20))
        self._partitions[partition] = offset + 1, at_ms
        self.delivery.messages[partition] += 1
        return Message(*partition, offset, at_ms, key, value)

    def _state(self, ddl: Ddl) -> Iterator[Message]:
        """Send a statement to the partitions that get statements."""
        for partition in [p for p in self._partitions if p[1] < self._sink.ddl_partitions]:
            yield self._send(partition, lambda at_ms: self.encoder.ddl(ddl, at_ms))

    def _advance(self) -> Iterator[Message]:
        """Send the regular resolved ts, somewhat behind the horizon; sometimes exactly the last commit's."""
        if self._horizon_ms >= self._resolved_due_ms:
            self._resolved_due_ms = self._horizon_ms + self._between(*_RESOLVED_EVERY_MS)
            ts = from_ms(self._horizon_ms - self._between(200, 2_500))
            if self._sent and self._sent[-1].commit_ts > self._resolved_ts and self._random() < 0.2:
                ts = self._sent[-1].commit_ts
            if ts > self._resolved_ts:
                yield from self._resolve(ts)
                self._checkpoints.append((self._clock_ms, ts))
        if not self._sink.marks and self._clock_ms >= self._checkpoint_due_ms:
            self._checkpoint_due_ms = self._clock_ms + _CHECKPOINT_EVERY_MS
            self._record_checkpoint()

    def _record_checkpoint(self) -> None:
        """Record a checkpoint. All sent messages have a CreateTime before its time."""
        self.delivery.saw_checkpoint(self._clock_ms + 200, self._resolved_ts)

    def _resolve(self, ts: int) -> Iterator[Message]:
        """Send a resolved ts to all partitions."""
        self._resolved_ts = ts
        if not self._sink.marks:
            return
        for partition in list(self._partitions):
            message = self._send(partition, lambda at_ms: self.encoder.resolved(ts, at_ms))
            self.delivery.saw_resolved(partition, message.timestamp_ms, ts)
            yield message

    def _torn(self, commits: list[Commit]) -> Iterator[Message]:
        """What a crash leaves of a flush: some of the first messages of each partition, up to the first statement."""
        rows: list[SourceChange] = []
        for commit in commits:
            if isinstance(commit, Ddl):
                break
            rows += commit.rows
        dead: set[_Partition] = set()
        for partition, batch in self._batches(rows):
            if partition in dead or self._random() < 0.4:
                dead.add(partition)
            else:
                yield from self._describe(batch)
                yield self._send_rows(partition, batch)

    def _restart(self) -> Iterator[Message]:
        """Continue after some seconds, at a checkpoint of 20 to 60 s ago, or at the start."""
        back_ms = self._between(*_BACK_MS)
        while len(self._checkpoints) > 1 and self._checkpoints[1][0] <= self._clock_ms - back_ms:
            self._checkpoints.popleft()
        _, ts = self._checkpoints[0]
        again = [c for c in self._sent if c.commit_ts > ts]
        self._sent = deque(c for c in self._sent if c.commit_ts <= ts)
        ahead = [] if self._ahead is None else [self._ahead]
        self._source = chain(again, ahead, self._source)
        self._ahead = next(self._source, None)
        self._clock_ms += self._between(1_000, 3_000)
        self._horizon_ms = self._resolved_due_ms = physical_ms(ts)
        self._resolved_due_ms += self._between(*_RESOLVED_EVERY_MS)
        self._checkpoints = deque([(self._clock_ms, ts)])
        self.delivery.restarts.append((self._clock_ms, ts))
        yield from self._resolve(ts)
