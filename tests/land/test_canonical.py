"""The same messages land as the same bytes, however the archive is cut into objects."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.archives.objects import Message
from tests.land.archive import HOUR, contents, lake, landed, make_feed, manifest, messages, put
from tests.searches import examples
from tidelake.land import land_hour
from tidelake.land.store.objects import cuts

SMALL = {
    "tidelake.land.store.objects.GROUP_BYTES": 300,
    "tidelake.land.store.objects.GROUP_MESSAGES": 7,
    "tidelake.land.store.objects.OBJECT_BYTES": 900,
    "tidelake.archives.readers.lines.BATCH_BYTES": 400,
}
payloads = st.none() | st.binary(max_size=120)


@st.composite
def splits(draw: st.DrawFn) -> tuple[list[Message], list[list[Message]]]:
    """Messages with ascending offsets, and objects that together hold each of them at least once, in any order."""
    offsets = draw(st.lists(st.integers(0, 300), unique=True, min_size=1, max_size=60).map(sorted))
    stamps = st.none() | st.integers(0, 2_000_000_000_000)
    whole = [Message(o, draw(payloads), draw(payloads), draw(stamps), []) for o in offsets]
    again = draw(st.lists(st.sampled_from(whole), max_size=10))
    shuffled = draw(st.permutations(whole + again))
    ends = sorted(draw(st.sets(st.integers(1, len(shuffled)), max_size=5)) | {len(shuffled)})
    return whole, [shuffled[a:b] for a, b in zip([0, *ends], ends, strict=False)]


def land(root: Path, parts: list[list[Message]]) -> tuple[dict[str, bytes], list[Message]]:
    """The canonical objects of one partition, and the messages in them."""
    feed = make_feed(root, partitions=1, policy={"on_gap": "warn"})
    for number, part in enumerate(parts):
        put(feed, 0, part, name=number)
    land_hour(feed, HOUR)
    objects = {key: data for key, data in contents(lake(feed)).items() if key.startswith("landed/")}
    return objects, landed(feed, manifest(feed), root)["shop", 0]


@settings(max_examples=examples(25))
@given(splits())
def test_any_split_of_the_messages_into_objects_lands_as_the_same_bytes(case: tuple[list[Message], list[list[Message]]]) -> None:
    whole, parts = case
    patches = [mock.patch(name, value) for name, value in SMALL.items()]
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        for patch in patches:
            patch.start()
        try:
            reference, in_order = land(Path(one), [whole])
            objects, found = land(Path(other), parts)
        finally:
            mock.patch.stopall()
    assert in_order == whole
    assert found == whole
    assert objects == reference


def test_objects_and_row_groups_end_where_their_bytes_are_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SMALL.items():
        monkeypatch.setattr(name, value)
    feed = make_feed(tmp_path, partitions=1)
    put(feed, 0, [Message(i, b"x" * 100) for i in range(20)])
    assert land_hour(feed, HOUR).objects_written == 3
    found = manifest(feed).objects
    assert [(o.first, o.last, o.count, o.bytes) for o in found] == [(0, 8, 9, 900), (9, 17, 9, 900), (18, 19, 2, 200)]
    lake(feed).download(found[0].key, tmp_path / "object")
    metadata = pq.ParquetFile(tmp_path / "object").metadata
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [3, 3, 3]


def test_an_hour_larger_than_an_object_and_a_batch_lands_whole(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, partitions=1)
    whole = [Message(i, bytes([i % 251]) * 20_000) for i in range(4_000)]
    put(feed, 0, whole[1::2], name=1, zipped=False)
    put(feed, 0, whole[::2], name=0, zipped=False)
    report = land_hour(feed, HOUR)
    assert (report.messages, report.bytes, report.objects_written) == (4_000, 80_000_000, 2)
    assert [(o.first, o.last) for o in manifest(feed).objects] == [(0, 3_354), (3_355, 3_999)]
    assert landed(feed, manifest(feed), tmp_path)["shop", 0] == whole


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 100), st.none() | st.integers(1, 5))
def test_pieces_follow_each_other_and_are_as_large_as_allowed(sizes: list[int], most_bytes: int, most: int | None) -> None:
    found = list(cuts(np.array(sizes, np.int64), most_bytes, most))
    assert [i for begin, end in found for i in range(begin, end)] == list(range(len(sizes)))
    for begin, end in found:
        fits = sum(sizes[begin:end]) <= most_bytes and (most is None or end - begin <= most)
        assert fits or end - begin == 1
        could_grow = end < len(sizes) and sum(sizes[begin : end + 1]) <= most_bytes and (most is None or end - begin < most)
        assert not could_grow


def test_headers_land_as_they_are(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, partitions=1)
    whole = [Message(0, b"a", headers=[("k", b"v"), ("n", None)]), Message(1, b"b", headers=[]), *messages(2, 3)]
    put(feed, 0, whole[::-1])
    land_hour(feed, HOUR)
    assert landed(feed, manifest(feed), tmp_path)["shop", 0] == whole


def test_a_lake_s_own_objects_land_again_as_the_same_bytes(tmp_path: Path) -> None:
    feed = make_feed(tmp_path)
    put(feed, 0, [Message(0, b"a", headers=[("k", b"v"), ("n", None)]), Message(1, None, b"k"), *messages(2, 30)])
    put(feed, 1, messages(0, 9))
    land_hour(feed, HOUR)
    again = make_feed(tmp_path / "again", source={"uri": f"{tmp_path}/lake/landed/small", "layout": "canonical"})
    assert land_hour(again, HOUR).messages == 41
    assert [o.sha256 for o in manifest(again).objects] == [o.sha256 for o in manifest(feed).objects]
