"""What somebody may change in a lake of certified cuts, and where it is wrong then: for the audit and for an independent reader."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.audit.certified import Document, changed, document, flipped, gone, hour_of, landed_at
from tidelake.config.lake_paths import certificate_key, cut_key, file_list_key, manifest_key
from tidelake.lake.opened import Lake
from tidelake.lake.proof.file_list import read

K, CHANGELOG = "d.k", "d_changelog.k"
Change = Callable[[bytes], bytes | None]


def other_rows(content: bytes) -> bytes:
    """A cut's document with another number of rows."""
    return content.replace(b'"rows": 3', b'"rows": 4')


def path(lake: Lake, key: str) -> Path:
    """A file of the lake."""
    return Path(lake.store.uri, key)


def list_key(lake: Lake, seq: int, table: str) -> str:
    """The key of the list of a table's files at a cut."""
    subject = next(s for s in document(lake, seq)["subject"] if s["name"] == table)
    return file_list_key("shop", subject["annotations"]["uuid"], subject["digest"]["sha256"])


def newest_file(lake: Lake, seq: int, table: str) -> str:
    """The data file that a cut added to a table, below the lake."""
    found = [{f.path for f in read(lake.store.read(list_key(lake, n, table)))} for n in (seq - 1, seq)]
    return (found[1] - found[0]).pop().removeprefix("file://").removeprefix(f"{lake.store.uri}/")


def metadata(lake: Lake, table: str) -> Document:
    """The newest Iceberg metadata of a table."""
    found: Document = json.loads(Path(lake.catalog.load(table).metadata.removeprefix("file://")).read_bytes())
    return found


def forging(*where: str | int, to: Any) -> Callable[[Document], None]:
    """Set a member of the predicate."""

    def change(said: Document) -> None:
        inner: Any = said["predicate"]
        for name in where[:-1]:
            inner = inner[name]
        inner[where[-1]] = to

    return change


def other_digest(said: Document) -> None:
    """Name another list of files for d.k."""
    said["subject"][0]["digest"]["sha256"] = "ab" * 32


def other_subject_rows(said: Document) -> None:
    """Say that d.k has more rows."""
    said["subject"][0]["annotations"]["rows"] = 99


@contextmanager
def reordered(lake: Lake) -> Iterator[None]:
    """Exchange certificates 2 and 3."""
    two, three = (lake.store.read(certificate_key("shop", n)) for n in (2, 3))
    with changed(path(lake, certificate_key("shop", 2)), lambda _: three), changed(path(lake, certificate_key("shop", 3)), lambda _: two):
        yield


@contextmanager
def unreadable_manifest_list(lake: Lake) -> Iterator[str]:
    """Cut the newest manifest list of d.k short. Gives its path."""
    where = Path(metadata(lake, K)["snapshots"][-1]["manifest-list"].removeprefix("file://"))
    with changed(where, lambda b: b[:40]):
        yield str(where)


def snapshot_of(lake: Lake, seq: int) -> int:
    """The snapshot of d.k at a cut."""
    return next(int(s["annotations"]["snapshot_id"]) for s in document(lake, seq)["subject"] if s["name"] == K)


@contextmanager
def exchanged_snapshot(lake: Lake) -> Iterator[None]:
    """Give the snapshot of d.k at cut 3 the files of cut 2, in the newest metadata."""
    lists = {s["snapshot-id"]: s["manifest-list"].encode() for s in metadata(lake, K)["snapshots"]}
    two, three = (lists[snapshot_of(lake, n)] for n in (2, 3))
    with changed(Path(lake.catalog.load(K).metadata.removeprefix("file://")), lambda b: b.replace(three, two)):
        yield


