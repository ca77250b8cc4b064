"""The event store against a model that keeps every item for ever, and with many threads on both sides."""

from __future__ import annotations

from threading import Barrier, BrokenBarrierError, Thread
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.land.store_cases import Event
from tidelake.errors import EventStoreError
from tidelake.land.store.event_store import EventStore
from tidelake.land.store.item import ItemBatch, ItemPosition

PATIENCE = 120  # seconds for threads that end in a moment


def event(number: int, nbytes: int = 1, kind: str = "ROWDATA") -> Event:
    return Event(id=str(number), type=kind, nbytes=nbytes, rows=number % 3, position=ItemPosition(timestamp_ms=number // 2))


class StoreMachine(RuleBasedStateMachine):
    """all: every item ever put. get, ack: how many of them are taken and confirmed."""

    @initialize(slots=st.sampled_from([1, 2, 4, 8]), budget=st.none() | st.integers(1, 40), isolate=st.booleans())
    def make(self, slots: int, budget: int | None, isolate: bool) -> None:
        self.store: EventStore[Event] = EventStore(slots=slots, budget=budget, isolate_ddl=isolate)
        self.store.start()
        self.slots, self.budget, self.isolate = slots, budget, isolate
        self.all = list[Event]()
        self.get = self.ack = 0
        self.fresh = list[tuple[int, ItemBatch[Event]]]()
        self.stale = list[ItemBatch[Event]]()
        self.closed = False

    def weight(self, begin: int, end: int) -> int:
        return sum(item.nbytes for item in self.all[begin:end])

    @rule(new=st.lists(st.tuples(st.integers(0, 20), st.sampled_from(["ROWDATA", "ALTER", "TRANSACTIONEND"])), max_size=5))
    def put(self, new: list[tuple[int, str]]) -> None:
        items = [event(len(self.all) + i, nbytes, kind) for i, (nbytes, kind) in enumerate(new)]
        if self.closed and items:
            with pytest.raises(EventStoreError, match="CLOSED"):
                self.store.try_put(items)
            return
        held = len(self.all) - self.ack
        light = self.budget is None or self.weight(self.ack, len(self.all)) < self.budget
        fits = not items or (held + len(items) <= self.slots and light)
        assert self.store.try_put(items) is fits
        self.all += items if fits else []

    @rule(size=st.integers(1, 30))
    def take(self, size: int) -> None:
        batch = self.store.try_get(size)
        assert list(batch.items) == self.all[self.get : self.get + len(batch.items)]
        rest = self.all[self.get + len(batch.items) :]
        cut = bool(rest) and self.isolate and (rest[0].is_ddl or any(item.is_ddl for item in batch.items))
        if self.isolate:
            assert len(batch.items) <= 1 or not any(item.is_ddl for item in batch.items)
        if self.budget is None:
            assert len(batch.items) == size or not rest or cut
            assert len(batch.items) <= size
        else:
            assert batch.nbytes > size or not rest or cut
            assert sum(item.nbytes for item in batch.items[:-1]) <= size
        boundaries = [item.position for item in batch.items if item.is_ddl or item.is_boundary]
        assert batch.resume == (boundaries[-1] if boundaries else None)
        assert batch.ended is (self.closed and not rest)
        self.get += len(batch.items)
        if batch:
            self.fresh.append((self.get, batch))

    @precondition(lambda self: self.fresh)
    @rule(data=st.data())
    def confirm(self, data: Any) -> None:
        end, batch = data.draw(st.sampled_from(self.fresh))
        if end > self.ack:
            self.store.ack(batch.handle)
            self.ack = end
        with pytest.raises(EventStoreError, match="NO_MATCH"):
            self.store.ack(batch.handle)

    @precondition(lambda self: self.stale)
    @rule(data=st.data())
    def confirm_from_before_a_rollback(self, data: Any) -> None:
        with pytest.raises(EventStoreError, match="STALE_ACK"):
            self.store.ack(data.draw(st.sampled_from(self.stale)).handle)

    @rule(number=st.integers(0, 60), exact=st.booleans())
    def confirm_a_position(self, number: int, exact: bool) -> None:
        """Two neighbours have equal positions."""
        wanted = [i for i in range(self.ack, self.get) if i // 2 == number // 2 and (not exact or i == number)]
        position = ItemPosition(timestamp_ms=number // 2)
        if wanted:
            self.store.ack_position(position, number if exact else None)
            self.ack = wanted[0] + 1
        else:
            with pytest.raises(EventStoreError, match="NO_MATCH"):
                self.store.ack_position(position, number if exact else None)

    @rule()
    def rollback(self) -> None:
        self.store.rollback()
        self.get = self.ack
        self.stale += [batch for _, batch in self.fresh]
        self.fresh = []

    @precondition(lambda self: len(self.all) > 20)
    @rule()
    def close(self) -> None:
        self.store.close()
        self.closed = True

    @invariant()
    def the_sequences_are_the_models(self) -> None:
        state = self.store.state()
        assert (state.put + 1, state.get + 1, state.ack + 1) == (len(self.all), self.get, self.ack)
        counted = self.budget is not None
        assert (state.put_bytes, state.get_bytes, state.ack_bytes) == tuple(
            self.weight(0, end) if counted else 0 for end in (len(self.all), self.get, self.ack)
        )

    @invariant()
    def only_what_is_not_confirmed_is_held(self) -> None:
        held = [item for item in self.store.held() if item is not None]
        assert sorted(held, key=lambda item: int(item.id)) == self.all[self.ack :]

    @invariant()
    def positions_say_where_to_start_again(self) -> None:
        first = self.all[max(self.ack - 1, 0)].position if self.all else None
        latest = self.all[-1].position if self.all else None
        assert (self.store.first_position(), self.store.latest_position()) == (first, latest)

    @invariant()
    def the_metrics_add_up(self) -> None:
        metrics = self.store.metrics()
        for passed, count in ((metrics.put, len(self.all)), (metrics.ack, self.ack)):
            wanted = self.all[:count]
            assert (passed.items, passed.events) == (count, count)
            assert (passed.nbytes, passed.rows) == (self.weight(0, count), sum(item.rows for item in wanted))
        assert metrics.get.items >= self.get


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(deadline=None, max_examples=100, stateful_step_count=40)


def run(store: EventStore[Event], threads: list[Thread], then: list[Thread]) -> None:
    """Run all threads; close the store when the first ones are through, and wait for the others."""
    for thread in (*threads, *then):
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    alive = [thread.name for thread in threads if thread.is_alive()]
    if not alive:
        store.close()
        for thread in then:
            thread.join(PATIENCE)
        alive = [thread.name for thread in then if thread.is_alive()]
    state = store.state()
    store.fail(TimeoutError())  # lets those go that hang
    assert alive == [], state


@pytest.mark.parametrize("budget", [None, 7])
@pytest.mark.parametrize("slots", [4, 16])
@pytest.mark.parametrize("rolls_back", [False, True])
def test_no_wake_up_is_lost_between_four_producers_and_four_consumers(slots: int, budget: int | None, rolls_back: bool) -> None:
    store: EventStore[Event] = EventStore(slots=slots, budget=budget)
    store.start()
    each = 600
    seen: list[list[int]] = [[] for _ in range(4)]
    errors = list[Exception]()

    def produce(worker: int) -> None:
        number = 0
        while number < each:
            count = min(1 + (number * (worker + 1)) % 3, each - number)
            store.put([event(worker * each + number + i) for i in range(count)])
            number += count

    def consume(worker: int) -> None:
        turn = 0
        while not (batch := store.get(1 + worker)).ended or batch:
            turn += 1
            rolls = rolls_back and turn % (11 + worker) == 0
            if rolls:
                store.rollback()
            if not rolls or batch.handle.sequence <= store.state().ack:  # or another confirmed it with what comes after it
                seen[worker] += [int(item.id) for item in batch.items]
            if rolls:
                continue
            try:
                store.ack(batch.handle)
            except EventStoreError as e:
                if e.code not in ("STALE_ACK", "NO_MATCH"):  # another consumer rolled back, or confirmed more
                    errors.append(e)

    producers = [Thread(target=produce, args=(i,), name=f"producer {i}", daemon=True) for i in range(4)]
    consumers = [Thread(target=consume, args=(i,), name=f"consumer {i}", daemon=True) for i in range(4)]
    run(store, producers, consumers)
    assert errors == []
    state = store.state()
    assert (state.put, state.get, state.ack) == (4 * each - 1,) * 3
    numbers = sorted(number for one in seen for number in one)
    assert (set(numbers) if rolls_back else numbers) == (set if rolls_back else list)(range(4 * each))


def test_each_producers_items_keep_their_order() -> None:
    store: EventStore[Event] = EventStore(slots=8)
    store.start()
    taken = list[int]()

    def produce(worker: int) -> None:
        for number in range(500):
            store.put([event(worker * 1000 + number)])

    def consume() -> None:
        while batch := store.get(3):
            taken.extend(int(item.id) for item in batch.items)
            store.ack(batch.handle)

    producers = [Thread(target=produce, args=(i,), name=f"producer {i}", daemon=True) for i in range(4)]
    run(store, producers, [Thread(target=consume, name="consumer", daemon=True)])
    for worker in range(4):
        assert [n for n in taken if n // 1000 == worker] == [worker * 1000 + i for i in range(500)]


ROUNDS = 200


def test_one_put_wakes_all_four_gets_that_it_feeds_every_time() -> None:
    """No get takes a second item before each of the four has one: who is not woken is not helped by the others."""
    store: EventStore[Event] = EventStore(slots=4)
    store.start()
    barrier = Barrier(4, timeout=PATIENCE)
    taken = list[ItemBatch[Event]]()

    def consume() -> None:
        for _ in range(ROUNDS):
            taken.append(store.get(1))
            if at_barrier(barrier) == 0:
                store.ack(max(taken[-4:], key=lambda batch: batch.last_sequence).handle)

    def produce() -> None:
        for number in range(ROUNDS):
            store.put([event(number * 4 + i) for i in range(4)])

    consumers = [Thread(target=consume, name=f"consumer {i}", daemon=True) for i in range(4)]
    run(store, [Thread(target=produce, name="producer", daemon=True), *consumers], [])
    assert sorted(batch.last_sequence for batch in taken) == list(range(4 * ROUNDS))


def test_one_ack_lets_all_four_puts_go_on_every_time() -> None:
    store: EventStore[Event] = EventStore(slots=4)
    store.start()
    barrier = Barrier(4, timeout=PATIENCE)
    taken = list[int]()

    def produce(worker: int) -> None:
        for number in range(ROUNDS):
            store.put([event(number * 4 + worker)])
            at_barrier(barrier)

    def consume() -> None:
        while len(taken) < 4 * ROUNDS:
            batch = store.get(4)
            taken.extend(int(item.id) for item in batch.items)
            store.ack(batch.handle)

    producers = [Thread(target=produce, args=(i,), name=f"producer {i}", daemon=True) for i in range(4)]
    run(store, [*producers, Thread(target=consume, name="consumer", daemon=True)], [])
    assert sorted(taken) == list(range(4 * ROUNDS))


def at_barrier(barrier: Barrier) -> int:
    """The number of this thread at the barrier; where another one never came, the test fails by the threads that are left."""
    try:
        return barrier.wait()
    except BrokenBarrierError:
        return -1
