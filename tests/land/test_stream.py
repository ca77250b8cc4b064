"""Messages that come in order are cut into the same objects however many come at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelake.event import MESSAGE
from tidelake.land import objects, stream
from tidelake.land.objects import Draft, cuts, described, write_object
from tidelake.land.stream import ObjectCutter

OBJECT, GROUP, MOST = 100, 30, 5


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("OBJECT_BYTES", OBJECT), ("GROUP_BYTES", GROUP), ("GROUP_MESSAGES", MOST)):
        monkeypatch.setattr(stream, name, value)


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


def drafts(whole: pa.RecordBatch, pieces: list[int]) -> Iterator[Draft]:
    with TemporaryDirectory() as folder:
        yield from _drafts(Path(folder), whole, pieces)
        assert list(Path(folder).iterdir()) == []


def _drafts(folder: Path, whole: pa.RecordBatch, pieces: list[int]) -> Iterator[Draft]:
    cutter = ObjectCutter(folder, "small", "2026-01-05T10", "shop", 0)
    at = 0
    for piece in [*pieces, len(whole)]:
        if part := whole.slice(at, piece):
            yield from (draft() for draft in cutter.add(part))
        at = min(at + piece, len(whole))
    yield from (draft() for draft in cutter.rest())


def shape(several: list[Draft]) -> list[list[int]]:
    return [[len(group) for group in draft.groups] for draft in several]


@given(
    st.lists(st.sampled_from([0, 1, 5, 10, 29, 30, 31, 99, 100, 101, 250]), min_size=1, max_size=60),
    st.lists(st.integers(1, 9), max_size=30),
)
def test_objects_and_row_groups_end_where_cutting_all_messages_at_once_ends_them(values: list[int], pieces: list[int]) -> None:
    whole = batch(values)
    sizes = np.array([size + (2 if i % 3 == 0 else 0) for i, size in enumerate(values)])
    wanted = [[end - begin for begin, end in cuts(sizes[a:b], GROUP, MOST)] for a, b in cuts(sizes, OBJECT)]
    found = list(drafts(whole, pieces))
    assert shape(found) == wanted
    assert np.concatenate([draft.offsets for draft in found]).tolist() == list(range(len(values)))
    assert np.concatenate([draft.sizes for draft in found]).tolist() == sizes.tolist()
    assert [row for draft in found for group in draft.groups for row in group.to_pylist()] == [
        {name: row[name] for name in row if name not in ("topic", "partition")} for row in whole.to_pylist()
    ]


def test_the_bytes_of_an_object_do_not_show_how_many_messages_came_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OBJECT_BYTES", "GROUP_BYTES", "GROUP_MESSAGES"):
        monkeypatch.setattr(stream, name, getattr(objects, name))
    whole = batch([i % 4000 for i in range(6000)])  # row groups of several pages
    keys = set()
    for pieces in ([], [101] * 60, [997] * 7, [3000, 1, 2999]):
        written = []
        for draft in drafts(whole, pieces):
            write_object(tmp_path / "object", draft)
            written.append(described(tmp_path / "object", draft).key)
        keys.add(tuple(written))
    assert [len(written) for written in keys] == [1]


def test_the_facts_tell_what_is_gone_from_what_was_never_there(tmp_path: Path) -> None:
    cutter = ObjectCutter(tmp_path, "small", "2026-01-05T10", "shop", 0)
    for first, count in ((12, 3), (15, 2), (20, 1)):
        list(cutter.add(batch([5] * count, first)))
    facts = cutter.facts(5, 10, 25)
    assert (facts.first, facts.last, facts.count, facts.bytes) == (12, 20, 6, 6 * 5 + 2 * 2)
    assert (facts.ranges, facts.gaps, facts.start, facts.next) == (((12, 16), (20, 20)), (), 5, 25)
    assert (facts.expired, facts.legal_gaps) == (((5, 9),), ((10, 11), (17, 19), (21, 24)))
    assert (facts.min_timestamp_ms, facts.max_timestamp_ms) == (1013, 1020)
    assert facts.covered == ((10, 24),)


def test_the_facts_of_nothing(tmp_path: Path) -> None:
    facts = ObjectCutter(tmp_path, "small", "2026-01-05T10", "shop", 0).facts(7, 7, 7)
    assert (facts.first, facts.count, facts.ranges, facts.legal_gaps, facts.expired, facts.covered) == (None, 0, (), (), (), ())
    assert (facts.start, facts.next, facts.min_timestamp_ms) == (7, 7, None)
