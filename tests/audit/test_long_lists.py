"""Long lists of files have parts: the audit and an independent reader check each, and name the one that is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import PurePath
from unittest.mock import patch

import pytest

from tests.audit import stranger
from tests.audit.certified import CUTS, Document, add_cuts, audited, changed, first_wrong, flipped, forged, gone
from tests.audit.tampers import CHANGELOG, Change, K, list_key, path
from tests.lake import lakes
from tidelake.lake.cut import ProvenFile
from tidelake.lake.opened import Lake
from tidelake.lake.proof import stored_lists
from tidelake.lake.proof.file_list import Part, digest_of, read, written


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake of CUTS certified cuts. A part of level 1 has one file; one of level 2 ends with every second file that a table got."""
    numbers = dict[PurePath, dict[str, int]]()

    def ends_part(path: str, level: int) -> bool:
        of_table = numbers.setdefault(PurePath(path).parent, {})
        return level == 1 or (level == 2 and of_table.setdefault(path, len(of_table)) % 2 == 1)

    with (
        patch.object(stored_lists, "WHOLE", 1),
        patch.object(stored_lists, "_ends_part", ends_part),
        Lake.of(lakes.feed(tmp_path_factory.mktemp("long"))) as lake,
    ):
        add_cuts(lake)
        yield lake


def _parts(lake: Lake, seq: int, table: str) -> list[Part]:
    """All parts of the list of a table's files at a cut."""
    key = list_key(lake, seq, table)
    found, todo = list[Part](), [key]
    while todo:
        inner = [line for line in read(lake.store.read(todo.pop())) if isinstance(line, Part)]
        found += inner
        todo += [f"{key.rpartition('/')[0]}/{p.digest.sha256}.tsv" for p in inner]
    return found


def _key(lake: Lake, seq: int, table: str, part: Part) -> str:
    return f"{list_key(lake, seq, table).rpartition('/')[0]}/{part.digest.sha256}.tsv"


def _part(lake: Lake, seq: int, table: str) -> str | None:
    """The key of a part that a cut is the first to have."""
    before = {list_key(lake, seq - 1, table), *(_key(lake, seq - 1, table, p) for p in _parts(lake, seq - 1, table))}
    return next((key for p in _parts(lake, seq, table) if (key := _key(lake, seq, table, p)) not in before), None)


def test_a_whole_lake_is_as_certified_and_each_list_is_read_once(long: Lake) -> None:
    found = audited(long)
    assert {p.level for p in _parts(long, CUTS, CHANGELOG)} == {1, 2}
    lists = {list_key(long, n, t) for n in range(1, CUTS + 1) for t in (K, CHANGELOG)}
    lists |= {_key(long, n, t, p) for n in range(1, CUTS + 1) for t in (K, CHANGELOG) for p in _parts(long, n, t)}
    assert (found.wrong, found.checked["lists of files"], found.checked["data files"]) == ([], len(lists), 2 * CUTS)
    assert stranger.audited(long)[0] == 0


@pytest.mark.parametrize(
    ("change", "what"),
    [(flipped, "its sha256 is [0-9a-f]{64}, expected "), (gone, "it is missing: a part of the list of the files of d.k")],
)
def test_a_changed_part_is_found_and_named(long: Lake, change: Change, what: str) -> None:
    key = _part(long, 2, K)
    assert key is not None
    with changed(path(long, key), change):
        found, theirs = first_wrong(long), stranger.first_wrong(long)
    assert (found[:2], theirs[:2]) == ((2, key), (2, key))
    assert re.match(what, found[2]), found[2]


def _other_sums(part: Part) -> Part:
    return Part(part.path, part.level, part.digest.model_copy(update={"size": part.digest.size + 1}))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (_other_sums, r"d\.k: rows, files, size and unproven files are \(.*\), the list that names it says \("),
        (lambda part: Part(part.path, part.level + 1, part.digest), r"d\.k: its lines do not end with .*, or are not of level "),
        (lambda part: Part(f"{part.path}0", part.level, part.digest), r"d\.k: its lines do not end with .*, or are not of level "),
    ],
)
def test_a_forged_line_of_a_part_does_not_fit_the_part(long: Lake, change: Callable[[Part], Part], what: str) -> None:
    seq = next(n for n in range(2, CUTS + 1) if _parts(long, n, K))
    part, *others = sorted(read(long.store.read(list_key(long, seq, K))), key=lambda line: isinstance(line, ProvenFile))
    assert isinstance(part, Part)
    lines = [change(part), *others]
    digest = digest_of(written(lines), lines)
    at = list_key(long, seq, K).replace(PurePath(list_key(long, seq, K)).stem, digest.sha256)
    long.store.write(at, written(lines))

    def forge(said: Document) -> None:
        subject = next(s for s in said["subject"] if s["name"] == K)
        subject["digest"]["sha256"] = digest.sha256
        subject["annotations"]["size"] = digest.size

    with forged(long, seq, forge):
        found = [w.what for w in audited(long).wrong if (w.cut, w.key) == (seq, _key(long, seq, K, part))]
        _, theirs = stranger.audited(long)
    long.store.delete(at)
    assert len(found) == 1
    assert re.match(what, found[0]), found
    assert any(line.startswith(f"  WRONG cut {seq}, {_key(long, seq, K, part)}: ") for line in theirs), theirs
