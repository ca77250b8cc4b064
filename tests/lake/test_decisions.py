"""Decisions about rejected messages, as they are read again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidelake.errors import Coordinates, DamageError
from tidelake.io.storage import open_store
from tidelake.lake.decisions import Rejected, accept, acceptances, by_decision, decision_key, named

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
    assert [(a.by, a.reason) for a in acceptances(store, FEED, [m.at for m in accepted])] == [("ada", "a test"), ("ben", "a test")]
    assert acceptances(store, FEED, []) == []


def test_a_damaged_decision_is_named(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.write(decision_key(FEED, MESSAGES[0].at), b"{}")
    with pytest.raises(DamageError, match=r"decisions/shop/t/0/0\.json .*by: Field required; restore an earlier version of the object"):
        acceptances(store, FEED, [MESSAGES[0].at])


def test_a_cut_s_decisions_are_told_by_person_and_reason(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    for topic, offset, who, why in (
        ("a[1]", 3, "ada", "a test"),
        ("shop", 17, "bob", "lost: \u00e9"),
        ("shop", 18, "ada", "a test"),
        ("shop", 19, "ada", "another"),
    ):
        message = Rejected(hour="2026-01-05T10", at=Coordinates(topic, 2, offset), timestamp_ms=None, code="BAD_JSON", error="")
        assert accept(store, "shop", message, who, why)
        assert not accept(store, "shop", message, "eve", "too late")
    key = decision_key("shop", Coordinates("shop", 2, 18))
    store.write(key, json.dumps(json.loads(store.read(key)) | {"decided_at_ms": 2**42}).encode())
    found = acceptances(store, "shop", named(["a[1][2]@3", "shop[2]@17 (4 rows)", "shop[2]@18"]))
    assert [(d.by, d.reason, d.messages) for d in found] == [
        ("ada", "a test", ("a[1][2]@3", "shop[2]@18")),
        ("bob", "lost: \u00e9", ("shop[2]@17",)),
    ]
    assert found[0].decided_at_ms == 2**42
