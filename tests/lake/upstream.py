"""An upstream database that Hypothesis drives, and what a changefeed makes of it: rows, resolved events, crashes and repeats.

The truth is the dictionary of rows itself, kept at every commit; nothing here knows Tidelake's rules of order.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.lake.histories import Message, resolved, row, shape

KEYED = shape("id bigint", "v varchar")
BARE = shape("v varchar", key=())
Bag = Counter[tuple[tuple[str, str], ...]]


@dataclass
class Upstream:
    """Tables k (keyed) and m (without key), and everything that was sent about them."""

    partitions: int
    ts: int = 100
    k: dict[str, str] = field(default_factory=dict)
    m: Counter[str] = field(default_factory=Counter)
    log: list[tuple[int, Message]] = field(default_factory=list)  # (commit ts, message) as first delivered
    truth: dict[int, tuple[Bag, Bag]] = field(default_factory=dict)  # commit ts → contents from then on

    def commit(self, steps: list[tuple[str, str, str]]) -> None:
        """One transaction: (op, key or value, new value); what is impossible is left out. Deletes come first, as TiCDC sorts."""
        self.ts += 10
        changed: set[str] = set()
        out: list[Message] = []
        for op, a, b in steps:
            if op.startswith("m"):
                out += self._bare(op, a, b)
            elif a not in changed and (op != "move" or b not in changed):
                changed |= {a, b} if op == "move" else {a}
                out += self._keyed(op, a, b)
        order = {"delete": 0, "update": 1, "insert": 2}
        out.sort(key=lambda message: order[message.event.op or ""])
        self.log += [(self.ts, message) for message in out]
        if out:
            self.truth[self.ts] = self.contents()

    def contents(self) -> tuple[Bag, Bag]:
        """Both tables now, as printed."""
        keyed = Counter((("id", i), ("v", v)) for i, v in self.k.items())
        return keyed, Counter({(("v", v),): n for v, n in self.m.items() if n > 0})

    def at(self, ts: int) -> tuple[Bag, Bag]:
        """Both tables at a TSO."""
        known = [t for t in self.truth if t <= ts]
        return self.truth[max(known)] if known else (Counter(), Counter())

    def _keyed(self, op: str, key: str, value: str) -> list[Message]:
        at = int(key) % self.partitions
        old = self.k.get(key)
        if op == "put" and old is None:
            self.k[key] = value
            return [row(at, "insert", self.ts, KEYED, (key, value))]
        if op == "put" and old != value:
            self.k[key] = value
            return [row(at, "update", self.ts, KEYED, (key, value), (key, old))]
        if op == "drop" and old is not None:
            del self.k[key]
            return [row(at, "delete", self.ts, KEYED, None, (key, old))]
        if op == "move" and old is not None and value not in self.k:
            del self.k[key]
            self.k[value] = old
            to = int(value) % self.partitions
            return [row(at, "delete", self.ts, KEYED, None, (key, old)), row(to, "insert", self.ts, KEYED, (value, old))]
        return []

    def _bare(self, op: str, value: str, new: str) -> list[Message]:
        if op == "m put":
            self.m[value] += 1
            return [row(0, "insert", self.ts, BARE, (value,), table="m")]
        if self.m[value] <= 0:
            return []
        self.m[value] -= 1
        if op == "m drop":
            return [row(0, "delete", self.ts, BARE, None, (value,), table="m")]
        self.m[new] += 1
        return [row(0, "update", self.ts, BARE, (new,), (value,), table="m")]


def delivered(upstream: Upstream, crashes: list[tuple[float, int]]) -> list[list[Message]]:
    """What each partition gets, in order: rows with a resolved event after each commit; each crash (how far through the log, how many
    commits back) sends again from there, beginning with the resolved event that goes back."""
    commits = sorted({ts for ts, _ in upstream.log})
    partitions: list[list[Message]] = [[] for _ in range(upstream.partitions)]

    def send(first: int, last: int) -> None:
        for ts in commits[first:last]:
            for t, message in upstream.log:
                if t == ts:
                    partitions[message.partition].append(message)
            for p in range(upstream.partitions):
                partitions[p] += resolved(ts, p)

    def back_to(n: int) -> None:
        for p in range(upstream.partitions):
            partitions[p] += resolved(commits[n] - 1 if n < len(commits) else commits[-1], p)

    sent = 0
    for share, back in sorted(crashes):
        upto = max(sent, int(share * len(commits)))
        send(sent, upto)
        sent = max(0, upto - back)
        back_to(sent)
    send(sent, len(commits))
    return partitions


STEPS = st.one_of(
    st.tuples(st.sampled_from(["put", "put", "drop"]), st.sampled_from("0123"), st.sampled_from("abc")),
    st.tuples(st.just("move"), st.sampled_from("0123"), st.sampled_from("0123")),
    st.tuples(st.sampled_from(["m put", "m put", "m drop", "m change"]), st.sampled_from("xy"), st.sampled_from("xy")),
)


def ends(first: st.SearchStrategy[int], second: st.SearchStrategy[int]) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Where hours end in each partition's messages, in twelfths; not in order."""
    return st.lists(st.tuples(first, second), min_size=1, max_size=4)


HISTORIES = st.tuples(
    st.sampled_from([2, 1]),
    st.lists(st.lists(STEPS, min_size=1, max_size=5), min_size=3, max_size=12),
    st.lists(st.tuples(st.floats(0.1, 1.0), st.integers(1, 3)), max_size=2),
    ends(st.integers(6, 12), st.integers(1, 7)) | ends(st.integers(0, 12), st.integers(0, 12)),  # the second may be hours behind
)
