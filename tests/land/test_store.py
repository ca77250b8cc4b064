"""The event store against Canal's scenarios and our own, and what Canal's has not: handles, the end of the input, failures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.data_files import data_bytes
from tests.land.store_cases import Event, own_cases, play
from tidelake.errors import EventStoreError
from tidelake.land.store.event_store import EventStore
from tidelake.land.store.item import ItemPosition

CASES = "vectors/canal_store_cases.json.xz"


def canal_cases(level: str) -> list[dict[str, Any]]:
    return [s for s in json.loads(data_bytes(CASES))["scenarios"] if s["level"] == level]


@pytest.mark.parametrize("case", canal_cases("contract"), ids=lambda case: case["id"])
def test_every_contract_of_canals_store_holds(case: dict[str, Any]) -> None:
    play(case)


@pytest.mark.parametrize("case", own_cases(), ids=lambda case: case["id"])
def test_our_own_scenarios_hold(case: dict[str, Any]) -> None:
    play(case)


def test_the_whole_suite_of_contracts_was_played() -> None:
    assert (len(canal_cases("contract")), len(canal_cases("quirk"))) == (86, 19)


def test_every_quirk_of_canals_store_has_our_answer_and_its_reason() -> None:
    answers = {case["instead_of"]: case["why"] for case in own_cases() if "instead_of" in case}
    assert set(answers) == {case["id"] for case in canal_cases("quirk")}
    assert all(len(why) > 20 for why in answers.values())


def running_store() -> EventStore[Event]:
    store: EventStore[Event] = EventStore(slots=4, budget=100)
    store.start()
    store.put([Event(id="a", nbytes=30, rows=2, position=ItemPosition(timestamp_ms=5_000), events=10)])
    return store


def test_a_handle_of_another_store_confirms_nothing() -> None:
    store, other = running_store(), running_store()
    batch, _ = store.get(1), other.get(1)
    with pytest.raises(EventStoreError, match="NO_MATCH: the batch is another store's"):
        other.ack(batch.handle)
    assert (store.state().ack, other.state().ack) == (-1, -1)


def test_a_stale_handle_says_what_to_do() -> None:
    store = running_store()
    batch = store.get(1)
    store.rollback()
    with pytest.raises(EventStoreError) as caught:
        store.ack(batch.handle)
    assert str(caught.value) == (
        "STALE_ACK: the batch up to sequence 0 was taken before a rollback; "
        "its items are handed out again: take them and confirm that batch"
    )


def test_a_failure_names_its_cause_and_the_first_one_stays() -> None:
    store, cause = running_store(), OSError("the archive is away")
    store.fail(cause)
    store.fail(OSError("later"))
    with pytest.raises(EventStoreError, match="FAILED: the other side failed: the archive is away") as caught:
        store.get(1)
    assert caught.value.__cause__ is cause


def test_metrics_count_events_bytes_and_rows_and_how_far_behind_the_source_they_are() -> None:
    store = running_store()
    batch = store.get(1)
    metrics = store.metrics()
    assert (metrics.put.items, metrics.put.events, metrics.put.nbytes, metrics.put.rows, metrics.put.waits) == (1, 10, 30, 2, 0)
    assert metrics.get == metrics.put
    assert (metrics.get.delay_ms(7_500), metrics.ack.delay_ms(7_500)) == (2_500, None)
    store.ack(batch.handle)
    assert store.metrics().ack == metrics.put


def test_nothing_is_stored_of_a_list_with_something_that_is_no_item() -> None:
    store = running_store()
    broken: Any = [Event(id="b", nbytes=1, rows=0, position=ItemPosition(timestamp_ms=1)), None]
    with pytest.raises(AttributeError):
        store.put(broken)
    assert (store.state().put, [item and item.id for item in store.held()]) == (0, ["a", None, None, None])


@pytest.mark.parametrize(("slots", "budget"), [(0, None), (-4, None), (12, None), (4, 0)])
def test_sizes_that_cannot_work_are_refused(slots: int, budget: int | None) -> None:
    with pytest.raises(ValueError, match="must be"):
        EventStore(slots=slots, budget=budget)
