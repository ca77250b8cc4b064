"""The delivery keeps TiCDC's promises (docs/reference/protocols.md 1.7, 6.1, 11): order, watermarks, statements, replay epochs again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from tidelake.demo.delivery import Delivery, Message
from tidelake.demo.history import HOUR_MS, History
from tidelake.demo.messages.model import Ddl, SourceChange, SourceTable, TopicRecord, Transaction
from tidelake.demo.replicator import Replicator
from tidelake.demo.sinks import SINKS
from tidelake.tso import physical_ms

HISTORY = History(rows_per_hour=3000, seed=3)
MARKED = ("open", "craft", "canal-json")
ALL = (*MARKED, "avro")
Partition = tuple[str, int]


@dataclass
class Recorder:
    """An encoder whose values are numbers of what it was given."""

    seen: list[Any] = field(default_factory=list)

    def rows(self, changes: Sequence[SourceChange], build_ms: int) -> TopicRecord:
        return self._number(list(changes))

    def ddl(self, ddl: Ddl, build_ms: int) -> TopicRecord:
        return self._number(ddl)

    def resolved(self, ts: int, build_ms: int) -> TopicRecord:
        return self._number(ts)

    def _number(self, what: Any) -> TopicRecord:
        self.seen.append(what)
        return None, str(len(self.seen) - 1).encode()


@dataclass(frozen=True)
class Sent:
    """A message and what it holds: rows, a statement, or a resolved ts."""

    message: Message
    what: Any

    @property
    def rows(self) -> list[SourceChange]:
        return self.what if isinstance(self.what, list) else []


@cache
def delivered(protocol: str) -> tuple[dict[Partition, list[Sent]], Delivery]:
    recorder = Recorder()

    def encoder(seed: int, definitions: Iterable[SourceTable]) -> Recorder:
        return recorder

    replicator = Replicator(HISTORY, replace(SINKS[protocol], encoder=encoder), seed=3)
    parts: dict[Partition, list[Sent]] = defaultdict(list)
    for message in replicator.messages():
        parts[message.topic, message.partition].append(Sent(message, recorder.seen[int(message.value or b"")]))
    return parts, replicator.delivery


def replay_epochs(protocol: str, messages: list[Sent]) -> list[list[Sent]]:
    """A partition's messages cut where the delivery went back: at a resolved ts that does, for Avro at the restarts' times."""
    restarts = [at_ms for at_ms, _ in delivered(protocol)[1].restarts]
    out: list[list[Sent]] = [[]]
    resolved = 0
    for sent in messages:
        if isinstance(sent.what, int):
            if sent.what < resolved:
                out.append([])
            resolved = sent.what
        elif protocol == "avro" and len(out) <= len(restarts) and sent.message.timestamp_ms >= restarts[len(out) - 1]:
            out.append([])
        out[-1].append(sent)
    return out


def all_rows(protocol: str) -> list[tuple[Any, ...]]:
    """Every row event the changefeed must deliver."""
    return [fact(r) for c in HISTORY.commits() if isinstance(c, Transaction) for r in c.rows if SINKS[protocol].wants(r.table)]


def fact(change: SourceChange) -> tuple[Any, ...]:
    """A change without its table's identity: another simulation gives an equal one."""
    return change.table.name, tuple(c.name for c in change.table.columns), *change[1:]


@pytest.mark.parametrize("protocol", ALL)
def test_offsets_are_contiguous_and_create_times_never_decrease(protocol: str) -> None:
    parts, delivery = delivered(protocol)
    assert {len(m) for m in parts.values()} == set(delivery.messages.values())
    assert sum(delivery.messages.values()) > 5000
    for messages in parts.values():
        times = [s.message.timestamp_ms for s in messages]
        assert [s.message.offset for s in messages] == list(range(len(messages)))
        assert times == sorted(times)


@pytest.mark.parametrize("protocol", ALL)
def test_every_row_event_is_delivered_and_only_crashes_repeat_some(protocol: str) -> None:
    parts, delivery = delivered(protocol)
    sent = [fact(r) for messages in parts.values() for s in messages for r in s.rows]
    assert set(sent) == set(all_rows(protocol))
    assert (delivery.row_events, delivery.distinct_row_events) == (len(sent), len(all_rows(protocol)))
    assert 50 < delivery.row_events - delivery.distinct_row_events < 400
    quiet = Replicator(HISTORY, SINKS[protocol], crashes=())
    assert sum(1 for _ in quiet.messages()) > 5000
    assert quiet.delivery.row_events == quiet.delivery.distinct_row_events == len(all_rows(protocol))


@pytest.mark.parametrize("protocol", ALL)
def test_commit_ts_never_decrease_inside_a_replay_epoch_of_a_partition(protocol: str) -> None:
    counts = set()
    for messages in delivered(protocol)[0].values():
        parts = replay_epochs(protocol, messages)
        counts.add(len(parts))
        for part in parts:
            ts = [r.commit_ts for s in part for r in s.rows]
            assert ts == sorted(ts)
    assert counts == ({4} if protocol != "avro" else counts)


