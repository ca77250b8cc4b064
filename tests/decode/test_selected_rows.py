"""Selected rows are those of a filter, whatever the runs; slices only where they are most of the batch."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelake.decode.selected_rows import in_one, selected


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 200)), max_size=12))
def test_they_are_the_rows_of_a_filter_in_order(runs: list[tuple[bool, int]]) -> None:
    mask = pa.array([keep for keep, many in runs for _ in range(many)], pa.bool_())
    batch = pa.record_batch({"n": pa.array(range(len(mask)), pa.int64())})
    found = selected(batch, mask)
    assert in_one(found).equals(batch.filter(mask))
    assert sum(b.num_rows for b in found) == mask.true_count


@pytest.mark.parametrize(
    ("runs", "sizes", "copied"),
    [
        ([(True, 1000)], [1000], False),
        ([(True, 900), (False, 1), (True, 99)], [900, 99], False),
        ([(False, 900), (True, 100)], [100], True),  # few rows would keep the whole batch in memory
        ([(True, 60), (False, 1)] * 10, [600], True),  # short runs
        ([], [0], True),
    ],
)
def test_long_runs_are_slices_and_few_rows_are_copied(runs: list[tuple[bool, int]], sizes: list[int], *, copied: bool) -> None:
    mask = pa.array([keep for keep, many in runs for _ in range(many)], pa.bool_())
    batch = pa.record_batch({"n": pa.array(range(len(mask)), pa.int64())})
    found = selected(batch, mask)
    assert [b.num_rows for b in found] == sizes
    where = {b.column("n").buffers()[1].address for b in found if b.num_rows}
    assert where.isdisjoint({batch.column("n").buffers()[1].address}) is copied
