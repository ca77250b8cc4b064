"""Who has heard of which cause: notices/<feed>.json in the lake, and how it follows from what is found.

A notice is stored before it is sent and removed after it was delivered, so one that cannot be delivered is not lost. A cause is told once
to each notifier, however often it is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from tidelake.config.lake_paths import notices_key
from tidelake.config.notify import Event, Notify
from tidelake.io.documents import Document, find_document
from tidelake.io.storage import Store
from tidelake.notices.cause import Cause, Notice, Standing


class Heard(BaseModel):
    """What one notifier knows. causes: those that it was told of and that last; waiting: notices that are not delivered, oldest first."""

    model_config = ConfigDict(extra="forbid")

    causes: list[Cause] = []
    waiting: list[Notice] = []


class Memory(Document, BaseModel):
    """Memory of a feed. seen: number of the newest cut that was looked at, 0 for none; open: causes in that cut; notices: number of notices
    ever written; notifiers: by their keys.
    """

    model_config = ConfigDict(extra="forbid")

    seen: int = 0
    open: list[Cause] = []
    notices: int = 0
    notifiers: dict[str, Heard] = {}


class LakeState(BaseModel):
    """What a look at the lake finds. passed: causes in cuts between the newest and the one that was seen before; open: causes that last,
    without lag; lag_minutes: age of the published resolved ts, None if nothing is published.
    """

    standing: Standing
    passed: list[Cause] = []
    open: list[Cause] = []
    lag_minutes: float | None = None


def read_memory(store: Store, feed: str) -> Memory:
    """Return the memory of a feed; an empty one before the first look. Raises DamageError."""
    return find_document(store, notices_key(feed), Memory) or Memory()


def keep_memory(store: Store, feed: str, memory: Memory) -> None:
    """Write the memory of a feed."""
    store.write(notices_key(feed), memory.model_dump_json(indent=1).encode())


def after(memory: Memory, found: LakeState, notifiers: Sequence[Notify], lagging: Cause | None) -> Memory:
    """Return the memory after a look, with a notice for each cause that began or ended.

    A notifier that is new, or whose class or arguments changed, hears of the causes that last, and not of earlier ones.

    Args:
        memory: The memory before.
        found: What is found.
        notifiers: The notifiers of the feed.
        lagging: The cause for those whose limit is exceeded; None without a cut.
    """
    new = Memory(seen=found.standing.cut or 0, open=[c for c in found.open if c.event != "blocked"], notices=memory.notices)
    for notifier in notifiers:
        known = memory.notifiers.get(notifier.key)
        heard = known.model_copy(deep=True) if known else Heard()
        lasts = [c for c in [*found.open, *_lag(notifier, found, lagging)] if c.event in notifier.on]
        told = [c for c in heard.causes if c.event in notifier.on]
        begun = _unheard([*(found.passed if known else []), *lasts], told, notifier)
        gone = {c.ends for c in (*told, *begun)} - {c.ends for c in lasts}
        last = gone & {c.ends for c in begun}  # an end is told after all that it ends
        written = [*_ended(told, gone - last), *((c.event, c) for c in begun), *_ended([*told, *begun], last)]
        for event, cause in written:
            if event in notifier.on:
                new.notices += 1
                heard.waiting.append(Notice(number=new.notices, event=event, cause=cause, standing=found.standing))
        heard.causes = [c for c in (*told, *begun) if c.ends not in gone]
        new.notifiers[notifier.key] = heard
    return new


def delivered(memory: Memory, numbers: Iterable[int]) -> Memory:
    """Return the memory without the notices with these numbers."""
    gone, left = set(numbers), memory.model_copy(deep=True)
    for heard in left.notifiers.values():
        heard.waiting = [n for n in heard.waiting if n.number not in gone]
    return left


def _lag(notifier: Notify, found: LakeState, lagging: Cause | None) -> list[Cause]:
    limit, age = notifier.lag_minutes, found.lag_minutes
    return [lagging] if lagging and limit is not None and age is not None and age > limit else []


def _unheard(causes: Iterable[Cause], told: Sequence[Cause], notifier: Notify) -> list[Cause]:
    """Return the causes of which the notifier has not heard, each once."""
    ids, begun = {c.id for c in told}, list[Cause]()
    for cause in causes:
        if cause.event in notifier.on and cause.id not in ids:
            ids.add(cause.id)
            begun.append(cause)
    return begun


def _ended(causes: Iterable[Cause], gone: set[str]) -> list[tuple[Event, Cause]]:
    """Return one recovery for each end, with the newest cause that it ends."""
    newest = {c.ends: c for c in causes if c.ends in gone}
    return [("recovered", c) for c in newest.values()]
