"""Whatever is changed in a lake, the audit finds it and names the first place that is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.audit.certified import CUTS, Document, add_cuts, audited, changed, first_wrong, flipped, forged, gone, landed_at
from tests.audit.tampers import (
    CHANGED,
    CHANGELOG,
    FORGED,
    Change,
    K,
    exchanged_snapshot,
    list_key,
    other_digest,
    path,
    reordered,
    snapshot_of,
    unreadable_manifest_list,
)
from tests.lake import lakes
from tidelake.config.lake_paths import certificate_key, cut_key
from tidelake.lake.opened import Lake
from tidelake.lake.proof.file_list import read
from tidelake.publish.rollback import rollback


@pytest.fixture(autouse=True)
def whole(lake: Lake) -> Iterator[None]:
    """Every test leaves the lake as it was."""
    yield
    assert audited(lake).wrong == []


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


@pytest.mark.parametrize(("key", "cut", "change", "what"), CHANGED)
def test_a_changed_object_is_found_and_named(lake: Lake, key: Callable[[Lake], str], cut: int, change: Change, what: str) -> None:
    with changed(path(lake, key(lake)), change):
        where = first_wrong(lake)
    assert where[0] == cut
    assert where[1].endswith(key(lake))
    assert re.match(f".*{what}", where[2]), where[2]


def test_reordered_cuts_are_found(lake: Lake) -> None:
    with reordered(lake):
        assert first_wrong(lake) == (2, certificate_key("shop", 2), "it says that it is of cut 3 of feed shop")


def test_a_manifest_of_iceberg_that_cannot_be_read_is_found(lake: Lake) -> None:
    with unreadable_manifest_list(lake) as where:
        cut, _, what = first_wrong(lake)
    assert (cut, where in what, "cannot be read" in what) == (4, True, True)


def test_a_snapshot_that_is_given_other_files_is_found(lake: Lake) -> None:
    with exchanged_snapshot(lake):
        cut, _, what = first_wrong(lake)
    assert (cut, what.startswith(f"d.k, snapshot {snapshot_of(lake, 3)}: it has other files than its list: ")) == (3, True)


@pytest.mark.parametrize(("change", "what"), FORGED)
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


def test_a_forged_list_is_found_in_the_document_of_the_cut_and_where_it_should_be(lake: Lake) -> None:
    with forged(lake, 2, other_digest):
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
            with changed(path(own, cut_key("shop", 1)), gone):
                assert (3, certificate_key("shop", 3), "d.k: it has other files than at cut 1") in whats(own), "cut 1 may have expired"
        with forged(own, 3, lambda said: said["predicate"].update(kind="rewrite", parent_seq=2), 3):
            assert (3, certificate_key("shop", 3), "d.k: 2 rows and 0 removed, 3 at cut 2") in whats(own)


def whats(lake: Lake) -> list[tuple[int, str, str]]:
    return [(w.cut, w.key, w.what) for w in audited(lake).wrong]
