"""Whatever is changed in a lake, the audit finds it and names the first place that is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.audit.certified import (
    CUTS,
    Document,
    add_cuts,
    audited,
    changed,
    document,
    first_wrong,
    flipped,
    forged,
    gone,
    hour_of,
    landed_at,
)
from tests.lake import lakes
from tidelake.config.lake_paths import certificate_key, cut_key, file_list_key, manifest_key
from tidelake.lake.opened import Lake
from tidelake.lake.proof.file_list import read
from tidelake.publish.rollback import rollback

K, CHANGELOG = "d.k", "d_changelog.k"
Change = Callable[[bytes], bytes | None]


def other_rows(content: bytes) -> bytes:
    return content.replace(b'"rows": 3', b'"rows": 4')


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with Lake.of(lakes.feed(tmp_path_factory.mktemp("audit"))) as opened:
        add_cuts(opened)
        yield opened


@pytest.fixture(autouse=True)
def whole(lake: Lake) -> Iterator[None]:
    """Every test leaves the lake as it was."""
    yield
    assert audited(lake).wrong == []


def path(lake: Lake, key: str) -> Path:
    return Path(lake.store.uri, key)


def list_key(lake: Lake, seq: int, table: str) -> str:
    subject = next(s for s in document(lake, seq)["subject"] if s["name"] == table)
    return file_list_key("shop", subject["annotations"]["uuid"], subject["digest"]["sha256"])


def newest_file(lake: Lake, seq: int, table: str) -> str:
    """The data file that a cut added to a table, below the lake."""
    found = [{f.path for f in read(lake.store.read(list_key(lake, n, table)))} for n in (seq - 1, seq)]
    return (found[1] - found[0]).pop().removeprefix("file://").removeprefix(f"{lake.store.uri}/")


def metadata(lake: Lake, table: str) -> Document:
    found: Document = json.loads(Path(lake.catalog.load(table).metadata.removeprefix("file://")).read_bytes())
    return found


def test_a_whole_lake_is_as_certified_and_the_audit_says_what_it_compared(lake: Lake) -> None:
    found = audited(lake)
    assert (found.first, found.last, found.wrong) == (1, CUTS, [])
    files = 2 * (CUTS + 1)
    data = sum(f.size for t in (K, CHANGELOG) for f in read(lake.store.read(list_key(lake, CUTS, t))) if f.sha256)
    assert found.checked == {
        "certificates": CUTS,
        "windows": CUTS,
        "tables' counts": CUTS,
        "manifests": CUTS,
        "landed objects": CUTS,
        "bytes of landed objects": CUTS * len(b"messages of 1"),
        "partitions' offsets": CUTS,
        "cuts": CUTS,
        "tables": 2 * CUTS,
        "lists of files": 2 * CUTS,
        "snapshots": 2 * CUTS,
        "data files": files - 2,
        "bytes of data files": data,
    }
    assert [(u.what, u.many) for u in found.unchecked] == [
        ("tables", 1),  # d.idle, which no run of Tidelake wrote
        ("data files", 2),  # the rows that cheap cuts begin with
        ("tables", 2 * CUTS),
    ]


@pytest.mark.parametrize(
    ("key", "cut", "change", "what"),
    [
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
    ],
)
def test_a_changed_object_is_found_and_named(lake: Lake, key: Callable[[Lake], str], cut: int, change: Change, what: str) -> None:
    with changed(path(lake, key(lake)), change):
        where = first_wrong(lake)
    assert where[0] == cut
    assert where[1].endswith(key(lake))
    assert re.match(f".*{what}", where[2]), where[2]


def test_reordered_cuts_are_found(lake: Lake) -> None:
    two, three = (lake.store.read(certificate_key("shop", n)) for n in (2, 3))
    with changed(path(lake, certificate_key("shop", 2)), lambda _: three), changed(path(lake, certificate_key("shop", 3)), lambda _: two):
        assert first_wrong(lake) == (2, certificate_key("shop", 2), "it says that it is of cut 3 of feed shop")


def test_a_manifest_of_iceberg_that_cannot_be_read_is_found(lake: Lake) -> None:
    snapshot = metadata(lake, K)["snapshots"][-1]
    where = Path(snapshot["manifest-list"].removeprefix("file://"))
    with changed(where, lambda b: b[:40]):
        cut, _, what = first_wrong(lake)
    assert (cut, str(where) in what, "cannot be read" in what) == (4, True, True)


def test_a_snapshot_that_is_given_other_files_is_found(lake: Lake) -> None:
    where = Path(lake.catalog.load(K).metadata.removeprefix("file://"))
    other = metadata(lake, K)["snapshots"]
    of_cut = {n: s["annotations"]["snapshot_id"] for n in (2, 3) for s in document(lake, n)["subject"] if s["name"] == K}
    lists = {s["snapshot-id"]: s["manifest-list"] for s in other}

    def exchange(content: bytes) -> bytes:
        return content.replace(lists[of_cut[3]].encode(), lists[of_cut[2]].encode())

    with changed(where, exchange):
        cut, _, what = first_wrong(lake)
    assert (cut, what.startswith(f"d.k, snapshot {of_cut[3]}: it has other files than its list: ")) == (3, True)


def forging(*where: str | int, to: Any) -> Callable[[Document], None]:
    """Set a member of the predicate."""

    def change(said: Document) -> None:
        inner: Any = said["predicate"]
        for name in where[:-1]:
            inner = inner[name]
        inner[where[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "what"),
    [
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
        (forging("kind", to="rollback"), "its window is after .*, but not that of cut 1"),
        (forging("messages_of", to=0), None),
    ],
)
def test_a_certificate_that_is_forged_with_all_later_ones_is_found(
    lake: Lake, change: Callable[[Document], None], what: str | None
) -> None:
    with forged(lake, 2, change):
        cut, key, found = first_wrong(lake)
    if what is None:  # no rule covers the member: only the newest certificate differs from what it was made from
        assert (cut, key) == (4, certificate_key("shop", 4))
    else:
        assert (cut, key) == (2, certificate_key("shop", 2))
        assert re.match(what, found), found


def test_a_forged_subject_is_found(lake: Lake) -> None:
    def rows(said: Document) -> None:
        said["subject"][0]["annotations"]["rows"] = 99

    def digest(said: Document) -> None:
        said["subject"][0]["digest"]["sha256"] = "ab" * 32

    with forged(lake, 2, rows):
        assert first_wrong(lake)[2] == "d.k: 99 rows by its files, expected 3"
    with forged(lake, 2, digest):
        found = [w for w in audited(lake).wrong if w.cut == 2]
    assert [w.what.split(":")[0] for w in found] == ["files differ from the certificate", "it is missing"]


def test_an_audit_from_a_cut_on_compares_nothing_before_it(lake: Lake) -> None:
    with ExitStack() as stack:
        stack.enter_context(changed(path(lake, landed_at(2)), flipped))
        stack.enter_context(changed(path(lake, certificate_key("shop", 1)), lambda b: b + b" "))
        found = audited(lake, 3)
        assert (found.first, found.wrong, found.checked["certificates"]) == (3, [], 2)
        assert audited(lake, 2).wrong[0].cut == 1, "the certificate before is compared with the sum in the first one"


def test_a_rollback_has_the_files_and_a_rewrite_the_rows_of_its_cut(tmp_path: Path) -> None:
    with Lake.of(lakes.feed(tmp_path)) as own:
        add_cuts(own, 2)
        rollback(own, "cut 1")
        assert audited(own).wrong == []
        with forged(own, 3, lambda said: said["subject"][0]["digest"].update(sha256="ab" * 32), 3):
            assert (3, certificate_key("shop", 3), "d.k: it has other files than at cut 1") in whats(own)
        with forged(own, 3, lambda said: said["predicate"].update(kind="rewrite", parent_seq=2), 3):
            assert (3, certificate_key("shop", 3), "d.k: 2 rows, 3 at cut 2") in whats(own)


def whats(lake: Lake) -> list[tuple[int, str, str]]:
    return [(w.cut, w.key, w.what) for w in audited(lake).wrong]
