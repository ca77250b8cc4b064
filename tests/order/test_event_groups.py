"""Row groups of the events table, joined: all rows, in their order, in tables that are not too large."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.searches import examples
from tidelake.order.arrow.event_groups import coded, joined

GROUPS = st.lists(st.lists(st.sampled_from(["orders", "items", "a", None]), min_size=1, max_size=9), max_size=8)


def group(tables: Sequence[str | None]) -> pa.Table:
    """A group as it is read: its words are a dictionary of its own."""
    numbers = pa.array(range(len(tables)), pa.int64())
    return pa.table({"table": pa.array(tables, pa.string()).dictionary_encode(), "offset": numbers})


@given(GROUPS, st.integers(0, 400))
@settings(max_examples=examples(60), deadline=None)
def test_joined_groups_have_the_same_rows(given: list[list[str | None]], nbytes: int) -> None:
    groups = [group(tables) for tables in given]
    found = list(joined(iter(groups), nbytes))
    assert [r for t in found for r in t.to_pylist()] == [r for t in groups for r in t.to_pylist()]
    for one in found:
        codes, words = coded(one, "table")
        assert [words[c] if c >= 0 else None for c in codes] == one["table"].to_pylist(), "one dictionary for all groups"


def test_groups_are_joined_up_to_a_size() -> None:
    groups = [group(["orders"] * n) for n in (4, 4, 4, 90, 4)]
    small = groups[0].nbytes
    assert [t.num_rows for t in joined(groups, 2 * small)] == [8, 4, 90, 4]
    assert [t.num_rows for t in joined(groups, 1)] == [4, 4, 4, 90, 4], "a group is never cut"


def test_groups_of_another_form_stay_apart() -> None:
    plain, other = group(["orders"]), group(["items"])
    other = other.set_column(1, "offset", other["offset"].cast(pa.int32()))
    assert [t.num_rows for t in joined([plain, plain, other, other, plain])] == [2, 2, 1]
