"""One writer per feed, on a local folder and on moto's S3."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.logged import log_calls
from tidelake.config.lake_paths import lease_key
from tidelake.errors import LeaseError, OrderError, StorageError
from tidelake.io import lease, storage
from tidelake.io.lease import Lease, check, hold, unlock
from tidelake.io.storage import Store, open_store

_NUMBERS = count(1)
ELSEWHERE = "another-host"


@pytest.fixture(scope="module")
def moto_endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    client.create_bucket(Bucket="leases")
    client.close()
    yield endpoint
    server.stop()


@pytest.fixture(params=["local", "moto"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    if request.param == "local":
        yield open_store(str(tmp_path / "lake"))
        return
    endpoint = request.getfixturevalue("moto_endpoint")
    for name, value in {"AWS_ENDPOINT_URL_S3": endpoint, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}.items():
        monkeypatch.setenv(name, value)
    storage.reset()
    yield open_store(f"s3://leases/lake-{next(_NUMBERS)}")
    storage.reset()


@pytest.fixture
def folder(tmp_path: Path) -> Store:
    """Where the kind of store does not matter."""
    return open_store(str(tmp_path / "lake"))


def now(store: Store) -> Lease:
    return Lease.model_validate_json(store.read(lease_key("shop")))


def put(store: Store, *, fence: int = 7, host: str = ELSEWHERE, pid: int = 1, started: str = "0", seconds: float = 60) -> Lease:
    """Someone holds the feed for so many more seconds."""
    expires = int((time.time() + seconds) * 1000)
    theirs = Lease(fence=fence, host=host, pid=pid, started=started, expires_ms=expires, work="order 2026-01-05T10")
    store.write(lease_key("shop"), theirs.model_dump_json().encode())
    return theirs


def test_the_first_fence_is_1_and_every_holder_s_is_higher(store: Store) -> None:
    fences = []
    for _ in range(3):
        with hold(store, "shop", "compact") as fence:
            fences.append(fence)
            assert now(store).fence == fence
        assert now(store).expires_ms == 0
    assert fences == [1, 2, 3]


def test_a_held_lease_says_who_does_what_since_when_and_for_how_long(store: Store) -> None:
    with hold(store, "shop", "compact 2026-01-05T10"):
        held = now(store)
    assert (held.host, held.pid, held.work) == (socket.gethostname(), os.getpid(), "compact 2026-01-05T10")
    assert held.started
    assert 50_000 < held.expires_ms - time.time() * 1000 <= lease.SECONDS * 1000


def test_another_writer_is_refused_and_told_who_holds_it(store: Store) -> None:
    with hold(store, "shop", "compact"):
        with pytest.raises(LeaseError) as error, hold(store, "shop", "order", wait_seconds=0):
            pytest.fail("two writers hold one feed")
        assert error.value.message == f"feed shop is held by compact on {socket.gethostname()} (process {os.getpid()})"
        assert error.value.exit_code == 1
        assert now(store).fence == 1
    assert now(store).expires_ms == 0


def test_feeds_are_leased_apart(folder: Store) -> None:
    with hold(folder, "shop", "compact") as one, hold(folder, "other", "compact") as other:
        assert (one, other) == (1, 1)


def test_who_waits_gets_the_lease_when_it_is_given_back_and_is_told_once(store: Store) -> None:
    said: list[str] = []
    order: list[str] = []
    heard = threading.Event()

    def tell(what: str) -> None:
        said.append(what)
        heard.set()

    def second() -> int:
        with log_calls(lambda _, what: tell(what)), hold(store, "shop", "second", wait_seconds=20) as fence:
            order.append("second")
            return fence

    with ThreadPoolExecutor(1) as pool:
        with hold(store, "shop", "first"):
            waiting = pool.submit(second)
            assert heard.wait(10)
            order.append("first")
        assert waiting.result(20) == 2
    assert order == ["first", "second"]
    assert said == [f"waiting for first on {socket.gethostname()} (process {os.getpid()})"]


def test_of_many_writers_one_at_a_time_holds_the_feed(folder: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease.time, "sleep", lambda _: threading.Event().wait(0.01))
    inside, most, fences = 0, 0, list[int]()
    lock = threading.Lock()

    def write(_: int) -> None:
        nonlocal inside, most
        with hold(folder, "shop", "write", wait_seconds=30) as fence:
            with lock:
                inside += 1
                most = max(most, inside)
                fences.append(fence)
            threading.Event().wait(0.005)
            with lock:
                inside -= 1

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(12)))
    assert most == 1
    assert fences == sorted(set(fences))
    assert len(fences) == 12


def test_an_expired_lease_is_taken_over_with_a_higher_fence(store: Store) -> None:
    put(store, fence=7, seconds=-1)
    with hold(store, "shop", "order", wait_seconds=0) as fence:
        assert fence == 8


def test_another_machine_s_lease_is_left_alone_until_it_expires(store: Store) -> None:
    theirs = put(store, seconds=60)
    with pytest.raises(LeaseError, match="held by order 2026-01-05T10 on another-host"), hold(store, "shop", "order", wait_seconds=0):
        pytest.fail("taken from a living writer")
    assert now(store) == theirs


def test_a_lease_that_expires_while_waiting_is_taken(folder: Store) -> None:
    put(folder, fence=3, seconds=0.3)
    with hold(folder, "shop", "order", wait_seconds=10) as fence:
        assert fence == 4


def test_a_dead_process_of_this_machine_holds_nothing(folder: Store) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    put(folder, host=socket.gethostname(), pid=gone.pid, started="12345")
    with hold(folder, "shop", "order", wait_seconds=0) as fence:
        assert fence == 8


def test_a_process_that_got_a_dead_one_s_number_does_not_hold_its_lease(folder: Store) -> None:
    put(folder, host=socket.gethostname(), pid=os.getpid(), started="12345")
    with hold(folder, "shop", "order", wait_seconds=0) as fence:
        assert fence == 8


def test_a_lease_is_renewed_while_it_is_held(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEW_EVERY", 0.02)
    with hold(store, "shop", "order"):
        first = now(store).expires_ms
        until = time.monotonic() + 10
        while now(store).expires_ms <= first and time.monotonic() < until:
            time.sleep(0.02)
        assert now(store).expires_ms > first
        assert now(store).fence == 1
    assert now(store).expires_ms == 0


def test_a_lease_that_was_taken_over_meanwhile_is_an_error_at_the_end_and_stays_the_other_s(store: Store) -> None:
    with pytest.raises(LeaseError, match="the lease of feed shop was taken over while this run held it"), hold(store, "shop", "order"):
        theirs = put(store, fence=2)
    assert now(store) == theirs


def test_a_renewal_never_takes_back_what_another_took_over(folder: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEW_EVERY", 0.01)

    def lose() -> Lease:
        theirs = put(folder, fence=2)
        time.sleep(0.1)
        return theirs

    with pytest.raises(LeaseError, match="taken over"), hold(folder, "shop", "order"):
        theirs = lose()
    assert now(folder) == theirs


def test_a_lease_that_is_gone_counts_as_lost(folder: Store) -> None:
    with pytest.raises(LeaseError, match="taken over"), hold(folder, "shop", "order"):
        folder.delete(lease_key("shop"))


def test_a_store_that_does_not_answer_for_a_while_loses_no_lease(folder: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEW_EVERY", 0.01)
    real, failed = type(folder).put_if_match, threading.Event()

    def flaky(self: Store, key: str, data: bytes, etag: str) -> bool:
        if not failed.is_set():
            failed.set()
            raise StorageError("no answer")
        return real(self, key, data, etag)

    monkeypatch.setattr(type(folder), "put_if_match", flaky)
    with hold(folder, "shop", "order"):
        first = now(folder).expires_ms
        assert failed.wait(10)
        until = time.monotonic() + 10
        while now(folder).expires_ms <= first and time.monotonic() < until:
            time.sleep(0.01)
    assert now(folder).expires_ms == 0


def test_a_run_that_fails_gives_the_lease_back_and_its_own_error_is_the_one_that_is_told(store: Store) -> None:
    with pytest.raises(OrderError, match="a gap"), hold(store, "shop", "order"):
        raise OrderError("a gap")
    assert now(store).expires_ms == 0
    with hold(store, "shop", "order", wait_seconds=0) as fence:
        assert fence == 2


def test_a_run_that_fails_after_it_was_taken_over_tells_its_own_error(folder: Store) -> None:
    def lose_and_fail() -> None:
        put(folder, fence=2)
        raise OrderError("a gap")

    with pytest.raises(OrderError, match="a gap"), hold(folder, "shop", "order"):
        lose_and_fail()
    assert now(folder).fence == 2


def test_a_store_that_does_not_answer_at_the_end_is_no_failure_of_the_run(folder: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> bool:
        raise StorageError("no answer")

    with hold(folder, "shop", "order"):
        monkeypatch.setattr(type(folder), "put_if_match", gone)
    with pytest.raises(OrderError, match="a gap"), hold(folder, "mall", "order"):
        raise OrderError("a gap")
    assert now(folder).expires_ms > 0


def test_no_thread_is_left_behind(folder: Store) -> None:
    with hold(folder, "shop", "order"):
        assert any(t.name == "lease-shop" for t in threading.enumerate())
    assert not any(t.name == "lease-shop" for t in threading.enumerate())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="process starts are read from /proc")
def test_the_start_of_a_process_tells_it_from_others() -> None:
    mine = lease._started(os.getpid())
    assert mine.isdigit()
    assert lease._started(os.getpid()) == mine
    assert lease._started(1 << 30) == ""


def test_a_check_passes_only_while_the_lease_is_held(folder: Store) -> None:
    lost = "^LEASE: the lease of feed shop was taken over while this run held it"
    with pytest.raises(LeaseError, match=lost):
        check(folder, "shop", 1)
    with hold(folder, "shop", "order") as fence:
        check(folder, "shop", fence)
        with pytest.raises(LeaseError, match=lost):
            check(folder, "shop", fence + 1)
        held = now(folder)
        put(folder, fence=fence, seconds=-1)
        with pytest.raises(LeaseError, match=lost):
            check(folder, "shop", fence)
        folder.write(lease_key("shop"), held.model_dump_json().encode())
    with pytest.raises(LeaseError, match=r"^LEASE: the lease of the archive x was taken over"):
        check(folder, "shop", fence, "the archive x")


# a lease that does not expire by itself

YEAR = 365 * 86_400


def test_a_lease_far_in_the_future_is_named_with_its_holder_and_the_way_out(folder: Store) -> None:
    put(folder, seconds=YEAR)
    with pytest.raises(LeaseError) as error, hold(folder, "shop", "compact", wait_seconds=0):
        pass
    said = str(error.value)
    assert f"feed shop is held by order 2026-01-05T10 on {ELSEWHERE} (process 1), until 20" in said
    assert f"by its clock; {folder.uri}/leases/shop.json" in said
    assert "the clock of that machine or of this one is wrong" in said
    assert said.endswith("if it is gone, free it: `tidelake unlock --feed shop`")


def test_a_lease_far_in_the_future_is_freed_and_its_holder_loses_it(store: Store) -> None:
    theirs = put(store, seconds=YEAR)
    assert "would be freed" in unlock(store, "shop", dry_run=True)
    assert now(store) == theirs
    assert unlock(store, "shop").startswith(f"the lease of order 2026-01-05T10 on {ELSEWHERE} (process 1), until 20")
    with pytest.raises(LeaseError):
        check(store, "shop", theirs.fence)
    with hold(store, "shop", "compact", wait_seconds=0) as fence:
        assert fence == theirs.fence + 2
    assert unlock(store, "shop") == "no run holds the lease"


def test_a_lease_that_expires_within_a_minute_is_left_alone(folder: Store) -> None:
    theirs = put(folder)
    with pytest.raises(LeaseError, match="its lease expires within a minute"):
        unlock(folder, "shop")
    assert now(folder) == theirs
    assert unlock(folder, "other") == "no run holds the lease"


def test_a_damaged_lease_is_named_and_freed_with_a_number_above_all_before(folder: Store) -> None:
    folder.write(lease_key("shop"), b"{")
    with pytest.raises(StorageError, match=r"DAMAGED: .*leases/shop.json .*`tidelake unlock --feed shop`"), hold(folder, "shop", "compact"):
        pass
    assert unlock(folder, "shop") == f"the damaged lease {folder.uri}/leases/shop.json is freed"
    with hold(folder, "shop", "compact", wait_seconds=0) as fence:
        assert fence > 1_000_000_000


def test_the_latest_possible_moment_is_no_error(folder: Store) -> None:
    put(folder, seconds=1e12)
    assert "until 9999-12-31T23:59:59Z" in unlock(folder, "shop")
