"""The form of a list of files: what is written is read again."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelake.lake.cut import FilesDigest, ProvenFile
from tidelake.lake.proof.file_list import Part, digest_of, read, written

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


def test_a_line_of_a_part_has_its_sums() -> None:
    part = Part("s3://b/t/b.parquet", 2, FilesDigest(sha256="ef" * 32, files=300, size=120, rows=-5, unproven=1))
    content = written([part, DELETES])
    assert content.splitlines()[1] == f"s3://b/t/b.parquet\t{'ef' * 32}\t120\t-5\tlist\t300\t1\t2".encode()
    assert read(content) == [DELETES, part]
    found = digest_of(content, [DELETES, part])
    assert (found.files, found.size, found.rows, found.unproven) == (301, 140, -7, 2)
