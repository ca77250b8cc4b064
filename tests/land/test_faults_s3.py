"""An S3 server that fails, lies silent, breaks off, forgets to answer: the hour lands as if nothing was, or says what to do."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import pytest

from tests.conftest import FreshUri
from tests.land.archive import HOUR, archive, contents, lake, make_feed, manifest, messages, put
from tests.land.faulty_s3 import ANSWERS, CUT, HALF, LOST, STALL, FaultyS3, Wanted, anything, faulty_s3
from tidelake.config.feed import Feed
from tidelake.errors import StorageError
from tidelake.io import storage
from tidelake.io.storage import open_store
from tidelake.land import land_hour, pipeline

LARGE = 9 << 20  # more than one part of an upload, and several reads of a download
PASSING = ("InternalError", "SlowDown", HALF, CUT, LOST)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried at once."""
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0)
    monkeypatch.setattr(storage, "BACK_OFF_SECONDS", 0)
    monkeypatch.setattr(pipeline, "BACK_OFF_SECONDS", 0)
    monkeypatch.setattr("tidelake.land.store.objects.OBJECT_BYTES", 400)


@contextmanager
def spoiled(monkeypatch: pytest.MonkeyPatch, seed: int, faults: Any, share: float = 0.4, wanted: Wanted = anything) -> Iterator[FaultyS3]:
    """All S3 requests go through a faulty proxy."""
    with faulty_s3(os.environ["AWS_ENDPOINT_URL_S3"], seed, faults, share, wanted) as (proxy, endpoint), monkeypatch.context() as patched:
        patched.setenv("AWS_ENDPOINT_URL_S3", endpoint)
        storage.reset()
        yield proxy
    storage.reset()


def filled(root: str, large: int = LARGE) -> Feed:
    """Two partitions of two objects; one message has `large` bytes."""
    feed = make_feed(root)
    put(feed, 0, messages(0, 29))
    put(feed, 0, messages(30, 59))
    put(feed, 1, messages(0, 29, "w"))
    message = messages(30, 30)[0]._replace(value=random.Random(0).randbytes(large))
    put(feed, 1, [message, *messages(31, 59, "w")])
    return feed


