"""What comes in order is landed as what has to be sorted: the same objects, the same facts, nothing else left in the lake."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.archives.objects import Message
from tests.land.archive import HOUR, archive, contents, lake, make_feed, manifest, messages, put
from tests.searches import examples
from tidelake.errors import OrderError, TidelakeError
from tidelake.io.storage import open_store
from tidelake.land import land_hour, partition
from tidelake.land.store import objects

LOCAL = type(open_store("/"))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("OBJECT_BYTES", 40), ("GROUP_BYTES", 15), ("GROUP_MESSAGES", 3)):
        monkeypatch.setattr(objects, name, value)


def outcome(root: str, name: str) -> tuple[dict[str, bytes], Any, str]:
    """What landing leaves in a lake of this name, but for the manifest's bytes; its facts; what was said."""
    feed, said = make_feed(root, partitions=1, policy={"on_gap": "warn"}, lake={"uri": f"{root}/{name}"}), ""
    try:
        land_hour(feed, HOUR)
    except TidelakeError as e:
        said = str(e)
    left = {key: data for key, data in contents(lake(feed)).items() if key.startswith("landed/")}
    return left, manifest(feed).model_dump(), said


@st.composite
def deliveries(draw: st.DrawFn) -> list[tuple[int, list[int]]]:
    """Objects by name and offsets: in order with holes and markers between, or with repeats, overlaps, and names that are not true."""
    orderly = draw(st.booleans())
    out, at = list[tuple[int, list[int]]](), 0
    for _ in range(draw(st.integers(1, 6))):
        steps = draw(st.lists(st.integers(1, 3), min_size=1, max_size=12))
        offsets = [at := at + step for step in steps]
        if not orderly and draw(st.booleans()):
            offsets = draw(st.permutations(offsets)) if draw(st.booleans()) else [*offsets, offsets[0]]
        out.append((offsets[0] if orderly or draw(st.booleans()) else draw(st.integers(0, at + 3)), offsets))
        at = at if orderly else max(0, at - draw(st.integers(0, 6)))
    return list({name: (name, offsets) for name, offsets in out}.values())


@settings(max_examples=examples(80))
@given(deliveries(), st.booleans())
def test_both_ways_leave_the_same(delivered: list[tuple[int, list[int]]], other: bool) -> None:
    with TemporaryDirectory() as root:
        for number, (name, offsets) in enumerate(delivered):
            text = "w" if other and number == 1 else "v"
            content = [Message(o, f"{text}{o}".encode(), b"k%d" % o, 1_767_607_200_000 + o) for o in offsets]
            put(make_feed(root), 0, content, name=name)
        ordered = outcome(root, "ordered")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(partition, "_may_be_in_order", lambda *_: False)
            assert outcome(root, "spooled") == ordered
    left, facts, _ = ordered
    assert sorted(left) == sorted(item["key"] for item in facts["objects"])


def test_an_archive_in_order_is_never_spooled_and_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed, told = make_feed(tmp_path, partitions=1), list[tuple[int, int]]()
    sizes = [len(archive(feed).read(put(feed, 0, messages(first, first + 9)))) for first in (0, 10, 20)]
    monkeypatch.setattr(partition, "spooled", None)
    land_hour(feed, HOUR, lambda done, total: told.append((done, total)))
    assert told == [(sum(sizes[: i + 1]), sum(sizes)) for i in range(3)]
    assert manifest(feed).partitions["shop"][0].ranges == ((0, 29),)


def test_an_overlap_is_seen_before_an_object_has_it_and_counts_once_in_the_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, told, written = make_feed(tmp_path, partitions=1), list[tuple[int, int]](), set[str]()
    upload = LOCAL.upload
    monkeypatch.setattr(LOCAL, "upload", lambda self, key, path: [written.add(key), upload(self, key, path)])
    sizes = [len(archive(feed).read(put(feed, 0, messages(first, first + 9, text)))) for first, text in ((0, "v"), (10, "v"), (15, "w"))]
    with pytest.raises(OrderError, match=r"^OVERLAP_CONFLICT shop\[0\]@15: .* offsets 15–19 have different contents"):
        land_hour(feed, HOUR, lambda done, total: told.append((done, total)))
    assert told == [(sum(sizes[: i + 1]), sum(sizes)) for i in range(3)]
    assert manifest(feed).partitions["shop"][0].ranges == ((0, 14), (20, 24))
    assert written == {o.key for o in manifest(feed).objects}


def test_objects_of_a_beginning_that_was_none_are_removed(tmp_path: Path) -> None:
    feed = make_feed(tmp_path, partitions=1)
    put(feed, 0, messages(6, 39))
    put(feed, 0, messages(0, 5), name=50)  # its name is not true
    report = land_hour(feed, HOUR)
    assert report.messages == 40
    assert sorted(key for key in contents(lake(feed)) if key.startswith("landed/")) == sorted(o.key for o in manifest(feed).objects)
