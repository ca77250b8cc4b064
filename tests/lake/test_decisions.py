"""Decisions about rejected messages, as they are read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelake.errors import Coordinates, DamageError
from tidelake.io.storage import open_store
from tidelake.lake.decisions import Rejected, accept, acceptances, by_decision, decision_key

FEED = "shop"
MESSAGES = [
    Rejected(hour="2026-01-05T10", at=Coordinates("t", 0, offset), timestamp_ms=None, code="BAD_JSON", error="cut short")
    for offset in range(4)
]


def test_equal_reasons_of_a_person_are_told_once_in_the_order_of_the_messages(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    for message, who, reason in zip(MESSAGES, ("ada", "ada", "ben"), ("a test", "a test", "a test"), strict=False):
        assert accept(store, FEED, message, who, reason)
    assert not accept(store, FEED, MESSAGES[0], "cleo", "another")
    left, accepted = by_decision(store, FEED, MESSAGES)
    assert (left, accepted) == (MESSAGES[3:], MESSAGES[:3])
    assert [(a.by, a.reason) for a in acceptances(store, FEED, accepted)] == [("ada", "a test"), ("ben", "a test")]
    assert acceptances(store, FEED, []) == []


def test_a_damaged_decision_is_named(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.write(decision_key(FEED, MESSAGES[0].at), b"{}")
    with pytest.raises(DamageError, match=r"decisions/shop/t/0/0\.json .*by: Field required; restore an earlier version of the object"):
        acceptances(store, FEED, MESSAGES[:1])
