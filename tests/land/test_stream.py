"""Messages that come in order are cut into the same objects however many come at a time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelake.history.event import MESSAGE
from tidelake.land.store import objects
from tidelake.land.store.objects import Draft, ObjectWriter, cuts, described
from tidelake.land.store.stream import ObjectCutter

OBJECT, GROUP, MOST = 100, 30, 5


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("OBJECT_BYTES", OBJECT), ("GROUP_BYTES", GROUP), ("GROUP_MESSAGES", MOST)):
        monkeypatch.setattr(objects, name, value)


def batch(sizes: list[int], first: int = 0) -> pa.RecordBatch:
    """Messages with values of these sizes; every third has a key of two bytes as well and no timestamp, every other a header."""
    rows = [
        {
            "topic": "shop",
            "partition": 0,
            "offset": first + i,
            "timestamp_ms": None if (first + i) % 3 == 0 else 1000 + first + i,
            "key": b"kk" if (first + i) % 3 == 0 else None,
            "value": bytes([65 + (first + i) % 26]) * size,
            "headers": [{"key": "h", "value": b"x"}] if (first + i) % 2 else [],
        }
        for i, size in enumerate(sizes)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=MESSAGE)


def cutter_in(folder: Path, encoders: Executor | None = None) -> ObjectCutter:
    return ObjectCutter(folder, lambda path: ObjectWriter(path, "small", "2026-01-05T10", "shop", 0, encoders))


def drafts(folder: Path, whole: pa.RecordBatch, pieces: list[int], encoders: Executor | None = None) -> Iterator[Draft]:
    cutter, at = cutter_in(folder, encoders), 0
    for piece in [*pieces, len(whole)]:
        if part := whole.slice(at, piece):
            yield from (done() for done in cutter.add(part))
        at = min(at + piece, len(whole))
    yield from (done() for done in cutter.rest())


def groups(draft: Draft) -> list[pa.Table]:
    """The row groups of its file."""
    with pq.ParquetFile(draft.path) as file:
        return [file.read_row_group(i) for i in range(file.num_row_groups)]


@given(
    st.lists(st.sampled_from([0, 1, 5, 10, 29, 30, 31, 99, 100, 101, 250]), min_size=1, max_size=60),
    st.lists(st.integers(1, 9), max_size=30),
)
def test_objects_and_row_groups_end_where_cutting_all_messages_at_once_ends_them(values: list[int], pieces: list[int]) -> None:
    whole = batch(values)
    sizes = np.array([size + (2 if i % 3 == 0 else 0) for i, size in enumerate(values)])
    wanted = [[end - begin for begin, end in cuts(sizes[a:b], GROUP, MOST)] for a, b in cuts(sizes, OBJECT)]
    with TemporaryDirectory() as folder, ThreadPoolExecutor(2) as encoders:
        made = list(drafts(Path(folder), whole, pieces, encoders))
        found = [groups(draft) for draft in made]
        assert len(list(Path(folder).iterdir())) == len(made)
    assert [[len(group) for group in several] for several in found] == wanted
    assert [row for several in found for group in several for row in group.to_pylist()] == whole.to_pylist()
    ends = np.cumsum([0, *(sum(several) for several in wanted)]).tolist()
    assert [(d.first, d.last, d.events, d.bytes) for d in made] == [(a, b - 1, b - a, int(sizes[a:b].sum())) for a, b in pairwise(ends)]
    assert [d.timestamp_ms for d in made] == [0 if a % 3 == 0 else 1000 + a for a in ends[:-1]]
    assert all(d.nbytes > d.bytes for d in made)


def test_the_bytes_of_an_object_do_not_show_how_many_messages_came_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    whole = batch([i % 4000 for i in range(6000)])  # row groups of several pages
    keys = set()
    for pieces in ([], [101] * 60, [997] * 7, [3000, 1, 2999]):
        keys.add(tuple(described(draft).key for draft in drafts(tmp_path, whole, pieces)))
    assert [len(written) for written in keys] == [1]


def test_the_facts_tell_what_is_gone_from_what_was_never_there(tmp_path: Path) -> None:
    cutter = cutter_in(tmp_path)
    for first, count in ((12, 3), (15, 2), (20, 1)):
        list(cutter.add(batch([5] * count, first)))
    facts = cutter.live_facts(5, 10, 25)
    assert (facts.first, facts.last, facts.count, facts.bytes) == (12, 20, 6, 6 * 5 + 2 * 2)
    assert (facts.ranges, facts.gaps, facts.start, facts.next) == (((12, 16), (20, 20)), (), 5, 25)
    assert (facts.expired, facts.legal_gaps) == (((5, 9),), ((10, 11), (17, 19), (21, 24)))
    assert (facts.min_timestamp_ms, facts.max_timestamp_ms) == (1013, 1020)
    assert facts.covered == ((10, 24),)


def test_the_facts_of_nothing(tmp_path: Path) -> None:
    facts = cutter_in(tmp_path).live_facts(7, 7, 7)
    assert (facts.first, facts.count, facts.ranges, facts.legal_gaps, facts.expired, facts.covered) == (None, 0, (), (), (), ())
    assert (facts.start, facts.next, facts.min_timestamp_ms) == (7, 7, None)