def to_lake(feed: Feed, name: str) -> Feed:
    """The same archive, another lake."""
    return feed.model_copy(update={"lake": feed.lake.model_copy(update={"uri": feed.lake.uri + name})})


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(n, marks=pytest.mark.long) for n in range(3, 31))])
def test_what_passes_is_tried_again_and_the_hour_lands_whole(seed: int, s3: FreshUri, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = filled(s3("faults"))
    land_hour(feed, HOUR)
    whole = contents(lake(feed))
    other = to_lake(feed, "-other")
    with spoiled(monkeypatch, seed, PASSING) as proxy:
        report = land_hour(other, HOUR)
        again = land_hour(other, HOUR)
    assert proxy.spoiled.total() >= 5, (seed, proxy.spoiled)
    assert (report.new, report.messages, again.new) == (True, 120, False)
    assert contents(lake(other)) == whole, (seed, proxy.spoiled)


def test_a_download_that_stays_silent_is_given_up_and_goes_on_where_it_was(s3: FreshUri, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "READ_SECONDS", 0.2)
    feed = filled(s3("faults"))
    large = next(info for info in archive(feed).objects() if info.size > LARGE)
    with spoiled(monkeypatch, 1, [STALL], 0.9, lambda _, path: large.key.rpartition("+")[2] in path) as proxy:
        assert land_hour(feed, HOUR).messages == 120
    assert proxy.spoiled[STALL] >= 1
    assert next(source for source in manifest(feed).sources if source.key == large.key).size == large.size


def test_a_download_goes_on_with_the_bytes_that_are_missing(s3: FreshUri, monkeypatch: pytest.MonkeyPatch) -> None:
    store, content = open_store(s3("faults")), random.Random(0).randbytes(LARGE)
    store.write("large", content)
    with spoiled(monkeypatch, 1, [HALF], 0.9) as proxy:
        ranges = list[str]()
        storage.aws_client("s3").meta.events.register(
            "before-send.s3.GetObject", lambda request, **_: ranges.append(request.headers.get("Range"))
        )
        assert store.read("large") == content
    assert proxy.spoiled[HALF] == len(ranges) - 1 >= 1
    assert ranges[0] is None
    starts = [int(text.decode().removeprefix("bytes=").removesuffix("-")) for text in ranges[1:]]  # type: ignore[attr-defined]
    assert starts == sorted(set(starts))
    assert starts[0] >= 4 << 20


def test_a_conditional_put_whose_answer_is_lost_still_knows_whether_it_won(s3: FreshUri, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(s3("faults"))
    with spoiled(monkeypatch, 1, [LOST], 0.9, lambda method, _: method == "PUT") as proxy:
        assert store.put_if_absent("a", b"first") is True
        assert store.put_if_absent("a", b"second") is False
        seen = store.head("a")
        assert seen is not None
        assert store.put_if_match("a", b"third", seen.etag) is True
        assert store.put_if_match("a", b"fourth", seen.etag) is False
        assert store.put_if_match("none", b"fifth", seen.etag) is False
        assert store.read("a") == b"third"
        storage.probe_conditional_puts(store)
    assert proxy.spoiled[LOST] >= 6


def test_an_object_that_is_replaced_while_it_is_read_is_not_made_of_two(s3: FreshUri, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = filled(s3("faults"))
    large = next(info for info in archive(feed).objects() if info.size > LARGE)
    replaced, direct = Event(), os.environ["AWS_ENDPOINT_URL_S3"]
    spoiled_content = archive(feed).read(large.key)[::-1]

    def replace(method: str, path: str) -> bool:
        hit = method == "GET" and large.key.rpartition("+")[2] in path and not replaced.is_set()
        if hit:
            replaced.set()
        return hit

    with spoiled(monkeypatch, 1, [HALF], 1, replace) as proxy:
        client = storage.aws_client("s3")
        sent = list[str]()

        def overwrite(request: Any, **_: Any) -> None:
            if request.headers.get("Range") and not sent:
                sent.append("overwritten")
                store = open_store(feed.source.uri)
                store.write(large.key, spoiled_content)

        client.meta.events.register("before-send.s3.GetObject", overwrite)
        # SeaweedFS may still serve the whole old object to the request that follows: then the listing tells
        with pytest.raises(StorageError, match=r"SOURCE_CHANGED: .*(\+1\+0*30\.jsonl\.gz|listing of .*) changed while the hour was landed"):
            land_hour(feed, HOUR)
    assert (direct == os.environ["AWS_ENDPOINT_URL_S3"], proxy.spoiled[HALF], sent) == (True, 1, ["overwritten"])
    assert [info.key for info in lake(feed).objects("manifests/")] == []


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("SlowDown", r"UNAVAILABLE: s3://.*SlowDown.*run again later"),
        ("InternalError", r"UNAVAILABLE: s3://.*InternalError.*run again later"),
        ("ExpiredToken", r"EXPIRED: s3://.*ExpiredToken.*renew the credentials"),
    ],
)
@pytest.mark.parametrize("what", ["listing", "reading", "uploading", "manifest"])
def test_what_does_not_pass_ends_the_hour_with_what_to_do_and_the_next_run_lands_it(
    answer: str, problem: str, what: str, s3: FreshUri, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert answer in ANSWERS
    feed = filled(s3("faults"), large=1)
    place = {
        "listing": ("GET", "list-type=2"),
        "reading": ("GET", ".jsonl.gz"),
        "uploading": ("PUT", "/landed/"),
        "manifest": ("PUT", "/manifests/"),
    }
    method, part = place[what]
    with (
        spoiled(monkeypatch, 1, [answer], 1, lambda m, path: m == method and part in path),
        pytest.raises(StorageError, match=problem) as caught,
    ):
        land_hour(feed, HOUR)
    assert part.strip("/") in caught.value.message or what == "listing"
    assert [info.key for info in lake(feed).objects("manifests/")] == []
    assert land_hour(feed, HOUR).messages == 120
