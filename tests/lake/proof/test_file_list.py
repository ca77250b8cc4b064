"""A list of files: what is written is read again, and other bytes are noticed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelake.config.lake_paths import file_list_key
from tidelake.errors import DamageError
from tidelake.io.storage import open_store
from tidelake.lake.cut import ProvenFile
from tidelake.lake.proof.file_list import digest_of, find_list, keep_list, read, written

DATA = ProvenFile(path="s3://b/t/b.parquet", sha256="ab" * 32, size=100, rows=7)
DELETES = ProvenFile(path="s3://b/t/a-deletes.parquet", sha256=None, size=20, rows=2, deletes=True)
FILES = st.builds(
    ProvenFile,
    path=st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1),
    sha256=st.none() | st.just("cd" * 32),
    size=st.integers(0, 1 << 60),
    rows=st.integers(0, 1 << 60),
    deletes=st.booleans(),
)


def test_a_list_has_a_line_a_file_sorted_by_path() -> None:
    expected = f"s3://b/t/a-deletes.parquet\t-\t20\t2\tdeletes\ns3://b/t/b.parquet\t{'ab' * 32}\t100\t7\tdata\n"
    assert written([DATA, DELETES]) == expected.encode()


@given(st.lists(FILES, unique_by=lambda f: f.path, max_size=6), st.randoms())
def test_a_list_is_read_as_it_was_written_in_any_order(files: list[ProvenFile], random: object) -> None:
    shuffled = list(files)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert written(shuffled) == written(files)
    assert read(written(files)) == sorted(files, key=lambda f: f.path.encode())


def test_the_digest_counts_rows_without_deleted_ones_and_files_without_a_sum() -> None:
    found = digest_of(written([DATA, DELETES]), [DATA, DELETES])
    assert (found.files, found.size, found.rows, found.unproven) == (2, 120, 5, 1)
    assert found.sha256 == hashlib.sha256(written([DATA, DELETES])).hexdigest()


def test_a_list_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind 'more'"):
        read(b"a\t-\t1\t1\tmore\n")


def test_a_kept_list_is_found_by_its_sum_and_a_changed_one_is_named(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    digest = keep_list(store, "shop", "u1", [DATA])
    assert find_list(store, "shop", "u1", digest.sha256) == [DATA]
    assert find_list(store, "shop", "u2", digest.sha256) is None
    key = file_list_key("shop", "u1", digest.sha256)
    store.write(key, store.read(key).replace(b"\t7\t", b"\t8\t"))
    with pytest.raises(DamageError, match=f"{key}: its sha256 is "):
        find_list(store, "shop", "u1", digest.sha256)
