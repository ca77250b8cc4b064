"""Archives that are not what they should be, each with the sentence that a person reads; what is sound lands whole."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tests.conftest import FreshUri
from tests.land.archive import HOUR, TOPIC, archive, contents, lake, landed, make_feed, manifest, messages, put
from tidelake.config.feed import Feed
from tidelake.errors import LeaseError, StorageError, TidelakeError
from tidelake.io.storage import Store
from tidelake.land import land_hour

KEY = r"shop/dt=2026-01-05/hr=10/shop\+1\+0{20}\.jsonl\.gz"


def filled(root: Path | str) -> Feed:
    feed = make_feed(root)
    put(feed, 0, messages(0, 29))
    put(feed, 1, messages(0, 29, "w"))
    return feed


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda data: data[: len(data) // 2], rf"BAD_OBJECT: {KEY}: .*Truncated.*; the object is incomplete .* land the hour again"),
        (lambda data: data[:-1], rf"BAD_OBJECT: {KEY}: .*Truncated.*land the hour again"),
        (lambda data: data[:15], rf"BAD_OBJECT: {KEY}: .*land the hour again"),
        (lambda data: data[:3], rf"BAD_OBJECT: {KEY}: .*land the hour again"),
        (gzip.decompress, rf"BAD_OBJECT: {KEY}: the name says gzip, the first bytes are 7b 22 .* \(none\); .* land the hour again"),
        (lambda data: pa.compress(gzip.decompress(data), "zstd", asbytes=True), rf"BAD_OBJECT: {KEY}: the name says gzip, .*\(zstd\)"),
        (lambda data: data + b"behind", rf"BAD_OBJECT: {KEY}: cannot be decompressed: .*land the hour again"),
        (lambda data: gzip.compress(data, mtime=0), rf"(ARCHIVE_LAYOUT|DAMAGED_OBJECT): {KEY}"),
    ],
    ids=["half", "a byte short", "the head only", "less than a head", "not zipped", "another codec", "more behind", "zipped twice"],
)
def test_an_object_that_cannot_be_read_is_named_with_what_to_do(spoil: Callable[[bytes], bytes], problem: str, tmp_path: Path) -> None:
    feed = filled(tmp_path)
    key = put(feed, 1, messages(0, 29, "w"))
    sound = archive(feed).read(key)
    archive(feed).write(key, spoil(sound))
    with pytest.raises(TidelakeError, match=problem):
        land_hour(feed, HOUR)
    assert [info.key for info in lake(feed).objects("manifests/")] == []
    archive(feed).write(key, sound)
    assert land_hour(feed, HOUR).messages == 60


def test_empty_files_are_no_objects_and_what_they_should_hold_is_a_gap(tmp_path: Path) -> None:
    feed = filled(tmp_path)
    archive(feed).write(f"shop/dt=2026-01-05/hr=10/shop+0+{30:020d}.jsonl.gz", b"")
    assert (land_hour(feed, HOUR).messages, len(manifest(feed).sources)) == (60, 2)
    put(feed, 0, messages(40, 49))
    with pytest.raises(TidelakeError, match=r"GAP shop\[0\]@30: .*offsets 30–39 are missing \(10 messages\); restore the missing file"):
        land_hour(feed, HOUR)


def test_timestamps_of_other_hours_land_with_the_hour_of_their_folder_unchanged(tmp_path: Path) -> None:
    feed = make_feed(tmp_path)
    skewed = [m._replace(timestamp_ms=m.timestamp_ms + hours * 3_600_000) for m, hours in zip(messages(0, 9), range(-5, 5), strict=True)]  # type: ignore[operator]
    put(feed, 0, skewed)
    put(feed, 1, messages(0, 9))
    assert land_hour(feed, HOUR).messages == 20
    found = manifest(feed)
    assert landed(feed, found, tmp_path)[TOPIC, 0] == skewed
    facts = found.partitions[TOPIC][0]
    seen = [datetime.fromtimestamp((ms or 0) / 1000, UTC).hour for ms in (facts.min_timestamp_ms, facts.max_timestamp_ms)]
    assert seen == [5, 14]


@pytest.mark.parametrize("gone", [False, True])
def test_an_object_replaced_by_one_of_the_same_size_or_gone_between_listing_and_reading_is_not_recorded(
    gone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = filled(tmp_path)
    key = put(feed, 1, messages(0, 29, "w"), zipped=False)
    archive(feed).delete(f"{key}.gz")
    download = Store.download

    def replaced(store: Store, wanted: str, path: Path) -> str:
        if wanted == key and gone:
            archive(feed).delete(key)
        elif wanted == key:
            archive(feed).write(key, archive(feed).read(key)[::-1][::-1])
        return download(store, wanted, path)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "download", replaced)
        with pytest.raises(StorageError, match=r"SOURCE_CHANGED: .* changed while the hour was landed; .*land the hour again"):
            land_hour(feed, HOUR)
    assert [info.key for info in lake(feed).objects("manifests/")] == []


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(n, marks=pytest.mark.long) for n in range(3, 13))])
def test_landers_at_once_agree_or_say_so_and_nothing_is_there_twice(seed: int, s3: FreshUri, tmp_path: Path) -> None:
    """Each begins a little later than the other by a die, and the archive grows once meanwhile or not at all."""
    feed, die = filled(s3("landers")), random.Random(seed)
    grows, calls = die.random() < 0.5, iter(range(100))

    def late(*_: int) -> None:
        if grows and next(calls) == 1:
            put(feed, 1, messages(30, 34, "w"))

    def land(_: int) -> int | str:
        try:
            return land_hour(feed, HOUR, late).messages
        except (LeaseError, StorageError) as e:
            return e.code

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(land, range(3)))
    expected = 65 if grows else 60
    assert set(found) <= {60, expected, "LANDED_MEANWHILE", "SOURCE_CHANGED"}, (seed, found)
    assert land_hour(feed, HOUR).messages == expected
    rows = landed(feed, manifest(feed), tmp_path)
    assert rows[TOPIC, 0] == messages(0, 29)
    assert rows[TOPIC, 1] == messages(0, expected - 31, "w")
    assert len({item.key for item in manifest(feed).objects}) == len(manifest(feed).objects) == 2
    assert set(contents(lake(feed))) >= {item.key for item in manifest(feed).objects}
