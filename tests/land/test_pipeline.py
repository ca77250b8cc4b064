"""Readers, event store and uploader: what an error on either side leaves behind, and the byte budget."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest

from tests.land.archive import HOUR, TOPIC, contents, lake, landed, make_feed, manifest, messages, put
from tidelake.config.feed import Feed
from tidelake.errors import StorageError
from tidelake.io.storage import Store, open_store
from tidelake.land import land_hour, pipeline
from tidelake.land.partition import PartitionRead
from tidelake.land.store.event_store import EventStore
from tidelake.land.store.objects import Draft


@pytest.fixture
def feed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Feed:
    """Two partitions of 30 messages, which land as five small objects each; an upload that fails is tried again at once."""
    monkeypatch.setattr(pipeline, "BACK_OFF_SECONDS", 0)
    monkeypatch.setattr("tidelake.land.store.objects.OBJECT_BYTES", 40)
    feed = make_feed(tmp_path)
    put(feed, 0, messages(0, 29))
    put(feed, 1, messages(0, 29, "w"))
    return feed


LOCAL = type(open_store("/"))


def spoil_uploads(monkeypatch: pytest.MonkeyPatch, before: Collection[int] = (), after: Collection[int] = ()) -> list[str]:
    """Calls of upload, counted from 1, fail before or after the object is written. Gives the keys of all calls."""
    calls, upload = list[str](), LOCAL.upload

    def spoiled(self: Store, key: str, path: Path) -> None:
        calls.append(key)
        if len(calls) in before:
            raise StorageError("the lake is away")
        upload(self, key, path)
        if len(calls) in after:
            raise StorageError("the answer was lost")

    monkeypatch.setattr(LOCAL, "upload", spoiled)
    return calls


def test_an_upload_that_fails_is_tried_again_without_reading_again(feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = list[str]()
    download = Store.download
    monkeypatch.setattr(Store, "download", lambda self, key, path: [reads.append(key), download(self, key, path)][1])
    calls = spoil_uploads(monkeypatch, before=[1, 5, 6, 8], after=[3])
    report = land_hour(feed, HOUR)
    assert len(reads) == 2
    assert len(manifest(feed).objects) == 10
    assert len(calls) == 10 + 4  # what was written although the answer was lost is found there and not sent again
    assert (report.objects_written, report.objects_kept) == (9, 1)
    assert landed(feed, manifest(feed), tmp_path) == {(TOPIC, 0): messages(0, 29), (TOPIC, 1): messages(0, 29, "w")}


def test_an_upload_that_never_works_ends_the_hour_and_the_next_run_completes_it(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        calls = spoil_uploads(patched, before=range(4, 100))
        with pytest.raises(StorageError, match="the lake is away"):
            land_hour(feed, HOUR)
    assert (len(calls), len(set(calls))) == (3 + pipeline.ATTEMPTS, 4)
    assert sorted(contents(lake(feed))) == sorted(calls[:3])
    report = land_hour(feed, HOUR)
    assert (report.objects_written, report.objects_kept) == (7, 3)


def test_a_reader_that_fails_ends_the_hour_and_what_is_durable_counts(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    uploaded, failed, upload, download = Event(), Event(), LOCAL.upload, Store.download

    class Noted(EventStore[Draft]):
        def fail(self, cause: BaseException) -> None:
            super().fail(cause)
            failed.set()

    def noted(self: Store, key: str, path: Path) -> None:
        upload(self, key, path)
        uploaded.set()
        assert failed.wait(60)

    def broken(self: Store, key: str, path: Path) -> str:
        if "+1+" in key:
            assert uploaded.wait(60)
            raise StorageError("the archive is away")
        return download(self, key, path)

    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "EventStore", Noted)
        patched.setattr(LOCAL, "upload", noted)
        patched.setattr(Store, "download", broken)
        with pytest.raises(StorageError, match="the archive is away"):
            land_hour(feed, HOUR)
    left = [key for key in contents(lake(feed)) if key.startswith("landed/")]
    assert [key.split("/")[4] for key in left] == ["partition=0"]
    report = land_hour(feed, HOUR)
    assert (report.objects_written, report.objects_kept) == (9, 1)


@pytest.mark.parametrize("in_flight", [1, 1500, 1 << 20])
def test_no_more_than_the_budget_and_one_object_is_read_and_not_durable(
    feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_flight: int
) -> None:
    held, weights = list[int](), list[int]()

    class Watched(EventStore[Draft]):
        def put(self, items: Sequence[Draft], timeout: float | None = None) -> bool:
            stored = super().put(items, timeout)
            weights.extend(item.nbytes for item in items)
            state = self.state()
            held.append(state.put_bytes - state.ack_bytes)
            return stored

    monkeypatch.setattr(pipeline, "EventStore", Watched)
    source = feed.source.model_copy(update={"in_flight": in_flight})
    report = land_hour(feed.model_copy(update={"source": source}), HOUR)
    assert (report.messages, report.objects_written) == (60, 10)
    assert max(held) < in_flight + max(weights)
    assert landed(feed, manifest(feed), tmp_path) == {(TOPIC, 0): messages(0, 29), (TOPIC, 1): messages(0, 29, "w")}


def test_an_interrupt_ends_the_readers_that_wait(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    source = feed.source.model_copy(update={"in_flight": 1})

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LOCAL, "upload", interrupted)
    with pytest.raises(KeyboardInterrupt):
        land_hour(feed.model_copy(update={"source": source}), HOUR)
    assert not any(key.startswith("manifests/") for key in contents(lake(feed)))


def test_of_what_a_reader_put_before_it_began_anew_only_its_own_objects_go(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    for key in ("there before", "of this run"):
        store.write(key, b"1")
    first, again = tmp_path / "first", tmp_path / "again"
    earlier = [pipeline._Uploaded(first, Mock(key=key), new, new) for key, new in (("there before", False), ("of this run", True))]
    read = PartitionRead(topic="t", number=0, sources=(), facts=Mock(), folder=again)
    assert pipeline._landed(store, read, earlier).objects == ()
    assert [o.key for o in store.objects("")] == ["there before"]
