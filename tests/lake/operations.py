"""What operators do to a feed between the hours of an invented history: rollback it, redo hours, put right what was decoded wrongly."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.lake.histories import Message
from tests.lake.invented import HISTORIES, History
from tests.lake.upstream import KEYED
from tidelake.history.event import Event

WRONG = "wrong"  # what the first decoder makes of a value


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What happens once an hour is published.

    what: `rollback` to one of all published cuts, also to one that was undone, `redo` from one of the hours on, or nothing;
    share: which, of those there are; forward: the hours after a rollback run again one by one, not with the next hour.
    """

    what: str
    share: float
    forward: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """An hour, counted from 0, of which the first decoder makes something else.

    how: `other` values, `lost` rows, or another `default` of a new column; every: of so many row events one; later: how many hours pass
    until it is put right; late: by a second generation of the hour that holds what the first lacked, else by another decoder.
    """

    hour: int
    how: str
    every: int
    later: int
    late: bool


@dataclass(frozen=True, slots=True)
class Story:
    """A history, an operation after each hour, and what is wrong at first."""

    history: History
    operations: tuple[Operation, ...]
    wrong: Wrong | None

    def first(self, hour: int) -> list[Message]:
        """The messages of an hour, counted from 0, as the first decoder makes them."""
        messages = self.history.hours[hour]
        if self.wrong is None or self.wrong.hour != hour:
            return messages
        if self.wrong.how == "default":
            return [_other_default(m) if self._whole(m, hour) else m for m in messages]
        out, seen, marks = list[Message](), 0, dict(self._marks(hour))
        for m in messages:
            if m.event.kind == "resolved":
                marks[m.partition] = m.event
            elif m.event.kind == "row" and m.event.table in KEYED:
                seen += 1
                if seen % self.wrong.every == 0:
                    m = _other_value(m) if self.wrong.how == "other" else replace(m, event=marks[m.partition])
            out.append(m)
        return out

    def is_wrong(self, hour: int) -> bool:
        """Whether the first decoder makes something else of it."""
        return self.first(hour) != self.history.hours[hour]

    def _marks(self, hour: int) -> Iterator[tuple[int, Event]]:
        """The newest resolved event of every partition before the hour: one more like it is no step back."""
        for earlier in self.history.hours[:hour]:
            yield from ((m.partition, m.event) for m in earlier if m.event.kind == "resolved")

    def _whole(self, m: Message, hour: int) -> bool:
        """Whether the hour holds a new column's statement on all partitions, and no other hour does: its copies must be the same."""
        here = [n for n, messages in enumerate(self.history.hours) if m.event in (x.event for x in messages)]
        return m.event.kind == "ddl" and "DEFAULT" in str(m.event.ddl) and here == [hour]


def _other_value(m: Message) -> Message:
    after = m.event.after
    return m if after is None else replace(m, event=replace(m.event, after=[after[0], WRONG.encode(), *after[2:]]))


def _other_default(m: Message) -> Message:
    return replace(m, event=replace(m.event, ddl=str(m.event.ddl).replace("DEFAULT 'q'", f"DEFAULT '{WRONG}'")))


def _told(history: History, number: int) -> Story:
    """A story of a history. Drawn by Random, which is more even than Hypothesis is on purpose."""
    draw = random.Random(number)
    operations = tuple(
        Operation(what=draw.choice(["rollback", "redo", "rollback", "redo", "none"]), share=draw.random(), forward=draw.random() < 0.5)
        for _ in history.hours
    )
    every, later, late = draw.choice([1, 1, 2]), draw.randint(0, 2), draw.random() < 0.5
    moves = history.upstream.moves.values()
    rows = [] if any("KEY" in e.query for e in moves) else ["other"] if moves else ["other", "lost"]  # a new key finds rows that are wrong
    for how in [*(["default"] if draw.random() < 0.3 else []), *([draw.choice(rows)] if rows else [])]:
        wrongs = [Wrong(hour=n, how=how, every=every, later=later, late=late) for n in range(len(history.hours))]
        told = [story for story in (Story(history, operations, w) for w in wrongs) if story.is_wrong(story.wrong.hour)]
        if told and draw.random() < 0.8:
            return draw.choice(told)
    return Story(history, operations, None)


STORIES = st.builds(_told, HISTORIES, st.integers(0, (1 << 32) - 1))
