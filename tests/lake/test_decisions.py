"""Recorded decisions about rejected messages: who, why, about which messages."""

from __future__ import annotations

import json
from pathlib import Path

from tidelake.errors import Coordinates
from tidelake.io.storage import open_store
from tidelake.lake.decisions import Rejected, accept, decision_key, recorded


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
    found = recorded(store, "shop", ["a[1][2]@3", "shop[2]@17 (4 rows)", "shop[2]@18"])
    assert [(d["by"], d["reason"], d["messages"]) for d in found] == [
        ("ada", "a test", ["a[1][2]@3", "shop[2]@18"]),
        ("bob", "lost: \u00e9", ["shop[2]@17"]),
    ]
    assert found[0]["decided_at_ms"] == 2**42
    assert recorded(store, "shop", []) == []
