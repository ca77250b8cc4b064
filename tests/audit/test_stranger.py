"""An independent reader of the page about certificates finds the same as the audit: audit.py, which needs this file, Python and pyarrow."""

from __future__ import annotations

import ast
import io
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tests.audit.audit import avro_records
from tests.audit.certified import CUTS, Document, changed, document, forged
from tests.audit.stranger import SCRIPT, audited, first_wrong, ran
from tests.audit.tampers import (
    CHANGED,
    FORGED,
    Change,
    exchanged_snapshot,
    other_digest,
    path,
    reordered,
    snapshot_of,
    unreadable_manifest_list,
)
from tests.conftest import FreshUri
from tests.lake import lakes
from tidelake.config.lake_paths import certificate_key, cut_key, intent_key
from tidelake.io.storage import open_store
from tidelake.lake.opened import Lake


def test_the_script_needs_nothing_but_python_and_pyarrow() -> None:
    tree = ast.walk(ast.parse(SCRIPT.read_text()))
    imported = {n for node in tree for n in ([a.name for a in node.names] if isinstance(node, ast.Import) else [])}
    imported |= {node.module or "" for node in ast.walk(ast.parse(SCRIPT.read_text())) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} - sys.stdlib_module_names == {"pyarrow"}


def test_a_whole_lake_is_as_certified_and_the_script_says_what_it_checked(lake: Lake) -> None:
    code, lines = ran(lake.store.uri)
    assert audited(lake) == (code, lines)
    assert (code, lines[0]) == (0, "shop: as certified")
    assert [line.removeprefix("  checked: ") for line in lines if line.startswith("  checked: ")] == [
        f"{2 * CUTS} Iceberg snapshots",
        f"{CUTS} certificates",
        f"{CUTS} chain",
        f"{CUTS} counts",
        f"{CUTS} cuts",
        f"{2 * (CUTS + 1)} data and delete files",
        f"{CUTS} inputs",
        f"{CUTS} intents",
        f"{CUTS} landed objects",
        f"{2 * CUTS} lists of files",
        f"{CUTS} manifests",
        f"{CUTS} offsets",
        f"{CUTS - 1} sha256 of certificates",
        f"{CUTS} tables",
        f"{CUTS} windows",
    ]
    assert [line.removeprefix("  not checked: ") for line in lines if line.startswith("  not checked: ")] == [
        f"{CUTS} certificates: they are not signed",
        "2 sha256 of data and delete files: not known when the certificate was written",
        "numbers of messages and events, statements, decisions, and values in tables",
    ]


def test_a_feed_without_certificates_is_wrong_use(lake: Lake, tmp_path: Path) -> None:
    with Lake.of(lakes.feed(tmp_path)) as empty:
        assert audited(empty) == (2, ["shop: it has no certificates", audited(lake)[1][-1]])


@pytest.mark.s3
def test_a_lake_on_an_s3_server_is_read(lake: Lake, s3: FreshUri) -> None:
    store = open_store(uri := s3("stranger"))
    for file in [f for f in Path(lake.store.uri).rglob("*.*") if f.suffix in (".json", ".tsv") or "landed" in f.parts]:
        store.write(file.relative_to(lake.store.uri).as_posix(), file.read_bytes())
    assert ran(uri) == audited(lake)  # data files are read where the lists say: in the folder


@pytest.mark.parametrize(("key", "cut", "change", "_what"), CHANGED)
def test_a_changed_object_is_found_and_named(lake: Lake, key: Callable[[Lake], str], cut: int, change: Change, _what: str) -> None:
    with changed(path(lake, key(lake)), change):
        where = first_wrong(lake)
    assert (where[0], where[1].endswith(key(lake))) == (cut, True), where


@pytest.mark.parametrize("change", [change for change, what in FORGED if what is not None])
def test_a_certificate_that_is_forged_with_all_later_ones_is_found(lake: Lake, change: Callable[[Document], None]) -> None:
    intents = path(lake, intent_key("shop", 2)).parent
    intents.rename(moved := intents.with_name("moved"))  # they would tell every change
    try:
        with forged(lake, 2, change):
            assert first_wrong(lake)[:2] == (2, certificate_key("shop", 2))
    finally:
        moved.rename(intents)


def test_a_forged_member_that_no_rule_covers_differs_from_the_intent(lake: Lake) -> None:
    with forged(lake, 2, next(change for change, what in FORGED if what is None)):
        cut, key, what = first_wrong(lake)
    assert (cut, key, what) == (
        2,
        certificate_key("shop", 2),
        "members that differ from publish/shop/00000002.json: ['messages_of'], expected []",
    )


def test_a_forged_list_is_found_in_the_document_of_the_cut(lake: Lake) -> None:
    with forged(lake, 2, other_digest):
        cut, key, what = first_wrong(lake)
    uuid = document(lake, 2)["subject"][0]["annotations"]["uuid"]
    assert (cut, key, what.partition(":")[0]) == (2, cut_key("shop", 2), f"list and metadata of {uuid}")


def test_reordered_cuts_are_found(lake: Lake) -> None:
    with reordered(lake):
        assert first_wrong(lake) == (2, certificate_key("shop", 2), "it is of: ('shop', 3), expected ('shop', 2)")


def test_a_manifest_of_iceberg_that_cannot_be_read_is_found(lake: Lake) -> None:
    with unreadable_manifest_list(lake) as where:
        cut, key, _ = first_wrong(lake)
    assert (cut, key.removeprefix("file://")) == (4, where)


def test_a_snapshot_that_is_given_other_files_is_found(lake: Lake) -> None:
    with exchanged_snapshot(lake):
        cut, _, what = first_wrong(lake)
    assert (cut, what.startswith(f"d.k, snapshot {snapshot_of(lake, 3)}: files in one of list and snapshot: [")) == (3, True)


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_avro_files_are_read_as_others_write_them(codec: str) -> None:
    day: dict[str, Any] = {"type": "record", "name": "inner", "fields": [{"name": "day", "type": {"type": "int", "logicalType": "date"}}]}
    types: dict[str, Any] = {
        "long": "long",
        "text": ["null", "string"],
        "flag": "boolean",
        "double": "double",
        "fixed": {"type": "fixed", "name": "four", "size": 4},
        "list": {"type": "array", "items": "int"},
        "map": {"type": "map", "values": "bytes"},
        "record": day,
    }
    rows: list[dict[str, Any]] = [
        {
            "long": n - 2**63,
            "text": "ä" * n if n % 2 else None,
            "flag": n > 1,
            "double": 0.0,
            "fixed": b"abcd",
            "list": [n, -n] * n,
            "map": {"k": b"v"} if n else {},
            "record": {"day": date(1970, 1, 3)},
        }
        for n in range(300)
    ]
    schema, written = {"type": "record", "name": "row", "fields": [{"name": n, "type": t} for n, t in types.items()]}, io.BytesIO()
    fastavro.writer(written, schema, rows, codec=codec, sync_interval=1000)
    expected = [r | {"flag": bytes([r["flag"]]), "double": bytes(8), "text": r["text"] or b"", "record": {"day": 2}} for r in rows]
    assert avro_records(written.getvalue()) == expected
