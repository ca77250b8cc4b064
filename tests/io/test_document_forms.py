"""Every JSON document of the lake names its form; one of a newer form is refused, and never taken for damage."""

from __future__ import annotations

import json
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import tidelake
from tests.checkout import CHECKOUT
from tidelake.errors import StorageError
from tidelake.io.documents import FORMAT, Document, find_document, members
from tidelake.io.storage import open_store
from tidelake.lake.cut import Abandoned
from tidelake.lake.cut_documents import find_certificate, find_outcome
from tidelake.lake.identity import Identity

PAGE = CHECKOUT / "docs" / "architecture.md"


def forms() -> set[str]:
    """Names of all models of documents, wherever they are."""
    light = (
        m.name for m in walk_packages(tidelake.__path__, "tidelake.") if not m.name.startswith(("tidelake.airflow", "tidelake.__main__"))
    )
    for name in light:
        import_module(name)
    return {kind.__name__.lstrip("_") for kind in Document.__subclasses__()}


def test_the_form_stands_first_in_every_document_and_one_without_it_has_form_1() -> None:
    note = Abandoned(feed="shop", seq=1, hour="h", run="r", abandoned_at_ms=1, by="me")
    assert next(iter(json.loads(note.model_dump_json()).items())) == ("format", FORMAT)
    assert {next(iter(kind.model_fields)) for kind in Document.__subclasses__()} == {"format"}
    old = {k: v for k, v in note.model_dump().items() if k != "format"}
    assert Abandoned.model_validate(old) == note


def test_a_newer_document_is_refused_with_what_to_do_and_is_not_called_damaged(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    for text in (b'{"format": 2, "members": "of another form"}', b'{\n "format":2}'):
        store.write("lake.json", text)
        for read in (partial(find_document, store, "lake.json", Identity), partial(members, store, "lake.json", text)):
            with pytest.raises(StorageError) as error:
                read()
            assert str(error.value).startswith(f"NEWER_FORMAT: {tmp_path}/lake.json has format 2; this version of Tidelake reads format 1")
            assert "install that version or a later one" in error.value.remedy


def test_a_newer_cut_and_a_newer_certificate_are_refused(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.write("cuts/shop/00000001.json", b'{"format": 7, "feed": "shop"}')
    store.write("certificates/shop/00000001.json", b'{"_type": "x", "predicateType": "urn:tidelake:certificate:v3"}')
    for read in (find_outcome, find_certificate):
        with pytest.raises(StorageError) as error:
            read(store, "shop", 1)
        assert error.value.code == "NEWER_FORMAT"


def test_the_page_lists_every_document() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("### 9.1 JSON documents")[2].partition("\n#")[0]
    listed = {cell.strip().strip("`") for row in table.splitlines() if row.startswith("| `") for cell in row.split("|")[2].split(",")}
    assert listed - {""} == forms()
