"""Names that producers give to changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelake.history.source_names import LAST_ROW, PLACE_WIDTH, SourceName, binlog_of, read_source_name, shown, source_name, source_names

BASES = st.text(st.characters(codec="ascii", exclude_characters="/:\n"), min_size=1, max_size=12)
NAMES = st.builds(
    SourceName,
    st.integers(0, (1 << 32) - 1),
    BASES,
    st.integers(0, 10**10 - 1),
    st.integers(0, (1 << 63) - 1),
    st.integers(0, LAST_ROW),
)


def text_of(name: SourceName) -> str:
    text = source_name(name.server, f"{name.base}.{name.file:06}", name.position, name.row)
    assert text is not None
    return text


def test_a_name_says_server_file_position_and_row_at_fixed_width() -> None:
    assert source_name(1, "mysql-bin.000012", 4567, 3) == "1/mysql-bin.0000000012:0000000000000004567:0000000003"


@given(NAMES)
def test_a_name_is_read_back_from_its_text(name: SourceName) -> None:
    assert read_source_name(text_of(name)) == name
    assert binlog_of(text_of(name)) == f"{name.server}/{name.base}"
    assert len(text_of(name)) == len(binlog_of(text_of(name))) + PLACE_WIDTH


@given(NAMES, NAMES)
def test_texts_of_one_binlog_sort_as_its_changes_do(one: SourceName, other: SourceName) -> None:
    other = SourceName(one.server, one.base, other.file, other.position, other.row)
    assert (text_of(one) < text_of(other)) == (one < other)


def test_the_file_after_number_999999_comes_after_it() -> None:
    before, after = source_name(1, "binlog.999999", 4, 0), source_name(1, "binlog.1000000", 4, 0)
    assert before is not None
    assert after is not None
    assert before < after


@pytest.mark.parametrize(
    ("server", "file", "position", "row"),
    [
        (1, "", 4, 0),
        (1, "N/A", 4, 0),
        (1, "binlog", 4, 0),
        (1, "binlog.", 4, 0),
        (1, ".000001", 4, 0),
        (1, "a/b.000001", 4, 0),
        (1, "a:b.000001", 4, 0),
        (1, "binlog.00000000001", 4, 0),
        (1, "binlog.٠٠١", 4, 0),
        (-1, "binlog.000001", 4, 0),
        (1, "binlog.000001", -1, 0),
        (1, "binlog.000001", 1 << 63, 0),
        (1, "binlog.000001", 4, -1),
        (1, "binlog.000001", 4, LAST_ROW + 1),
    ],
)
def test_what_does_not_name_one_change_has_no_name(server: int, file: str, position: int, row: int) -> None:
    assert source_name(server, file, position, row) is None


@given(st.lists(st.tuples(st.integers(-1, 3), *[st.sampled_from([-1, 0, 7, (1 << 63) - 1])] * 3), max_size=5))
def test_many_names_are_those_of_one_by_one(many: list[tuple[int, int, int, int]]) -> None:
    files = ["mysql-bin.000012", "", "b\ufffd.000001", "binlog.1000000"]
    file, server, position, row = (np.array([m[i] for m in many], np.int64) for i in range(4))
    found = source_names(files, file.astype(np.int32), server, position, row)
    assert found.to_pylist() == [source_name(s, files[f] if f >= 0 else "", p, r) for f, s, p, r in many]


@pytest.mark.parametrize("text", ["", "1/binlog.000001:4:0", "x/binlog.0000000001:0000000000000000004:0000000000"])
def test_another_text_is_no_name(text: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a change in a binlog, expected server"):
        read_source_name(text)


def test_a_name_is_shown_as_mysql_s_users_know_it() -> None:
    assert shown("1/mysql-bin.0000000012:0000000000000004567:0000000003") == "mysql-bin.000012:4567, row 3, server 1"
    assert shown(f"7/binlog.0001000000:0000000000000000004:{LAST_ROW}") == "binlog.1000000:4, last row, server 7"
