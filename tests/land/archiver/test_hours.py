"""A partition is cut into objects by hour, whatever the timestamps do and wherever archiving is cut short."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.land.archiver.topics import batch
from tidelake.land.archiver.hours import HOUR_MS, HourCutter
from tidelake.land.store import objects
from tidelake.land.store.objects import Draft

NOW = 8  # the clock's hour, from 1970 on


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("OBJECT_BYTES", 100), ("GROUP_BYTES", 30), ("GROUP_MESSAGES", 5)):
        monkeypatch.setattr(objects, name, value)


def hours_of(hours: Sequence[int | None], opened: str | None = None) -> list[int]:
    """The hours that messages with timestamps of these hours belong to."""
    with TemporaryDirectory() as folder:
        cutter = HourCutter(Path(folder), "small", "shop", 0, 0, opened)
        found: list[int] = cutter.hours_of(batch(range(len(hours)), hours), NOW * HOUR_MS).tolist()
        return found


@pytest.mark.parametrize(
    ("opened", "hours", "belong"),
    [
        (None, [3, 3, 4, 3, 6], [3, 3, 4, 4, 6]),
        ("1970-01-01T05", [3, 4, 5, 6, 5], [5, 5, 5, 6, 6]),
        (None, [3, NOW + 100, 4], [3, NOW, NOW]),
        ("1970-01-01T09", [3, NOW + 100, NOW], [9, 9, 9]),
        (None, [None, 3, None, 5, None], [3, 3, 3, 5, 5]),
        (None, [None, None], [NOW, NOW]),
        ("1970-01-01T02", [None, 3], [2, 3]),
        (None, [0, 0], [0, 0]),
    ],
    ids=["forward", "late", "future", "clock behind the archive", "no timestamps", "none at all", "none in an hour", "1970"],
)
def test_hours_go_forward_only_and_not_beyond_the_clock(opened: str | None, hours: list[int | None], belong: list[int]) -> None:
    assert hours_of(hours, opened) == belong


HOURS = st.none() | st.integers(0, NOW + 2)
STEPS = st.lists(st.tuples(st.integers(1, 3), HOURS), min_size=1, max_size=40).filter(lambda steps: steps[0][1] is not None)


@given(steps=STEPS, trailing=st.integers(0, 3), data=st.data())
def test_every_offset_is_archived_once_and_hours_are_in_order_wherever_it_is_cut(
    steps: list[tuple[int, int | None]], trailing: int, data: st.DataObject
) -> None:
    """steps: how far each message's offset is behind the one before, and its hour. Offsets between are markers, as are some at the end."""
    offsets = [sum(step for step, _ in steps[: i + 1]) - 1 for i in range(len(steps))]
    whole, end = batch(offsets, [hour for _, hour in steps]), offsets[-1] + 1 + trailing
    durable, stored = list[Draft](), list[pa.Table]()
    runs, begin = 0, 0
    hour: str | None = None
    while begin <= offsets[-1]:
        runs += 1
        with TemporaryDirectory() as folder:
            made = _run(HourCutter(Path(folder), "small", "shop", 0, begin, hour), whole, end, data)
            killed = len(made) and runs < 20 and data.draw(st.booleans(), "killed")
            made = made[: data.draw(st.integers(0, len(made)), "durable")] if killed else made
            durable += made
            stored += [pq.read_table(draft.path) for draft in made]
        if durable:
            assert durable[-1].covers
            begin, hour = durable[-1].covers[1] + 1, durable[-1].hour
    covered = [draft.covers for draft in durable if draft.covers]
    assert len(covered) == len(durable)
    assert covered[0][0] == 0
    assert all(after[0] == before[1] + 1 for before, after in pairwise(covered))
    assert covered[-1][1] in (offsets[-1], end - 1)
    highest = [min(max(hour or 0 for _, hour in steps[: i + 1]), NOW) for i in range(len(steps))]
    assert [draft.hour for draft in durable for _ in range(draft.events)] == [f"1970-01-01T{hour:02d}" for hour in highest]
    assert pa.concat_tables(stored).column("offset").to_pylist() == offsets
    assert pa.concat_tables(stored).column("value").to_pylist() == whole.column("value").to_pylist()
    assert all(c[0] <= draft.first <= draft.last <= c[1] for c, draft in zip(covered, durable, strict=True))


def _run(cutter: HourCutter, whole: pa.RecordBatch, end: int, data: st.DataObject) -> list[Draft]:
    """What one run makes of what is behind its beginning: it reads pieces, sometimes spills, sometimes closes the object."""
    left = whole.filter(pc.greater_equal(whole.column("offset"), cutter.begin))
    made, position = list[Draft](), cutter.begin
    while len(left):
        piece = left.slice(0, data.draw(st.integers(1, len(left)), "piece"))
        left = left.slice(len(piece))
        made += cutter.add(piece, cutter.hours_of(piece, NOW * HOUR_MS))
        position = piece.column("offset")[-1].as_py() + 1 if len(left) else end
        if data.draw(st.booleans(), "spill"):
            cutter.spill()
            assert cutter.held == 0
        if data.draw(st.booleans(), "roll"):
            made += cutter.rest(position)
            assert not cutter.unfinished
            assert list(cutter.rest(position)) == []
    return [*made, *cutter.rest(position)]
