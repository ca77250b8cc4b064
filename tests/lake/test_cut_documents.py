"""Documents of cuts that are lost are rebuilt, those that are damaged are named with what brings them back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lake import cheap, lakes
from tests.publish.one_cut import check, intent_of
from tidelake.config.lake_paths import certificate_key, cut_key, intent_key
from tidelake.errors import StorageError
from tidelake.io.storage import open_store
from tidelake.lake.cut import Cut, FilesDigest
from tidelake.lake.cut_documents import read_certificate, read_cut
from tidelake.lake.cuts import base_of, newest_cut
from tidelake.lake.opened import Lake
from tidelake.publish.recovery import recover
from tidelake.publish.steps import carry_out, declare

LISTED = FilesDigest(sha256="00", files=1, size=1, rows=1)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake.of(lakes.feed(tmp_path)) as opened:
        yield opened


def test_a_lost_cut_document_is_rebuilt_byte_for_byte(tmp_path: Path) -> None:
    catalog, store = lakes.catalog(tmp_path), open_store(str(tmp_path / "lake"))
    intent = intent_of(catalog, tmp_path)  # its advance takes a final snapshot id that the intent does not know
    declare(store, intent)
    cut, key = carry_out(catalog, store, intent), cut_key("shop", 1)
    before = store.read(key)
    store.delete(key)
    assert newest_cut(catalog, store, "shop") == cut
    assert recover(catalog, store, "shop") is None
    assert store.read(key) == before
    check(catalog, store)


def test_a_lost_certificate_is_rebuilt(lake: Lake) -> None:
    cheap.publish(lake, None, 0)
    was = read_certificate(lake.store, "shop", 1)
    lake.store.delete(certificate_key("shop", 1))
    assert read_certificate(lake.store, "shop", 1) == was


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_without_the_document_of_any_cut_the_next_one_is_built_on_the_newest(lake: Lake, lost: int) -> None:
    cut = None
    for hours in range(3):
        cut = cheap.publish(lake, cut, hours)
    lake.store.delete(cut_key("shop", lost))
    base = base_of(lake.catalog, lake.store, "shop")
    assert (base.seq, base.newest) == (4, cut)
    assert read_cut(lake.store, "shop", lost).seq == lost


def test_a_document_that_is_lost_with_what_it_is_made_from_is_named(lake: Lake) -> None:
    cheap.publish(lake, None, 0)
    for key in (cut_key("shop", 1), certificate_key("shop", 1)):
        lake.store.delete(key)
    with pytest.raises(
        StorageError, match=r"cuts/shop/00000001.json is missing and cannot be rebuilt, because certificates/shop/00000001.json or publish/"
    ) as error:
        newest_cut(lake.catalog, lake.store, "shop")
    assert error.value.code == "NOT_FOUND"


def test_a_damaged_cut_is_named_and_heals_once_it_is_removed(lake: Lake) -> None:
    cut = cheap.publish(lake, None, 0)
    lake.store.write(cut_key("shop", 1), b'{"feed": "shop", "seq"')
    with pytest.raises(StorageError, match=r"^DAMAGED: .*/lake/cuts/shop/00000001.json \(22 bytes\) cannot be read: Invalid JSON") as error:
        newest_cut(lake.catalog, lake.store, "shop")
    assert error.value.remedy.startswith("remove it: it is rebuilt from publish/shop/00000001.json and certificates/shop/00000001.json")
    lake.store.delete(cut_key("shop", 1))
    assert newest_cut(lake.catalog, lake.store, "shop") == cut


def test_a_damaged_intent_of_a_published_cut_stops_nobody(lake: Lake) -> None:
    cheap.publish(lake, None, 0)
    lake.store.write(intent_key("shop", 1), b"")
    assert recover(lake.catalog, lake.store, "shop") is None


def test_a_damaged_intent_that_is_not_carried_out_is_named(lake: Lake) -> None:
    lake.store.write(intent_key("shop", 1), b"")
    with pytest.raises(StorageError, match=r"publish/shop/00000001.json \(empty\) cannot be read"):
        recover(lake.catalog, lake.store, "shop")


def test_a_copy_of_a_cut_has_dicts_of_its_own_and_shares_what_they_hold() -> None:
    one = Cut(
        feed="f", seq=1, hour="2026-01-05T10", applied_ts=1, resolved_ts=2, run="r", version="v", files={"a": LISTED}, open_hours=["h"]
    )
    other = one.copied()
    other.files |= {"b": LISTED}
    other.open_hours.append("i")
    assert (list(one.files), one.open_hours) == (["a"], ["h"])
    assert other.files["a"] is one.files["a"]
    assert other.model_copy(update={"files": one.files, "open_hours": one.open_hours}) == one
