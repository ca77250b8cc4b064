"""Histories that Hypothesis invents, and which particular situations each of them holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from hypothesis import strategies as st
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType

from tests.lake.delivery import Crash, Manner, Repeat, delivered
from tests.lake.histories import Message
from tests.lake.upstream import BARE, KEYED, Change, Ddl, Step, Upstream
from tidelake.history.event import Event

BUCKETS = 2
PARTS = 12  # an hour ends at so many-ths of a partition's messages
FEATURES = (
    "many partitions",
    "rows in every table",
    "replay of commits",
    "replay from inside a commit",
    "repeat of one row alone",
    "resolved ts going back",
    "several events of one key at one commit ts",
    "split and unsplit copies of one update",
    "row exactly at M",
    "row and statement at one commit ts",
    "DDL at M before the hour's end",
    "DDL at M after the hour's end",
    "bucket that becomes empty",
    "table that becomes empty",
    "several DDL in one window",
    "column that comes or goes",
    "truncated table",
    "re-created table",
    "swapped names",
    "exchanged partition",
    "another key",
    "key of a table that had none",
    "exchange at M after the hour's end",
    "another key at M after the hour's end",
    "partition appearing late",
    "idle partition",
    "hour that moves nothing",
    "three cuts",
)


@dataclass(frozen=True)
class History:
    """transactions: row steps, or one statement; ends: where hours end in every partition's messages, in PARTS, not in order; step: between
    two commit ts."""

    transactions: tuple[list[Step] | tuple[str, str, bool, bool], ...]
    manner: Manner
    ends: tuple[tuple[int, int, int], ...]
    step: int = 10

    @cached_property
    def upstream(self) -> Upstream:
        """After all transactions."""
        made = Upstream(self.step)
        for t in self.transactions:
            if isinstance(t, list):
                made.commit(t)
            else:
                made.alter(t[0], t[1], late=t[2], same=t[3])
        return made

    @cached_property
    def hours(self) -> list[list[Message]]:
        """The messages of each hour, partition by partition; the last one brings everything."""
        sent = delivered(self.upstream, self.manner)
        done = [0] * self.manner.partitions
        out = []
        for share in [*zip(*(sorted(of) for of in zip(*self.ends, strict=True)), strict=True), (PARTS,) * 3]:
            hour: list[Message] = []
            for p, messages in enumerate(sent):
                upto = max(done[p], share[p] * len(messages) // PARTS)
                hour += messages[done[p] : upto]
                done[p] = upto
            out.append(hour)
        return out

    @property
    def events(self) -> int:
        """Messages in all hours."""
        return sum(len(hour) for hour in self.hours)

    @cached_property
    def marks(self) -> list[int | None]:
        """M after each hour, None while a partition has not spoken."""
        best: dict[int, int] = {}
        out: list[int | None] = []
        for hour in self.hours:
            for m in hour:
                if m.event.kind == "resolved":
                    best[m.partition] = max(best.get(m.partition, 0), m.event.commit_ts or 0)
            out.append(min(best.values()) if len(best) == self.manner.partitions else None)
        return out

    @property
    def cuts(self) -> int:
        """How many the hours give."""
        return len({*accumulate((m or 0 for m in self.marks), max)} - {0})

    def not_here_yet(self, hours: int) -> set[int]:
        """The ts of statements of which the first so many hours hold nothing."""
        here = {m.event.commit_ts for hour in self.hours[:hours] for m in hour if m.event.kind == "ddl"}
        return self.statements - here

    @property
    def statements(self) -> set[int]:
        """Their ts."""
        return {e.ts for e in self.upstream.log if isinstance(e, Ddl)}

    def features(self) -> set[str]:
        """Those of FEATURES that are in it."""
        return {*_of_upstream(self), *_of_delivery(self), *_of_windows(self)}


def _of_upstream(h: History) -> Iterator[str]:
    words = " ".join(e.query for e in h.upstream.log if isinstance(e, Ddl))
    changes = [e for e in h.upstream.log if isinstance(e, Change)]
    if {c.table for c in changes} >= {*KEYED, BARE}:
        yield "rows in every table"
    if {c.ts for c in changes} & h.statements:
        yield "row and statement at one commit ts"
    named = {"COLUMN": "column that comes or goes", "TRUNCATE": "truncated table", "CREATE": "re-created table", "RENAME": "swapped names"}
    named |= {"EXCHANGE": "exchanged partition", "DROP PRIMARY": "another key", "m ADD PRIMARY": "key of a table that had none"}
    yield from (feature for word, feature in named.items() if word in words)


def _of_delivery(h: History) -> Iterator[str]:
    if h.manner.partitions > 1:
        yield "many partitions"
    for p in range(h.manner.partitions):
        marks = [m.event.commit_ts or 0 for hour in h.hours for m in hour if m.partition == p and m.event.kind == "resolved"]
        if any(b < a for a, b in pairwise(marks)):
            yield "resolved ts going back"
    different = {id(m): m.event for hour in h.hours for m in hour}
    if len(different) < h.events:
        yield "repeat of one row alone"
    sent = Counter(_sent(e) for e in different.values() if e.kind == "row" and e.table != BARE)
    if max(sent.values(), default=0) > 1:
        yield "replay of commits"
        if any(c.inside for c in h.manner.crashes):
            yield "replay from inside a commit"
    yield from _of_keys(set(sent))


def _sent(e: Event) -> tuple[object, ...]:
    after, before = (cells[0] if cells else None for cells in (e.after, e.before))
    return e.table, e.commit_ts, e.op, after, before


def _of_keys(sent: set[tuple[object, ...]]) -> Iterator[str]:
    whole = {(t, ts, after) for t, ts, op, after, _ in sent if op == "update"}
    if whole & {(t, ts, after) for t, ts, op, after, _ in sent if op == "insert"}:
        yield "split and unsplit copies of one update"
    of_key = Counter((t, ts, key) for t, ts, _, after, before in sent for key in {after, before} - {None})
    if max(of_key.values(), default=0) > 1:
        yield "several events of one key at one commit ts"


def _of_windows(h: History) -> Iterator[str]:
    log = h.upstream.log
    statements, rows = [e.ts for e in log if isinstance(e, Ddl)], {e.ts for e in log if isinstance(e, Change)}
    applied, seen = 0, set[int]()
    if h.cuts > 2:
        yield "three cuts"
    for n, (hour, m) in enumerate(zip(h.hours, h.marks, strict=True)):
        seen |= {message.partition for message in hour}
        if n == 0 and len(seen) < h.manner.partitions and hour:
            yield "partition appearing late"
        if h.manner.partitions > len({x.partition for x in hour if x.event.kind == "row"}) and len({x.partition for x in hour}) > 1:
            yield "idle partition"
        if m is None or m <= applied:
            yield "hour that moves nothing"
            continue
        if m in rows:
            yield "row exactly at M"
        if m in statements:
            yield f"DDL at M {'after' if m in h.not_here_yet(n + 1) else 'before'} the hour's end"
            if m in h.not_here_yet(n + 1) and m in h.upstream.moves:
                yield f"{'another key' if 'KEY' in h.upstream.moves[m].query else 'exchange'} at M after the hour's end"
        if sum(applied < ts <= m for ts in statements) > 1:
            yield "several DDL in one window"
        yield from _emptied(h, applied, m)
        applied = m


def _emptied(h: History, applied: int, resolved: int) -> Iterator[str]:
    """By rows that were deleted, from one cut to the next."""
    bucket = BucketTransform(BUCKETS).transform(LongType())
    before, after = h.upstream.at(applied), h.upstream.at(resolved)
    for name in KEYED:
        had, has = ({bucket(int(row[0][1])) for row in at.get(name, ())} for at in (before, after))
        if had and not has and name in after:
            yield "table that becomes empty"
        elif had - has:
            yield "bucket that becomes empty"


KEYS, VALUES = st.sampled_from("013"), st.sampled_from("abcd")
_ROW_STEPS: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.sampled_from(["put", "put", "put", "put", "drop"]), st.sampled_from(KEYED), KEYS, VALUES),
    st.tuples(st.sampled_from(["move", "exchange"]), st.sampled_from(KEYED), KEYS, KEYS),
    st.tuples(st.just("clear"), st.sampled_from(KEYED), st.just(""), st.just("")),
    st.tuples(st.sampled_from(["put", "put", "drop", "move"]), st.just(BARE), st.sampled_from("xy"), st.sampled_from("xy")),
)
_STATEMENTS = st.tuples(
    st.sampled_from(["column", "rekey", "truncate", "recreate", "swap", "exchange", "exchange", "exchange", "rekey"]),
    st.sampled_from((*KEYED, BARE)),
    st.booleans(),
    st.booleans(),
)
_TRANSACTIONS = st.sampled_from([True, True, True, False]).flatmap(
    lambda rows: st.lists(_ROW_STEPS, min_size=2, max_size=7) if rows else _STATEMENTS
)
_CRASHES = st.builds(Crash, share=st.sampled_from([0.5, 0.8, 0.3, 1.0]), back=st.sampled_from([3, 2, 4, 1]), inside=st.integers(0, 3))
_REPEATS = st.builds(Repeat, partition=st.integers(0, 2), share=st.floats(0, 1), later=st.integers(0, 9))
_ENDS = st.tuples(st.integers(4, PARTS), st.integers(0, PARTS), st.integers(1, PARTS))
HISTORIES = st.builds(
    History,
    transactions=st.lists(_TRANSACTIONS, min_size=4, max_size=14).map(tuple),
    manner=st.builds(
        Manner,
        partitions=st.sampled_from([3, 2, 1]),
        halves=st.sampled_from([2, 2, 2, 1, 0, 3]),
        quiet=st.integers(1, 3),
        crashes=st.sampled_from([2, 1, 1, 0]).flatmap(lambda n: st.tuples(*[_CRASHES] * n)),
        repeats=st.lists(_REPEATS, max_size=3).map(tuple),
    ),
    ends=st.lists(_ENDS, min_size=1, max_size=3).map(tuple),
)
