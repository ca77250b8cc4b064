"""The event store: items that are read and not yet durable, within a budget (docs/reference/event-store.md 1, docs/architecture.md 7).

put → |ack … get … put| → get → ack: three sequences over one ring. Only ack frees room, so that a rollback can hand out everything taken
since the last ack again. tests/land/store_cases.json gives the reason for each difference from Canal's store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Condition, Lock
from typing import Generic

from tidelake.errors import EventStoreError
from tidelake.land.store.item import AckHandle, ItemBatch, ItemPosition, ItemState, ItemT, Metrics, Passed


class EventStore(Generic[ItemT]):
    """A bounded buffer between readers and uploaders, for any number of threads on both sides.

    slots: maximum number of items, a power of two. budget: bytes; a put waits while the unconfirmed items weigh at least that much, so the
    store holds at most the budget and one put more. With a budget, batch sizes are bytes (memory mode); without one, items.
    isolate_ddl: a DDL is a batch of its own.

    A stopped store is empty: gets without waiting and positions return nothing, all other calls are refused.
    """

    def __init__(self, *, slots: int = 16_384, budget: int | None = None, isolate_ddl: bool = False) -> None:
        if slots < 1 or slots & (slots - 1):
            raise ValueError(f"slots must be a power of two, not {slots}")
        if budget is not None and budget < 1:
            raise ValueError(f"the budget must be at least 1 byte, not {budget}")
        self._slots, self._budget, self._isolate_ddl = slots, budget, isolate_ddl
        lock = Lock()
        self._room, self._data = Condition(lock), Condition(lock)
        self._blocked = list[int]()  # number of items of each waiting put
        self._waiting_gets = 0
        self._running = False
        self._run = self._generation = 0
        self._failure: BaseException | None = None
        self._metrics = Metrics(put=Passed(), get=Passed(), ack=Passed())
        self._clear()

    def start(self) -> None:
        """Start the store, empty. Raises EventStoreError (RUNNING)."""
        with self._room:
            if self._running:
                raise EventStoreError("the store is running already", code="RUNNING")
            self._running = True

    def stop(self) -> None:
        """Drop everything and stop. Waiting calls raise EventStoreError (NOT_RUNNING), as does stop on a stopped store."""
        with self._room:
            self._check_running()
            self._running = False
            self._run += 1
            self._clear()
            self._wake_all()

    def close(self) -> None:
        """End the input: further puts are refused, gets take the rest without waiting for more. A second close changes nothing."""
        with self._room:
            self._check_running()
            self._closed = True
            self._wake_all()

    def fail(self, cause: BaseException) -> None:
        """End all waiting and future puts and gets with EventStoreError (FAILED) from this cause. The first cause stays.

        Acks are still accepted, so that durable items are recorded.
        """
        with self._room:
            self._check_running()
            if self._failure is None:
                self._failure = cause
            self._wake_all()

    def put(self, items: Sequence[ItemT], timeout: float | None = None) -> bool:
        """Store all items or none and return whether they are stored. Wait for room, at most `timeout` seconds if given.

        Raises EventStoreError: NOT_RUNNING, CLOSED, FAILED; TOO_MANY where a put without a timeout could never end.
        """
        if not items:
            return True
        added = _weighed(items)
        with self._room:
            self._check_open()
            if timeout is None and len(items) > self._slots:
                raise EventStoreError(f"{len(items)} items never fit into {self._slots} slots", code="TOO_MANY")
            if not self._has_room(len(items)) and not self._wait_for_room(len(items), timeout):
                return False
            for sequence, item in enumerate(items, self._put + 1):
                self._ring[sequence % self._slots] = item
            self._put += len(items)
            self._put_bytes += self._counted(added)
            self._metrics = replace(self._metrics, put=_passed(self._metrics.put, added))
            self._data.notify_all()
            return True

    def try_put(self, items: Sequence[ItemT]) -> bool:
        """Store all items or none without waiting and return whether they are stored. Raises what `put` raises."""
        return self.put(items, timeout=0)

    def get(self, size: int, timeout: float | None = None) -> ItemBatch[ItemT]:
        """Take the next `size` items; in memory mode, take items until they exceed `size` bytes.

        Waits until a whole batch is available. A smaller batch comes at the end of the input, next to an isolated DDL, after the timeout
        (seconds), and when a put cannot continue before items are taken and confirmed. An empty batch comes only at the end of the input or
        after the timeout; `ended` tells them apart, unless another thread rolls back unconfirmed items.

        Raises ValueError for a size that takes nothing; EventStoreError: NOT_RUNNING, FAILED.
        """
        self._check_size(size)
        with self._data:
            self._check_running()
            self._check_not_failed()
            if not self._is_ready(size) and (timeout is None or timeout > 0):
                self._wait_for_data(size, timeout)
            return self._take(size)

    def try_get(self, size: int) -> ItemBatch[ItemT]:
        """Take the available items without waiting; empty if the store is not running. Raises ValueError, EventStoreError (FAILED)."""
        self._check_size(size)
        with self._data:
            self._check_not_failed()
            return self._take(size)

    def ack(self, handle: AckHandle) -> None:
        """Confirm a batch and all batches before it, which frees their room.

        Raises EventStoreError, with nothing changed: STALE_ACK for a batch taken before a rollback or stop; NO_MATCH for a batch that is
        confirmed already, is empty, or belongs to another store.
        """
        with self._room:
            if handle.owner is not self._room:
                raise EventStoreError("the batch is another store's", code="NO_MATCH")
            if handle.generation != self._generation:
                raise EventStoreError(
                    f"the batch up to sequence {handle.sequence} was taken before a rollback",
                    code="STALE_ACK",
                    remedy="its items are handed out again: take them and confirm that batch",
                )
            if handle.sequence <= self._ack:
                raise EventStoreError(f"sequence {handle.sequence} is confirmed already, up to {self._ack}", code="NO_MATCH")
            self._release(handle.sequence)

    def ack_position(self, position: ItemPosition, sequence: int | None = None) -> None:
        """Confirm everything up to the first taken item at this position; with a sequence, up to that item if it is taken (1.8).

        For callers that know a place in the source and no batch. Part of a batch can be confirmed. Positions need not be unique.
        Raises EventStoreError (NO_MATCH), with nothing changed.
        """
        with self._room:
            taken = range(self._ack + 1, self._get + 1)
            wanted = taken if sequence is None else [sequence] if sequence in taken else []
            found = next((s for s in wanted if position.matches(self._item(s).position)), None)
            if found is None:
                where = f"sequences {taken.start} to {self._get}" if taken else "nothing"
                raise EventStoreError(f"{position} cannot be confirmed: taken and not confirmed is {where}", code="NO_MATCH")
            self._release(found)

    def rollback(self) -> None:
        """Hand out again everything that was taken and not confirmed. Earlier handles become invalid."""
        with self._data:
            self._generation += 1
            self._get, self._get_bytes = self._ack, self._ack_bytes
            self._data.notify_all()

    def first_position(self) -> ItemPosition | None:
        """Return where to resume after a crash: the last confirmed item, else the oldest (1.10). None if nothing was stored."""
        with self._data:
            if self._acked is not None or self._put < 0:
                return self._acked
            return replace(self._item(0).position, included=False)

    def latest_position(self) -> ItemPosition | None:
        """Return the newest item; `included` is set if it is not confirmed yet (1.10). None if nothing was stored."""
        with self._data:
            return self._acked if self._put == self._ack else replace(self._item(self._put).position, included=True)

    def state(self) -> ItemState:
        """Return the sequences and the bytes up to them, at one instant."""
        with self._data:
            return ItemState(
                put=self._put,
                get=self._get,
                ack=self._ack,
                put_bytes=self._put_bytes,
                get_bytes=self._get_bytes,
                ack_bytes=self._ack_bytes,
                waiting_puts=len(self._blocked),
                waiting_gets=self._waiting_gets,
            )

    def metrics(self) -> Metrics:
        """Return the totals of put, get and ack so far."""
        with self._data:
            return self._metrics

    def held(self) -> list[ItemT | None]:
        """Return the ring, slot by slot."""
        with self._data:
            return list(self._ring)

    def _clear(self) -> None:
        self._generation += 1
        self._ring: list[ItemT | None] = [None] * self._slots
        self._put = self._get = self._ack = -1
        self._put_bytes = self._get_bytes = self._ack_bytes = 0
        self._acked: ItemPosition | None = None
        self._closed = False
        self._failure = None

    def _wake_all(self) -> None:
        self._room.notify_all()
        self._data.notify_all()

    def _check_size(self, size: int) -> None:
        least = 1 if self._budget is None else 0
        if size < least:
            raise ValueError(f"the size of a batch must be at least {least}, not {size}")

    def _check_running(self, run: int | None = None) -> None:
        if not self._running or (run is not None and run != self._run):
            raise EventStoreError("the store is not running", code="NOT_RUNNING")

    def _check_not_failed(self) -> None:
        if self._failure is not None:
            raise EventStoreError(f"the other side failed: {self._failure}", code="FAILED") from self._failure

    def _check_open(self, run: int | None = None) -> None:
        self._check_running(run)
        self._check_not_failed()
        if self._closed:
            raise EventStoreError("the input was ended by close", code="CLOSED")

    def _has_room(self, count: int) -> bool:
        """Whether all items have slots and some budget is left. New items are not weighed, so that a message of any size passes (1.4)."""
        within = self._budget is None or self._put_bytes - self._ack_bytes < self._budget
        return self._put + count - self._ack <= self._slots and within

    def _wait_for_room(self, count: int, timeout: float | None) -> bool:
        if timeout is not None and timeout <= 0:
            return False
        run = self._run

        def ready() -> bool:
            self._check_open(run)
            return self._has_room(count)

        self._metrics = replace(self._metrics, put=_waited(self._metrics.put))
        self._blocked.append(count)
        self._data.notify_all()  # a get that waits for more than can come takes the available items
        try:
            return self._room.wait_for(ready, timeout)
        finally:
            self._blocked.remove(count)

    def _is_ready(self, size: int) -> bool:
        if self._closed:
            return True
        if self._get == self._put:
            return False
        there = self._put - self._get if self._budget is None else self._put_bytes - self._get_bytes
        return there >= size or not self._has_room(1) or not all(map(self._has_room, self._blocked))

    def _wait_for_data(self, size: int, timeout: float | None) -> None:
        run = self._run

        def ready() -> bool:
            self._check_running(run)
            self._check_not_failed()
            return self._is_ready(size)

        self._metrics = replace(self._metrics, get=_waited(self._metrics.get))
        self._waiting_gets += 1
        try:
            self._data.wait_for(ready, timeout)
        finally:
            self._waiting_gets -= 1

    def _take(self, size: int) -> ItemBatch[ItemT]:
        items = list[ItemT]()
        taken = 0
        for sequence in range(self._get + 1, self._put + 1):
            if taken >= size if self._budget is None else taken > size:
                break
            item = self._item(sequence)
            if items and item.is_ddl and self._isolate_ddl:
                break
            items.append(item)
            taken += 1 if self._budget is None else item.nbytes
            if item.is_ddl and self._isolate_ddl:
                break
        if items:
            added = _weighed(items)
            self._get += len(items)
            self._get_bytes += self._counted(added)
            self._metrics = replace(self._metrics, get=_passed(self._metrics.get, added))
        handle = AckHandle(self._room, self._generation, self._get if items else -1)
        return ItemBatch(items=tuple(items), handle=handle, ended=self._closed and self._get == self._put)

    def _release(self, last: int) -> None:
        """Free the slots up to this sequence; keep the position of the last item for first_position."""
        items = [self._item(sequence) for sequence in range(self._ack + 1, last + 1)]
        for sequence in range(self._ack + 1, last + 1):
            self._ring[sequence % self._slots] = None
        added = _weighed(items)
        self._acked = replace(items[-1].position, included=False)
        self._ack = last
        self._ack_bytes += self._counted(added)
        self._metrics = replace(self._metrics, ack=_passed(self._metrics.ack, added))
        self._room.notify_all()

    def _item(self, sequence: int) -> ItemT:
        item = self._ring[sequence % self._slots]
        assert item is not None, sequence
        return item

    def _counted(self, added: Passed) -> int:
        return 0 if self._budget is None else added.nbytes


def _weighed(items: Sequence[ItemT]) -> Passed:
    """Return the sums over the items, and the first of their times that is set."""
    return Passed(
        items=len(items),
        events=sum(item.events for item in items),
        nbytes=sum(item.nbytes for item in items),
        rows=sum(item.rows for item in items),
        timestamp_ms=next((item.timestamp_ms for item in items if item.timestamp_ms > 0), None),
    )


def _passed(before: Passed, added: Passed) -> Passed:
    return Passed(
        waits=before.waits,
        items=before.items + added.items,
        events=before.events + added.events,
        nbytes=before.nbytes + added.nbytes,
        rows=before.rows + added.rows,
        timestamp_ms=before.timestamp_ms if added.timestamp_ms is None else added.timestamp_ms,
    )


def _waited(before: Passed) -> Passed:
    return replace(before, waits=before.waits + 1)
