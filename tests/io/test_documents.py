"""Every JSON document of a lake that cannot be read is named by its URI, with the command that brings it back."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from tidelake.config import lake_paths as layout
from tidelake.decode.record import read_record
from tidelake.errors import StorageError
from tidelake.io.documents import find_document, members, read_document, remedy_of
from tidelake.io.lease import check
from tidelake.io.storage import Store, open_store
from tidelake.land.store.manifest import newest

HOUR = "2026-01-05T10"


class Document(BaseModel):
    """Any."""

    number: int


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "lake"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "(empty) cannot be read: Invalid JSON: EOF"),
        (b'{"number": ', "(11 bytes) cannot be read: Invalid JSON: EOF"),
        (b'{"number": "many"}', "(18 bytes) cannot be read: number: Input should be a valid integer"),
        (b"\x00" * 2000, "(2,000 bytes) cannot be read: Invalid JSON"),
    ],
)
def test_what_is_wrong_with_a_document_is_told_with_its_uri(store: Store, content: bytes, said: str) -> None:
    store.write("runs/shop/1.json", content)
    with pytest.raises(StorageError) as error:
        read_document(store, "runs/shop/1.json", Document)
    assert (error.value.code, error.value.exit_code) == ("DAMAGED", 3)
    assert f"{store.uri}/runs/shop/1.json {said}" in error.value.message


def test_what_is_not_there_is_none_or_not_found(store: Store) -> None:
    assert find_document(store, "runs/x", Document) is None
    with pytest.raises(StorageError, match="NOT_FOUND"):
        read_document(store, "runs/x", Document)


@pytest.mark.parametrize("content", [b"[]", b"{", b'"text"'])
def test_a_document_without_a_model_is_an_object(store: Store, content: bytes) -> None:
    with pytest.raises(StorageError, match="DAMAGED"):
        members(store, "certificates/shop/1.json", content)


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        (layout.manifest_key("shop", HOUR, 2), f"`tidelake land --feed shop --hour {HOUR}`"),
        (layout.decoded_key("shop", HOUR), f"`tidelake decode --feed shop --hour {HOUR}`"),
        (layout.sink_key("shop", HOUR), f"`tidelake land --feed shop --hour {HOUR}`"),
        (layout.closing_key("shop", HOUR), f"`tidelake land --feed shop --hour {HOUR}`"),
        (layout.cut_key("shop", 3), "rebuilt from publish/shop/00000003.json and certificates/shop/00000003.json"),
        (layout.certificate_key("shop", 3), "rebuilt from publish/shop/00000003.json and cuts/shop/00000003.json"),
        (layout.intent_key("shop", 3), "`tidelake status --feed shop`"),
        (layout.run_key("shop", 3, "order"), "`tidelake run --feed shop --hour …`"),
        (layout.mismatches_key("shop", 3), "`tidelake redo --feed shop --from …`"),
        (layout.blocked_key("shop", HOUR), "a run of the hour that is blocked writes it again"),
        (layout.notices_key("shop"), "the next look at the feed writes it again"),
        (layout.lease_key("shop"), "`tidelake unlock --feed shop`"),
        ("lake.json", "remove it: the next `tidelake run` writes it again"),
        ("other/x.json", "restore an earlier version"),
    ],
)
def test_every_kind_of_document_has_a_remedy(key: str, remedy: str) -> None:
    assert remedy in remedy_of(key)


def test_manifests_records_and_leases_are_read_so(store: Store) -> None:
    for key in (layout.manifest_key("shop", HOUR, 1), layout.decoded_key("shop", HOUR), layout.lease_key("shop")):
        store.write(key, b"{}")
    for read in (lambda: newest(store, "shop", HOUR), lambda: read_record(store, "shop", HOUR), lambda: check(store, "shop", 1)):
        with pytest.raises(StorageError, match="DAMAGED"):
            read()
