"""The lease of a feed: an object that one writer takes and renews by conditional puts (docs/architecture.md 9).

The lease prevents two runs from doing the same work. Correctness does not depend on it: the put-if-absent of the publish intent decides.
The fence number grows with every holder and names the branches that its run stages.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tidelake.config.lake_paths import lease_key
from tidelake.errors import DamageError, LeaseError, StorageError
from tidelake.io.documents import Document, parsed
from tidelake.io.storage import Store

log = logging.getLogger("tidelake.lease")

SECONDS = 60.0
RENEW_EVERY = 15.0
_LATEST = 253_402_300_799  # end of the year 9999


class Lease(Document):
    """The holder of a feed. expires_ms: epoch milliseconds, 0 = released; started: start of the holder's process, to detect reused pids."""

    fence: int
    host: str
    pid: int
    started: str
    expires_ms: int
    work: str


def check(store: Store, feed: str, fence: int, what: str = "") -> None:
    """Raise LeaseError unless the lease with this fence number is held and has not expired. Without it, another run may be working."""
    now, _ = _read(store, feed)
    if now is None or now.fence != fence or now.expires_ms < time.time() * 1000:
        raise _lost(what or f"feed {feed}")


@contextmanager
def hold(
    store: Store,
    feed: str,
    work: str,
    wait_seconds: float = 2 * SECONDS,
    what: str = "",
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[int]:
    """Hold the feed's lease during the block and yield the fence number. Wait for another holder to release it or to expire.

    Args:
        store: The lake's store.
        feed: The feed's name.
        work: What the holder does; other runs show it.
        wait_seconds: Longest wait for the lease.
        what: What the lease is for, in messages. Default: the feed.
        stopped: Returns True to end the wait early.

    Raises:
        LeaseError: The lease is not free in time, or was lost by the end. An unreachable store at the end raises nothing: the work is
            done, and the lease expires.
    """
    what = what or f"feed {feed}"
    mine = _take(store, feed, what, work, wait_seconds, stopped)
    stop, lost = threading.Event(), threading.Event()
    renewer = threading.Thread(target=_renew, args=(store, feed, mine, stop, lost), daemon=True, name=f"lease-{feed}")
    renewer.start()
    try:
        yield mine.fence
    finally:
        stop.set()
        renewer.join()
        with suppress(StorageError):
            if not lost.is_set() and not _replace(store, feed, mine, mine.model_copy(update={"expires_ms": 0})):
                lost.set()
    if lost.is_set():
        raise _lost(what)


def _take(store: Store, feed: str, what: str, work: str, wait_seconds: float, stopped: Callable[[], bool]) -> Lease:
    deadline, logged = time.monotonic() + wait_seconds, False
    while True:
        now, etag = _read(store, feed)
        mine = _new(now.fence + 1 if now else 1, work)
        if now is None or _free(now):
            data = mine.model_dump_json().encode()
            taken = store.put_if_match(lease_key(feed), data, etag) if etag else store.put_if_absent(lease_key(feed), data)
            if taken:
                return mine
            continue
        if time.monotonic() > deadline or stopped():
            raise _held(store, feed, what, now)
        if not logged:
            log.info(f"waiting for {_who(now)}{_ahead(now)}")
            logged = True
        time.sleep(0.5)


def _renew(store: Store, feed: str, mine: Lease, stop: threading.Event, lost: threading.Event) -> None:
    while not stop.wait(RENEW_EVERY):
        with suppress(StorageError):  # the next renewal may reach the store; a takeover shows up at the end
            if not _replace(store, feed, mine, mine.model_copy(update={"expires_ms": _soon()})):
                lost.set()
                return


def _replace(store: Store, feed: str, mine: Lease, new: Lease) -> bool:
    now, etag = _read(store, feed)
    if now is None or now.fence != mine.fence or etag is None:
        return False
    return store.put_if_match(lease_key(feed), new.model_dump_json().encode(), etag)


def _read(store: Store, feed: str) -> tuple[Lease | None, str | None]:
    info = store.head(lease_key(feed))
    data = store.read_if_present(lease_key(feed)) if info else None
    return (parsed(store, lease_key(feed), data, Lease.model_validate_json), info.etag) if info and data is not None else (None, None)


def _free(lease: Lease) -> bool:
    """Whether the lease is released, expired, or held by a process of this machine that has ended."""
    if lease.expires_ms < time.time() * 1000:
        return True
    return lease.host == socket.gethostname() and _started(lease.pid) != lease.started


def _new(fence: int, work: str) -> Lease:
    pid = os.getpid()
    return Lease(fence=fence, host=socket.gethostname(), pid=pid, started=_started(pid), expires_ms=_soon(), work=work)


def _soon() -> int:
    return int((time.time() + SECONDS) * 1000)


def _started(pid: int) -> str:
    """Return when a process of this machine started; empty if it does not exist. Without /proc, only expiry frees a lease."""
    stat = Path(f"/proc/{pid}/stat")
    if not Path("/proc/self/stat").exists():
        return "unknown"
    try:
        return stat.read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _lost(what: str) -> LeaseError:
    return LeaseError(f"the lease of {what} was taken over while this run held it", remedy="see who runs it: tidelake status")


def unlock(store: Store, feed: str, *, dry_run: bool = False) -> str:
    """Free a lease that does not expire by itself, and return what was found and done, as a message.

    The fence number increases, so that a holder that still runs loses the lease.

    Args:
        store: The lake's store.
        feed: The feed's name.
        dry_run: Change nothing.

    Raises:
        LeaseError: The lease expires within a minute, or another run took it meanwhile.
    """
    info = store.head(lease_key(feed))
    if info is None:
        return "no run holds the lease"
    try:
        now, etag = _read(store, feed)
    except DamageError:
        now, etag = None, info.etag
    if now is not None and _free(now):
        return "no run holds the lease"
    if now is not None and not _is_ahead(now):
        raise _held(store, feed, f"feed {feed}", now)
    said = f"the lease of {_who(now)}{_ahead(now)}" if now else f"the damaged lease {store.uri_of(lease_key(feed))}"
    if dry_run:
        return f"{said} would be freed"
    fence = now.fence + 1 if now else int(time.time())  # larger than every fence number before
    free = _new(fence, "unlock").model_copy(update={"expires_ms": 0})
    if not store.put_if_match(lease_key(feed), free.model_dump_json().encode(), etag or ""):
        raise LeaseError(f"the lease of feed {feed} was renewed meanwhile", remedy="its holder is still running: end it, or wait for it")
    return f"{said} is freed"


def _held(store: Store, feed: str, what: str, now: Lease) -> LeaseError:
    if not _is_ahead(now):
        return LeaseError(f"{what} is held by {_who(now)}", remedy="wait for it to end; if it is gone, its lease expires within a minute")
    return LeaseError(
        f"{what} is held by {_who(now)}{_ahead(now)}; {store.uri_of(lease_key(feed))}",
        remedy=f"a lease is valid for {SECONDS:.0f} s: the clock of that machine or of this one is wrong. Wait for the run to end; "
        f"if it is gone, free it: `tidelake unlock --feed {feed}`",
    )


def _is_ahead(lease: Lease) -> bool:
    """Whether the lease expires later than a lease by this machine's clock can."""
    return lease.expires_ms > _soon() + SECONDS * 1000


def _ahead(lease: Lease) -> str:
    """Return when a lease expires whose holder's clock is ahead, as a message; empty for other leases."""
    if not _is_ahead(lease):
        return ""
    return f", until {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(min(lease.expires_ms / 1000, _LATEST)))} by its clock"


def _who(lease: Lease) -> str:
    return f"{lease.work} on {lease.host} (process {lease.pid})"