@pytest.mark.parametrize("protocol", ALL)
def test_rows_of_one_key_stay_in_one_partition_and_those_without_a_key_with_their_table(protocol: str) -> None:
    homes: dict[Any, set[Partition]] = defaultdict(set)
    for partition, messages in delivered(protocol)[0].items():
        for r in (r for s in messages for r in s.rows):
            homes[r.table.name, r.key].add(partition)
    assert {len(h) for h in homes.values()} == {1}
    assert len({h for home in homes.values() for h in home}) == (14 if protocol == "avro" else 3)


@pytest.mark.parametrize("protocol", MARKED)
def test_every_row_event_up_to_a_resolved_ts_precedes_it_in_its_partition(protocol: str) -> None:
    for messages in delivered(protocol)[0].values():
        first = {r: s.message.offset for s in reversed(messages) for r in reversed(s.rows)}
        missing = sorted(first, key=lambda r: r.commit_ts)
        latest = 0
        for sent in messages:
            if isinstance(sent.what, int) and sent.what > latest:
                latest = sent.what
                while missing and missing[0].commit_ts <= latest:
                    assert first[missing.pop(0)] < sent.message.offset
        assert missing == []


@pytest.mark.parametrize("protocol", MARKED)
def test_inside_a_replay_epoch_no_row_event_follows_a_resolved_ts_that_covers_it(protocol: str) -> None:
    for messages in delivered(protocol)[0].values():
        for part in replay_epochs(protocol, messages):
            resolved = 0
            for sent in part:
                assert all(r.commit_ts > resolved for r in sent.rows)
                resolved = sent.what if isinstance(sent.what, int) else resolved


