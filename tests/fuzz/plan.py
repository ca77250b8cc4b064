"""What a run tries, in tasks that any process can do: every cut and flipped bit, giants, and random damage for the rest."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, count, islice
from random import Random

from tests.fuzz import giants, mutate
from tests.fuzz.corpus import Group, groups, size, wholes
from tests.fuzz.inside import broken_inside
from tests.fuzz.judge import judge, judge_alone
from tests.fuzz.tally import Tally
from tests.protocols.both_paths import Message
from tidelake.protocols import Context

TASK = 4_000  # messages
BATCH_BYTES = 256_000
FLIPPED = 50  # messages of all protocols together whose every bit is flipped
_SHARE = 0.6  # of all messages that may be systematic


@dataclass(frozen=True, slots=True)
class Task:
    """A share of one protocol's messages. kind: cuts, flips: from `first` on each `step`-th; random: `count`; giants: of so many MB."""

    protocol: str
    kind: str
    seed: int
    first: int = 0
    count: int = TASK
    step: int = 1
    batch: int = 250

    def __str__(self) -> str:
        return f"{self.protocol}:{self.kind}:{self.seed}:{self.first}:{self.count}:{self.step}:{self.batch}"

    @classmethod
    def of(cls, text: str) -> Task:
        """The inverse of str()."""
        protocol, kind, *numbers = text.split(":")
        return cls(protocol, kind, *map(int, numbers))


def tasks(protocols: list[str], messages: int, seed: int, batch: int, giant_mb: int) -> Iterator[Task]:
    """For so many messages; without an end where that is 0."""
    whole = sum(_systematic(p, kind) for p in protocols for kind in ("cuts", "flips"))
    step = -(-whole // max(int(_SHARE * messages), 1)) if messages else 1
    planned, done = list[Task](), 0
    for protocol in protocols if giant_mb else ():
        planned.append(Task(protocol, "giants", seed, count=giant_mb))
    for protocol in protocols:
        for kind in ("cuts", "flips"):
            total = _systematic(protocol, kind)
            for first in range(seed % step, total, TASK * step):
                share = len(range(first, min(first + TASK * step, total), step))
                planned.append(Task(protocol, kind, seed, first, share, step, batch))
                done += share
    yield from sorted(planned, key=lambda task: (task.kind == "flips", task.first))  # by turns: processes compile different code first
    for number in count(1):
        for protocol in protocols:
            left = TASK if not messages else min(TASK, -(-max(messages - done, 0) // len(protocols)))
            if not left:
                return
            yield Task(protocol, "random", seed * 1_000_003 + number, count=left, batch=batch)
        done += left * len(protocols)


def run(task: Task) -> Tally:
    """Do it."""
    tally = Tally()
    if task.kind == "giants":
        for group in groups(task.protocol)[:3]:  # compiled code is loaded, and what lives on is out of the way
            judge(group, group.context(), group.messages, Tally())
        gc.freeze()
        for giant in giants.of(task.protocol, task.count):
            judge_alone(giant.group, giant.message, giant.weight, giant.name, tally)
    else:
        contexts: dict[int, Context] = {}
        for number, messages in _batches(_messages(task), task.batch):
            group = groups(task.protocol)[number]
            if number not in contexts:
                contexts[number] = group.context()
                judge(group, contexts[number], group.messages, Tally())  # so that scans know the tables
            judge(group, contexts[number], messages, tally)
    for i, fault in enumerate(tally.faults):
        tally.faults[i] = type(fault)(fault.protocol, fault.what, fault.options, fault.line, fault.schemas, f"(task {task})")
    return tally


def _messages(task: Task) -> Iterable[tuple[int, Message]]:
    """Broken messages, with the number of their group."""
    match task.kind:
        case "cuts":
            return _every(((i, mutate.cuts(m)) for i, m in wholes(task.protocol)), task)
        case "flips":
            return _every(((i, mutate.flips(m)) for i, m in _flipped(task.protocol)), task)
        case _:
            return _random(task)


def _every(broken: Iterable[tuple[int, Iterator[Message]]], task: Task) -> Iterator[tuple[int, Message]]:
    """The task's share of a long row."""
    row = chain.from_iterable(((i, m) for m in messages) for i, messages in broken)
    return islice(row, task.first, task.first + task.count * task.step, task.step)


def _random(task: Task) -> Iterator[tuple[int, Message]]:
    """A batch of one group after the other, wide groups more often."""
    chance, found = Random(task.seed), groups(task.protocol)
    weights = [len(g.messages) ** 0.5 for g in found]
    left = task.count
    while left:
        (number,) = chance.choices(range(len(found)), weights)
        for _ in range(some := min(left, task.batch)):
            yield number, _broken(found[number], chance)
        left -= some


def _broken(group: Group, chance: Random) -> Message:
    one, other = chance.choices(group.messages, k=2)
    return broken_inside(group, one, other, chance) if chance.random() < 0.4 else mutate.broken(one, other, chance)


def _batches(messages: Iterable[tuple[int, Message]], most: int) -> Iterator[tuple[int, list[Message]]]:
    """Cut where the group changes, at so many messages, or at so many bytes."""
    current, taken, weight = -1, list[Message](), 0
    for number, message in messages:
        if taken and (number != current or len(taken) == most or weight > BATCH_BYTES):
            yield current, taken
            taken, weight = [], 0
        current, weight = number, weight + size(message)
        taken.append(message)
    if taken:
        yield current, taken


@cache
def _flipped(protocol: str) -> tuple[tuple[int, Message], ...]:
    """A protocol's share of the messages whose bits are flipped: of different sizes, none so long that its bits take all the time."""
    some = sorted((w for w in wholes(protocol) if 0 < size(w[1]) <= 1_200), key=lambda w: size(w[1]))
    each = FLIPPED // 10
    return tuple(some[i * (len(some) - 1) // (each - 1)] for i in range(each))


@cache
def _systematic(protocol: str, kind: str) -> int:
    """How many messages there are of the kind."""
    if kind == "cuts":
        return sum(size(m) for _, m in wholes(protocol))
    return sum(8 * size(m) for _, m in _flipped(protocol))
