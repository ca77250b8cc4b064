"""States of hours: from the beginning of a document, and from what the cuts hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pages.lakes import TEN
from tests.validate.facts import published
from tidelake.config.lake_paths import quality_key
from tidelake.io.storage import Store, open_store
from tidelake.pages.hour_states import HEAD_BYTES, HourHead, read_head, state_of
from tidelake.validate.quality.facts import HourFacts, RedoFacts, RedoneTable, TableFacts


class Watched:
    """A store that counts the bytes that are read of documents."""

    def __init__(self, store: Store) -> None:
        self.store, self.read_bytes = store, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def read(self, key: str, begin: int = 0, end: int | None = None) -> bytes:
        found = self.store.read(key, begin, end)
        self.read_bytes += len(found)
        return found


def head(folder: Path, facts: HourFacts) -> tuple[HourHead, int]:
    """The head of a stored document, and how many bytes were read for it."""
    store: Any = Watched(open_store(str(folder)))
    store.write(quality_key("shop", TEN), facts.model_dump_json(indent=1).encode())
    return read_head(store, "shop", TEN), store.read_bytes


def test_the_head_of_a_large_document_takes_a_short_read(tmp_path: Path) -> None:
    large = published(tables={f"d.t{n}": TableFacts(events=n) for n in range(3000)})
    found, read = head(tmp_path, large)
    assert (found.status, found.cut, found.messages, found.lag_seconds) == ("published", 12, 7000, 3.407)
    assert read == HEAD_BYTES
    assert len(large.model_dump_json(indent=1)) > 1_000_000


def test_a_head_behind_a_long_error_or_a_redo_of_many_tables_is_read_whole(tmp_path: Path) -> None:
    found, _ = head(tmp_path, published(status="blocked", error="x" * 5000))
    assert (found.status, found.messages, len(found.error or "")) == ("blocked", 7000, 5000)
    redo = RedoFacts(replaces=1, parent=0, tables={f"d.t{n}": RedoneTable(added=1) for n in range(500)})
    found, _ = head(tmp_path, published(redo=redo, incomplete=True))
    assert (found.incomplete, found.messages) == (True, 7000)


@pytest.mark.parametrize("end", range(HEAD_BYTES - 60, HEAD_BYTES + 60))
def test_a_head_is_right_wherever_the_read_ends(tmp_path: Path, end: int) -> None:
    """The member `messages` stands around the end of the short read, in every position."""
    plain = published().model_dump_json(indent=1)
    error = "é" * ((end - plain.index('"messages"')) // 2) + "x" * ((end - plain.index('"messages"')) % 2)
    found, _ = head(tmp_path, published(error=error))
    assert (found.messages, found.error) == (7000, error)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"hour": 1}', b"\xff"])
def test_a_damaged_document_is_a_state_of_its_own(tmp_path: Path, content: bytes) -> None:
    store = open_store(str(tmp_path))
    store.write(quality_key("shop", TEN), content)
    found = read_head(store, "shop", TEN)
    assert found.status == "damaged"
    assert f"reports/shop/{TEN}.json" in (found.error or "")
    assert "tidelake report --feed shop" in (found.error or "")
    assert state_of(TEN, found, decoded=True, held=True).kind == "damaged"


@pytest.mark.parametrize(
    ("facts", "held", "kind"),
    [
        ({"status": "published", "cut": 1}, True, "published"),
        ({"status": "published", "cut": 1, "incomplete": True}, True, "incomplete"),
        ({"status": "published", "cut": 1, "superseded_by": 3, "incomplete": True}, True, "superseded"),
        ({"status": "blocked"}, False, "blocked"),
        ({"status": "blocked"}, True, "within"),  # a later hour published its rows
        ({"status": "failed", "cut": 1}, True, "failed"),  # a later run of a published hour
        ({"status": "ordered"}, False, "ordered"),
        (None, True, "within"),
        (None, False, "decoded"),
    ],
)
def test_the_state_of_an_hour(facts: dict[str, Any] | None, held: bool, kind: str) -> None:
    found = HourHead(hour=TEN, **facts) if facts else None
    assert state_of(TEN, found, decoded=True, held=held).kind == kind


def test_an_hour_without_decode_record_is_landed() -> None:
    assert state_of(TEN, None, decoded=False, held=False).shown.letter == "L"