@pytest.mark.parametrize("protocol", MARKED)
def test_resolved_ts_come_about_every_five_seconds_and_lag_by_seconds_at_most(protocol: str) -> None:
    for messages in delivered(protocol)[0].values():
        marks = [s for s in messages if isinstance(s.what, int)]
        gaps = [b.message.timestamp_ms - a.message.timestamp_ms for a, b in pairwise(marks)]
        assert sorted(gaps)[len(gaps) // 2] == pytest.approx(5_500, abs=1_500)
        assert max(gaps) < 15_000
        lags = sorted(s.message.timestamp_ms - physical_ms(s.what) for s in marks)
        assert lags[0] > 0
        assert lags[len(lags) * 95 // 100] < 6_000


@pytest.mark.parametrize("protocol", MARKED)
def test_a_resolved_ts_of_exactly_its_commit_ts_precedes_every_statement(protocol: str) -> None:
    statements = [s.ddl for s in HISTORY.statements()]
    for (_, partition), messages in delivered(protocol)[0].items():
        resolved, seen = 0, list[Ddl]()
        for sent in messages:
            if isinstance(sent.what, Ddl):
                seen.append(sent.what)
                assert sent.what.commit_ts == resolved
            resolved = sent.what if isinstance(sent.what, int) else resolved
        if partition < SINKS[protocol].ddl_partitions:
            assert list(dict.fromkeys(seen)) == statements
            assert sorted(seen, key=lambda d: d.commit_ts) == sorted([*statements, statements[0], statements[5]], key=lambda d: d.commit_ts)
        else:
            assert seen == []


@pytest.mark.parametrize("protocol", MARKED)
def test_a_crash_sends_everything_after_an_older_checkpoint_again(protocol: str) -> None:
    parts, delivery = delivered(protocol)
    assert len(delivery.restarts) == 3
    for at_ms, back_ts in delivery.restarts:
        assert 20_000 <= at_ms - physical_ms(back_ts) <= 75_000
    for messages in parts.values():
        runs = replay_epochs(protocol, messages)
        for before, after, (at_ms, back_ts) in zip(runs, runs[1:], delivery.restarts, strict=False):
            assert after[0].what == back_ts
            assert after[0].message.timestamp_ms >= at_ms
            reached = max(r.commit_ts for s in before for r in s.rows)
            lost = {r for s in before for r in s.rows if r.commit_ts > back_ts}
            again = [r for s in after for r in s.rows if r.commit_ts <= reached]
            assert lost <= set(again)
            assert len(again) == len(set(again)) > 0


@pytest.mark.parametrize("protocol", ["open", "craft"])
def test_a_repeat_comes_later_and_in_other_batches(protocol: str) -> None:
    parts, _ = delivered(protocol)
    first: dict[SourceChange, Sent] = {}
    repeats = alike = 0
    for s in (s for messages in parts.values() for s in messages):
        for r in s.rows:
            earlier = first.setdefault(r, s)
            if earlier is not s:
                repeats += 1
                alike += earlier.rows == s.rows
                assert earlier.message.offset < s.message.offset
                assert earlier.message.timestamp_ms < s.message.timestamp_ms
    assert repeats > 50
    assert alike < repeats


def test_a_crash_leaves_transactions_partly_sent() -> None:
    parts, delivery = delivered("open")
    torn = 0
    for at_ms, _ in delivery.restarts:
        early: dict[int, int] = defaultdict(int)
        for s in (s for messages in parts.values() for s in messages if s.message.timestamp_ms < at_ms):
            for r in s.rows:
                early[r.commit_ts] += 1
        whole = {c.commit_ts: len(c.rows) for c in HISTORY.commits() if isinstance(c, Transaction)}
        torn += any(0 < n < whole[ts] for ts, n in early.items())
    assert torn >= 1


@pytest.mark.parametrize("protocol", ALL)
def test_create_times_follow_the_commit_within_seconds(protocol: str) -> None:
    parts, delivery = delivered(protocol)
    first: dict[SourceChange, int] = {}
    for s in (s for messages in parts.values() for s in messages):
        for r in s.rows:
            first.setdefault(r, s.message.timestamp_ms)
    for r, at_ms in first.items():
        after_a_crash = any(-3_500 < at_ms - restart_ms < 15_000 for restart_ms, _ in delivery.restarts)
        assert 50 <= at_ms - physical_ms(r.commit_ts) <= (9_000 if after_a_crash else 3_000)


@pytest.mark.parametrize("protocol", MARKED)
def test_the_hour_s_resolved_ts_is_the_minimum_of_the_partitions_largest(protocol: str) -> None:
    parts, delivery = delivered(protocol)
    before = 0
    for hour in HISTORY.hour_starts:
        end_ms = int(hour.timestamp() * 1000) + HOUR_MS
        want = min(max(s.what for s in m if isinstance(s.what, int) and s.message.timestamp_ms < end_ms) for m in parts.values())
        assert delivery.resolved(hour) == want > before
        before = want
    assert before > max(c.commit_ts for c in HISTORY.commits())


def test_avro_checkpoints_are_true_and_about_every_ten_seconds() -> None:
    parts, delivery = delivered("avro")
    points = delivery.checkpoints
    assert 1000 < len(points) < 1085
    assert points == sorted(points, key=lambda p: (p["at_ms"], p["checkpoint_ts"]))
    assert max(b["at_ms"] - a["at_ms"] for a, b in pairwise(points)) < 16_000
    first: dict[SourceChange, int] = {}
    for s in (s for m in parts.values() for s in m):
        for r in s.rows:
            first.setdefault(r, s.message.timestamp_ms)
    waiting, latest_ms = sorted(first, key=lambda r: r.commit_ts), 0
    for point in points:
        while waiting and waiting[0].commit_ts <= point["checkpoint_ts"]:
            latest_ms = max(latest_ms, first[waiting.pop(0)])
        assert latest_ms < point["at_ms"]
    assert waiting == []


def test_avro_has_a_topic_per_table_with_a_key_and_no_statements() -> None:
    parts, delivery = delivered("avro")
    names = "bids boxes flash_sales listings merchants parcels sellers".split()
    assert sorted(parts) == [(f"cdc_bazaar_{name}", p) for name in names for p in (0, 1)]
    assert all(len(s.rows) == 1 for m in parts.values() for s in m)
    assert [d.code for d in delivery.ddl] == [5, 3, 12, 12, 11, 14, 6, 4]


def test_avro_s_unsettled_keys_are_those_with_an_event_above_the_hour_s_checkpoint() -> None:
    parts, delivery = delivered("avro")
    sizes = []
    for hour in HISTORY.hour_starts:
        end_ms = int(hour.timestamp() * 1000) + HOUR_MS
        resolved = delivery.resolved(hour)
        assert resolved == [c["checkpoint_ts"] for c in delivery.checkpoints if c["at_ms"] < end_ms][-1]
        want: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        for s in (s for m in parts.values() for s in m if s.message.timestamp_ms < end_ms):
            for r in s.rows:
                if r.commit_ts > resolved:
                    want[f"bazaar.{r.table.name}"].add(tuple(map(str, r.key)))
        got = delivery.unsettled(hour)
        assert {table: set(map(tuple, keys)) for table, keys in got.items()} == want
        assert sum(map(len, got.values())) == sum(map(len, want.values()))
        sizes.append(sum(map(len, got.values())))
    assert max(sizes[:3]) > 0
    assert sizes[3] == 0


def test_a_crash_before_the_first_checkpoint_starts_from_the_beginning() -> None:
    replicator = Replicator(HISTORY, SINKS["craft"], crashes=[0.05, 0.2])
    assert sum(1 for _ in replicator.messages()) > 5000
    assert len(replicator.delivery.restarts) == 2
    assert physical_ms(replicator.delivery.restarts[0][1]) == HISTORY.start_ms
    assert replicator.delivery.distinct_row_events == len(all_rows("craft"))
