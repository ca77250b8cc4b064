"""The items of the event store, and the batches that it hands out (docs/reference/event-store.md 1, 4.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPosition:
    """A place in the source: a binlog file and its offset, or a topic's partition and its offset.

    timestamp_ms: the source's time. included: whether the item at the position is still to be confirmed; not compared.
    """

    timestamp_ms: int
    journal: str | None = None
    offset: int | None = None
    included: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if (self.journal is None) != (self.offset is None):
            raise ValueError(f"a position has a journal and an offset or neither, not {self.journal!r} and {self.offset!r}")

    def matches(self, other: ItemPosition) -> bool:
        """Return whether both are the same place; without journal and offset, whether the time is the same (1.8)."""
        return self == other or (self.journal is None and self.timestamp_ms == other.timestamp_ms)


class Item(Protocol):
    """An entry of the store: an event, or a slice of many. Its properties must not change while it is held."""

    @property
    def nbytes(self) -> int:
        """Its weight in the byte budget."""

    @property
    def events(self) -> int:
        """Number of messages in it."""

    @property
    def rows(self) -> int:
        """Number of row changes in it."""

    @property
    def timestamp_ms(self) -> int:
        """The source's time of its first message; 0 without one."""

    @property
    def is_boundary(self) -> bool:
        """Whether a reader may resume right after it: it ends a transaction (1.7)."""

    @property
    def is_ddl(self) -> bool:
        """Whether it is a DDL statement: always a boundary, and a batch of its own if the store isolates DDL."""

    @property
    def position(self) -> ItemPosition:
        """Its place in the source."""


ItemT = TypeVar("ItemT", bound=Item)


@dataclass(frozen=True, slots=True)
class AckHandle:
    """Opaque handle that confirms one batch, once. A rollback voids it, because the items are handed out again."""

    owner: object = field(repr=False)
    generation: int
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemBatch(Generic[ItemT]):
    """Items in the order in which they were put; empty if a get found none.

    first, last: their positions. resume: the last boundary or DDL among them, after which a reader may resume; None without one.
    last_sequence: of the last item, -1 for an empty batch. ended: nothing is left and nothing will come.
    """

    items: tuple[ItemT, ...]
    handle: AckHandle
    ended: bool

    def __bool__(self) -> bool:
        return bool(self.items)

    @property
    def first(self) -> ItemPosition | None:
        return self.items[0].position if self.items else None

    @property
    def last(self) -> ItemPosition | None:
        return self.items[-1].position if self.items else None

    @property
    def resume(self) -> ItemPosition | None:
        return next((item.position for item in reversed(self.items) if item.is_boundary or item.is_ddl), None)

    @property
    def last_sequence(self) -> int:
        return self.handle.sequence

    @property
    def nbytes(self) -> int:
        """The weight of its items, in bytes."""
        return sum(item.nbytes for item in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemState:
    """State of the store. put, get, ack: the last sequence stored, taken, confirmed, from -1. The bytes are totals up to these, counted in
    memory mode only. waiting_puts, waiting_gets: number of waiting calls.
    """

    put: int
    get: int
    ack: int
    put_bytes: int
    get_bytes: int
    ack_bytes: int
    waiting_puts: int
    waiting_gets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """Totals of one operation since the store was created. A rollback or stop does not reduce them.

    waits: calls that had to wait. timestamp_ms: the source's time of the oldest item of the newest call, None before the first.
    """

    waits: int = 0
    items: int = 0
    events: int = 0
    nbytes: int = 0
    rows: int = 0
    timestamp_ms: int | None = None

    def delay_ms(self, now_ms: int) -> int | None:
        """Return how many milliseconds the operation is behind the source, None before the first call."""
        return None if self.timestamp_ms is None else now_ms - self.timestamp_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Totals of what was put, taken and confirmed."""

    put: Passed
    get: Passed
    ack: Passed
