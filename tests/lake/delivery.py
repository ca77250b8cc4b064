"""What a changefeed makes of an upstream's log: rows and statements on partitions, resolved events, crashes, repeats, split updates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tests.lake.histories import Message, ddl, resolved, row, row_schema
from tests.lake.upstream import BARE, START, Change, Ddl, Upstream

_WAITS = 9  # times the resolved ts is sent while a changefeed waits for a statement of just that ts
_CLASS = {"delete": 0, "update": 1, "insert": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """After `share` of the commits and `inside` messages of the next, all is sent again from `back` commits before."""

    share: float
    back: int
    inside: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """A row message of a table with a key that comes once more, so many messages later; share: where, of its partition's messages."""

    partition: int
    share: float
    later: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a changefeed delivers. halves: in every how many-th update comes as delete and insert, another in each replay_epoch, 0 = none;
    quiet: how many commits pass before the partitions after the first hear of one."""

    partitions: int
    halves: int
    quiet: int
    crashes: tuple[Crash, ...]
    repeats: tuple[Repeat, ...]


def delivered(upstream: Upstream, manner: Manner) -> list[list[Message]]:
    """What each partition gets, in order."""
    partitions: list[list[Message]] = [[] for _ in range(manner.partitions)]
    of_ts: dict[int, list[Change | Ddl]] = defaultdict(list)
    for entry in upstream.log:
        of_ts[entry.ts].append(entry)
    commits = sorted(of_ts)
    replay_epoch = 0
    _put(partitions, resolved(START, *range(manner.partitions)))

    def send(first: int, last: int, inside: int = 0) -> None:
        for n in range(first, last):
            _put(partitions, _rows(of_ts[commits[n]], manner, replay_epoch))
            if any(isinstance(e, Ddl) and e.late for e in of_ts[commits[n]]):
                for _ in range(_WAITS):
                    _put(partitions, resolved(commits[n], *range(manner.partitions)))
            _put(partitions, _statements(of_ts[commits[n]], manner))
            _put(partitions, _resolved(commits[n], n, len(commits), manner))
        if inside and last < len(commits):
            _put(partitions, list(_rows(of_ts[commits[last]], manner, replay_epoch))[:inside])

    sent = 0
    for crash in sorted(manner.crashes, key=lambda c: c.share):
        upto = max(sent, int(crash.share * len(commits)))
        send(sent, upto, crash.inside)
        sent = max(0, upto - crash.back)
        replay_epoch += 1
        # What is sent again begins with a step back (docs/reference/protocols.md 11.14).
        back_to = (commits[sent - 1] if sent else START) - replay_epoch
        _put(partitions, resolved(back_to, *range(manner.partitions)))
    send(sent, len(commits))
    if commits and any(isinstance(e, Ddl) and e.late for e in of_ts[commits[-1]]):
        _put(partitions, resolved(commits[-1] + 5, *range(manner.partitions)))  # without it, no cut may follow the statement
    for repeat in manner.repeats:
        _repeat(partitions[repeat.partition % manner.partitions], repeat)
    return partitions


def _put(partitions: list[list[Message]], messages: list[Message] | Iterator[Message]) -> None:
    for message in messages:
        partitions[message.partition].append(message)


def _rows(entries: list[Change | Ddl], manner: Manner, replay_epoch: int) -> Iterator[Message]:
    """Of one commit, deletes first, as TiCDC sorts them."""
    out: list[Message] = []
    for n, c in enumerate(e for e in entries if isinstance(e, Change)):
        halves = manner.halves and (c.ts // 10 + n + replay_epoch) % manner.halves == 0
        if c.op == "update" and c.key and halves:
            out += [_row(manner, c, "delete", before=True), _row(manner, c, "insert", after=True)]
        else:
            out.append(_row(manner, c, c.op, before=c.op != "insert", after=c.op != "delete"))
    return iter(sorted(out, key=lambda m: _CLASS[m.event.op or ""]))


def _row(manner: Manner, c: Change, op: str, *, before: bool = False, after: bool = False) -> Message:
    shown = c.after if after else c.before
    assert shown is not None
    at = 0 if c.table == BARE else (int(shown[0]) + (c.table == "j")) % manner.partitions
    kinds = {"id": "bigint", "v": "varchar", "n": "varchar"}
    made = row_schema(*(f"{name} {kinds[name]}" for name in c.columns), key=c.columns[: c.key])
    return row(at, op, c.ts, made, c.after if after else None, c.before if before else None, table=c.table)


def _statements(entries: list[Change | Ddl], manner: Manner) -> Iterator[Message]:
    for e in entries:
        if isinstance(e, Ddl):
            yield from ddl(e.ts, e.query, *range(manner.partitions))


def _resolved(ts: int, n: int, commits: int, manner: Manner) -> Iterator[Message]:
    for p in range(manner.partitions):
        if p == 0 or n % manner.quiet == 0 or n == commits - 1:
            yield from resolved(ts, p)


def _repeat(messages: list[Message], repeat: Repeat) -> None:
    here = int(repeat.share * len(messages))
    if here < len(messages) and messages[here].event.kind == "row" and messages[here].event.table != BARE:
        messages.insert(here + 1 + repeat.later, messages[here])
