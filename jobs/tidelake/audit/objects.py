"""Compares objects of the lake with their sums. Every object is read once, as a stream."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

from tidelake.audit.findings import Findings, OnRead
from tidelake.errors import StorageError
from tidelake.io.storage import Store, open_store

_READERS = 8  # objects read concurrently


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedObject:
    """An object that a certificate names. key: below the lake, or a URI; cut: the first audited one that names it; size: bytes."""

    key: str
    sha256: str
    size: int
    cut: int


def check_objects(what: str, store: Store, named: Iterable[NamedObject], findings: Findings, progress: OnRead | None) -> None:
    """Read objects and compare their bytes with their sums.

    Args:
        what: What they are, for the report.
        store: The lake's store.
        named: The objects.
        findings: Gets the result.
        progress: Called with (bytes read, bytes in all).
    """
    todo = sorted(named, key=lambda n: (n.cut, n.key))
    total, done = sum(n.size for n in todo), 0
    with ThreadPoolExecutor(_READERS) as pool:
        for one, wrong in zip(todo, pool.map(lambda n: _wrong(store, n), todo), strict=True):
            findings.checked[what] += 1
            findings.expect(wrong is None, one.cut, one.key, wrong or "")
            done += one.size
            if progress is not None:
                progress(done, total)
    findings.checked[f"bytes of {what}"] += total


def _wrong(lake: Store, named: NamedObject) -> str | None:
    store, key = place(lake, named.key)
    digest, size = hashlib.sha256(), 0
    try:
        for chunk in store.chunks(key):
            digest.update(chunk)
            size += len(chunk)
    except StorageError as e:
        if e.code in ("NOT_FOUND", "CHANGED"):
            return "it is missing" if e.code == "NOT_FOUND" else "it was replaced while it was read"
        raise
    if size != named.size:
        return f"it has {size:,} bytes, expected {named.size:,}"
    return None if digest.hexdigest() == named.sha256 else f"its sha256 is {digest.hexdigest()}, expected {named.sha256}"


def place(lake: Store, key: str) -> tuple[Store, str]:
    """Return (store, key) of an object. key: below the lake, or a URI in the spelling of `lake.scans.plain`."""
    if "://" not in key and not key.startswith("/"):
        return lake, key
    if key.startswith(f"{lake.uri}/"):
        return lake, key.removeprefix(f"{lake.uri}/")
    folder, _, name = key.rpartition("/")
    return _opened(folder), name


@cache
def _opened(uri: str) -> Store:
    return open_store(uri)
