"""Lists of files in the lake: long ones are cut into parts, by their files alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelake.config.lake_paths import file_list_key, file_lists
from tidelake.errors import DamageError
from tidelake.io.storage import open_store
from tidelake.lake.cut import ProvenFile
from tidelake.lake.proof import stored_lists
from tidelake.lake.proof.file_list import Part, digest_of, written
from tidelake.lake.proof.stored_lists import StoredLists

_NUMBER = st.integers(0, 400)
_NUMBERS = st.sets(_NUMBER, max_size=120)


def _file(number: int) -> ProvenFile:
    deletes, sha256 = number % 7 == 3, None if number % 11 == 5 else "ab" * 32
    return ProvenFile(path=f"s3://b/t/{number:05}.parquet", sha256=sha256, size=number + 1, rows=number % 13, deletes=deletes)


def _files(numbers: set[int]) -> list[ProvenFile]:
    return [_file(n) for n in sorted(numbers)]


def _lists(folder: Path) -> StoredLists:
    return StoredLists(open_store(str(folder)), "shop", "u1")


@contextmanager
def _short() -> Iterator[None]:
    """Cut lists of more than four files into parts of two lines, on average."""
    with patch.object(stored_lists, "WHOLE", 4), patch.object(stored_lists, "_A_PART", 2):
        yield


@given(_NUMBERS, st.sets(_NUMBER, max_size=3), st.sets(_NUMBER, max_size=3), st.tuples(_NUMBER, _NUMBER))
def test_a_changed_list_is_the_list_of_its_files(
    tmp_path_factory: pytest.TempPathFactory, before: set[int], go: set[int], come: set[int], most: tuple[int, int]
) -> None:
    go = before.intersection({*go, *range(*most)})
    come -= before - go
    after = (before - go) | come
    with _short():
        one, other = (_lists(tmp_path_factory.mktemp("lake")) for _ in range(2))
        changed = one.change(one.keep(_files(before)), _files(come - go), [_file(n).path for n in go - come])
        assert changed == other.keep(_files(after))
        assert one.files(changed.sha256) == other.files(changed.sha256) == _files(after)
        whole = digest_of(written(_files(after)), _files(after))
        assert changed.model_copy(update={"sha256": ""}) == whole.model_copy(update={"sha256": ""})
        assert one.names({changed.sha256: changed.files}) == set(_names(one, changed.sha256))


def _names(lists: StoredLists, sha256: str) -> Iterator[str]:
    """A list and its parts: all are read."""
    yield sha256
    for line in lists.lines(sha256):
        if isinstance(line, Part):
            yield from _names(lists, line.digest.sha256)


def test_files_one_by_one_make_the_list_of_all_of_them_in_levels(tmp_path: Path) -> None:
    lists = _lists(tmp_path)
    with _short():
        digest = lists.keep([])
        for n in range(60):
            digest = lists.change(digest, [_file(n)], [])
        assert digest == lists.keep(_files(set(range(60))))
        assert {p.level for p in lists.lines(digest.sha256) if isinstance(p, Part)} == {4}
        for n in range(59, 0, -1):
            digest = lists.change(digest, [], [_file(n).path])
        assert digest == lists.keep([_file(0)])


def test_any_file_and_any_end_of_a_list_may_go(tmp_path: Path) -> None:
    lists, every = _lists(tmp_path), set(range(50))
    with _short():
        whole = lists.keep(_files(every))
        for n in every:
            for gone in ({n}, set(range(n)), set(range(n, 50)), set(range(n, 49))):
                changed = lists.change(whole, [], [_file(k).path for k in gone])
                assert changed == lists.keep(_files(every - gone)), gone


def test_an_hour_writes_a_bounded_part_of_a_long_list(tmp_path: Path) -> None:
    lists, store = _lists(tmp_path), open_store(str(tmp_path))
    for many in (500, 3_000, 30_000):
        digest = lists.keep(_files(set(range(0, 2 * many, 2))))
        before = {o.key for o in store.objects(file_lists("shop"))}
        assert lists.change(digest, [_file(many + 1)], []).files == many + 1
        sizes = [o.size for o in store.objects(file_lists("shop")) if o.key not in before]
        assert len(sizes) <= 5
        assert sum(sizes) < 40_000


def test_a_list_of_up_to_256_files_is_one_object(tmp_path: Path) -> None:
    lists = _lists(tmp_path)
    digest = lists.keep(_files(set(range(256))))
    assert digest.sha256 == hashlib.sha256(written(_files(set(range(256))))).hexdigest()
    assert len(lists.names({digest.sha256: 256})) == 1
    assert len(lists.names({lists.change(digest, [_file(256)], []).sha256: 257})) > 2


def test_a_longer_list_of_an_earlier_version_is_read_and_cut_when_it_changes(tmp_path: Path) -> None:
    lists, files = _lists(tmp_path), _files(set(range(300)))
    whole = digest_of(written(files), files)
    open_store(str(tmp_path)).put_if_absent(lists.key(whole.sha256), written(files))
    assert (lists.files(whole.sha256), lists.names({whole.sha256: whole.files})) == (files, {whole.sha256})
    assert lists.change(whole, [_file(300)], []) == lists.keep([*files, _file(300)])


def test_a_removed_file_that_is_not_in_the_list_is_named(tmp_path: Path) -> None:
    lists = _lists(tmp_path)
    with pytest.raises(LookupError, match=r"00007\.parquet: not in list "):
        lists.change(lists.keep([_file(1)]), [], [_file(7).path])


def test_a_list_that_is_missing_or_changed_is_named(tmp_path: Path) -> None:
    store, lists = open_store(str(tmp_path)), _lists(tmp_path)
    digest = lists.keep([_file(1)])
    key = file_list_key("shop", "u1", digest.sha256)
    store.write(key, store.read(key).replace(b"\t2\t", b"\t8\t"))
    with pytest.raises(DamageError, match=f"{key}: its sha256 is "):
        lists.files(digest.sha256)
    store.delete(key)
    with pytest.raises(DamageError, match=f"{key}: it is missing"):
        lists.files(digest.sha256)