CHANGED = [  # key, cut, change, and what the audit says
    pytest.param(lambda _: landed_at(2), 2, flipped, "its sha256 is [0-9a-f]{64}, expected ", id="a byte of a landed object"),
    pytest.param(lambda _: landed_at(3), 3, gone, "it is missing", id="a landed object that is removed"),
    pytest.param(lambda _: landed_at(3), 3, lambda b: b[:-1], "it has 12 bytes, expected 13", id="a landed object that is cut short"),
    pytest.param(lambda _: manifest_key("shop", hour_of(2), 1), 2, flipped, "its sha256 is", id="a byte of a manifest"),
    pytest.param(lambda _: manifest_key("shop", hour_of(2), 1), 2, gone, "it is missing", id="a manifest that is removed"),
    pytest.param(lambda x: newest_file(x, 3, K), 3, flipped, "its sha256 is", id="a byte of a data file"),
    pytest.param(lambda x: newest_file(x, 2, CHANGELOG), 2, gone, "it is missing", id="a data file that is removed"),
    pytest.param(lambda x: list_key(x, 3, K), 3, flipped, "its sha256 is", id="a byte of a list of files"),
    pytest.param(lambda x: list_key(x, 2, K), 2, gone, "it is missing: the list of the files of d.k", id="a list that is removed"),
    pytest.param(lambda _: certificate_key("shop", 2), 2, lambda b: b + b" ", "its sha256 is .* of cut 3 says", id="a certificate"),
    pytest.param(lambda _: certificate_key("shop", 3), 3, gone, "it is missing: .* cut 4 names cut 3", id="a removed certificate"),
    pytest.param(lambda _: certificate_key("shop", 1), 1, gone, "it is missing: .* cut 2 names it", id="the first, removed"),
    pytest.param(lambda _: certificate_key("shop", 4), 4, gone, "it is missing: cuts/shop/00000004.json says", id="newest, removed"),
    pytest.param(lambda _: certificate_key("shop", 4), 4, lambda b: b + b" ", "differs from what its intent", id="the newest, changed"),
    pytest.param(lambda _: certificate_key("shop", 3), 3, lambda _: b"{", "cannot be read: JSONDecodeError", id="no JSON"),
    pytest.param(lambda _: cut_key("shop", 4), 4, gone, "it is missing; the newest cut is always retained", id="newest cut, removed"),
    pytest.param(lambda _: cut_key("shop", 2), 2, other_rows, "snapshots differ", id="a cut's rows"),
    pytest.param(lambda _: cut_key("shop", 2), 2, lambda b: b[:-9], "cannot be read", id="a cut that is cut short"),
]

FORGED = [  # change of certificate 2, which fits all later ones, and what the audit says
    (forging("counts", "tables", "d.k", "in", to=2), r"d.k: 2 events in, but 1 out \+ 0 duplicate \+ 0 late \+ 0 quarantined = 1"),
    (forging("counts", "window", "in", to=5), "5 events in the window, but 1 by table"),
    (forging("counts", "window", "late", to=5), "5 late events, but 0 by table"),
    (forging("rows", "d.k", "inserts", to=7), "rows.d.k: 1 events, but 7 by operation"),
    (forging("rows", "d.k", "changes", to=7), "rows.d.k: 7 changes, but its operations make 1"),
    (forging("applied_ts", to=17), "its window is after 17 up to .*, but cut 1, which it continues, ends at"),
    (forging("offsets", "t", "0", 1, to=35), r"t\[0\]: offsets 0 to 35 are to be complete, but only 0 to 19 are landed"),
    (forging("offsets", "t", "0", 1, to=8), r"t\[0\]: offsets 0 to 8, after 0 to 9 in the cut that it continues"),
    (forging("abandoned", to=[1]), r"cuts \[\] are missing; it names \[1\]"),
    (forging("cut", to=9), "it says that it is of cut 9 of feed shop"),
    (forging("previous", to=None), "it says that it is the first, but there is one of cut 1"),
    (forging("kind", to="seed"), "it is a seed, but not the first cut"),
    (other_subject_rows, "d.k: 99 rows by its files, expected 3"),
    (forging("messages_of", to=0), None),
]
