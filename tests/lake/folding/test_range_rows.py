"""A range of keys: every key is in one range, and row groups of other ranges are not read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lake.folding.test_file_rows import column, wanted_of, with_id
from tidelake.lake.folding.file_rows import FileRef, opened
from tidelake.lake.folding.range_rows import LeadingRange, RangeRows, Span, key_ranges, rows_read

NUMBERS = st.integers(-(2**63), 2**63 - 1)
SPANS = st.lists(st.tuples(st.integers(1, 10**7), NUMBERS, NUMBERS).map(lambda s: (s[0], min(s[1:]), max(s[1:]))), max_size=6)


@given(SPANS, st.integers(1, 9), NUMBERS)
def test_every_value_is_in_one_range(spans: list[Span], many: int, value: int) -> None:
    ranges = key_ranges("id", spans, many)
    assert len(ranges) <= many
    if ranges:
        assert len(ranges) > 1
        inside = [r for r in ranges if (r.low is None or r.low <= value) and (r.high is None or value < r.high)]
        assert len(inside) == 1
        assert all(a.high == b.low for a, b in pairwise(ranges))


@given(SPANS, st.integers(2, 9))
def test_a_file_is_read_for_every_range_that_it_may_have_rows_of(spans: list[Span], many: int) -> None:
    if ranges := key_ranges("id", spans, many):
        met = [(n, r) for n, low, high in spans for r in ranges if (r.low is None or r.low <= high) and (r.high is None or low < r.high)]
        assert rows_read(spans, ranges) == sum(n for n, _ in met)


def test_ranges_have_about_as_many_rows() -> None:
    cuts = [r.high for r in key_ranges("id", [(100, 0, 99), (300, 0, 99), (200, 100, 199)], 3)]
    assert cuts == [50, 100, None]
    assert key_ranges("id", [(100, 0, 99)], 1) == []
    assert key_ranges("id", [(100, 7, 7)], 4) == []
    assert key_ranges("id", [], 4) == []


@pytest.mark.parametrize(
    ("low", "high", "alive", "read"),
    [
        (None, 3, [1, 2, None], [1, 2, None, 3]),
        (3, 6, [3, 4, 5], [None, 3, 4, 5]),
        (6, None, [6, 7], [None, 3, 6, 7]),
        (40, None, [], [None, 3]),
    ],
)
def test_rows_of_other_ranges_do_not_count_and_their_row_groups_are_not_read(
    tmp_path: Path, low: int | None, high: int | None, alive: list[int | None], read: list[int | None]
) -> None:
    ids = pa.array([1, 2, None, 3, 4, 5, 6, 7], pa.int64())
    schema = pa.schema([with_id("id", pa.int64(), 1), with_id("ts", pa.int64(), 9)])
    pq.write_table(pa.table([ids, pa.array(range(8))], schema=schema), tmp_path / "f", row_group_size=2)
    columns = [column("id", "bigint", (1, "bigint")), column("_commit_ts", "bigint", (9, "bigint"))]
    with opened([FileRef(path="f", uri=f"{tmp_path}/f")], columns) as rows:
        mine = RangeRows(rows, LeadingRange(column="id", low=low, high=high))
        pieces = list(mine.pieces(["_commit_ts"]))
        assert [v for p in pieces for v in p.cells("id").to_pylist()] == read
        stand = [v for p in pieces for v in p.cells("id").filter(pa.array(p.alive)).to_pylist()]
        assert stand == alive
        assert (mine.count, mine.reached) == (8, len(alive))
        assert [p.first for p in mine.pieces(["id"], wanted_of(rows, 0))] == [0] * (1 in read)
        assert mine.may_hold("id", pa.array([7])).tolist() == [False, False, True, True, False, False] + [7 in read] * 2
