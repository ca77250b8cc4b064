"""A lake of certified cuts without Spark, and what somebody changes in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.lake import cheap
from tidelake.audit.audit import Audited, audit
from tidelake.config.lake_paths import certificate_key, landed_key, manifest_key
from tidelake.io.signing import PublicKeys
from tidelake.io.storage import Store
from tidelake.lake.cut import Cut
from tidelake.lake.opened import Lake
from tidelake.land.store.manifest import Landed, Manifest, PartitionFacts

CUTS = 4
Document = dict[str, Any]


def hour_of(seq: int) -> str:
    """The hour of a cut."""
    return f"2026-01-01T{seq - 1:02d}"


def offsets(seq: int) -> tuple[int, int]:
    """The offsets of a cut's hour."""
    return 10 * (seq - 1), 10 * seq - 1


def landed_at(seq: int) -> str:
    """The key of the landed object of a cut's hour."""
    return landed_key("shop", "t", hour_of(seq), 0, *offsets(seq), hashlib.sha256(b"messages of %d" % seq).hexdigest())


def land(store: Store, seq: int) -> None:
    """Write the landed object and the manifest of a cut's hour."""
    content, (first, last) = b"messages of %d" % seq, offsets(seq)
    store.write(landed_at(seq), content)
    sha256 = hashlib.sha256(content).hexdigest()
    landed = Landed(key=landed_at(seq), topic="t", partition=0, first=first, last=last, count=10, bytes=9, size=len(content), sha256=sha256)
    facts = PartitionFacts(
        first=first, last=last, count=10, bytes=9, ranges=((first, last),), gaps=(), min_timestamp_ms=1, max_timestamp_ms=1
    )
    manifest = Manifest(
        feed="shop",
        hour=hour_of(seq),
        generation=1,
        protocol="open",
        layout="aiven-jsonl",
        sources=(),
        objects=(landed,),
        partitions={"t": {0: facts}},
        findings=(),
    )
    store.write(manifest_key("shop", hour_of(seq), 1), manifest.to_json())


def add_cut(lake: Lake, previous: Cut | None, apart: int = 1) -> Cut:
    """Land another hour and publish it. apart: hours between two cuts."""
    n = (previous.prefixes["t"][0][1] + 1) // 10 + 1 if previous else 1  # of the hour: a rewrite is a cut without one
    land(lake.store, n)
    known = {"generations": {hour_of(n): 1}, "prefixes": {"t": {0: (0, offsets(n)[1])}}}
    return cheap.publish(lake, previous, (n - 1) * apart, **known)


def add_cuts(lake: Lake, many: int = CUTS, apart: int = 1) -> Cut:
    """Publish so many hours. Returns the newest cut."""
    cut: Cut | None = None
    for _ in range(many):
        cut = add_cut(lake, cut, apart)
    assert cut is not None
    return cut


def audited(lake: Lake, start: int = 1, keys: PublicKeys | None = None) -> Audited:
    """The result of an audit."""
    return audit(lake.feed.name, lake.store.uri, start, keys)


def first_wrong(lake: Lake) -> tuple[int, str, str]:
    """(cut, key, what) of the first wrong place."""
    found = audited(lake).wrong
    assert found, "the audit found nothing"
    return found[0].cut, found[0].key, found[0].what


@contextmanager
def changed(path: Path, change: Callable[[bytes], bytes | None]) -> Iterator[None]:
    """Change a file in the block; None removes it. Afterwards it is as before."""
    before = path.read_bytes()
    after = change(before)
    assert after != before
    if after is None:
        path.unlink()
    else:
        path.write_bytes(after)
    try:
        yield
    finally:
        path.write_bytes(before)


def flipped(content: bytes) -> bytes:
    """The content with another byte in the middle."""
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def gone(content: bytes) -> None:
    """Nothing."""


def document(lake: Lake, seq: int) -> Document:
    """A certificate."""
    found: Document = json.loads(lake.store.read(certificate_key("shop", seq)))
    return found


@contextmanager
def forged(lake: Lake, seq: int, change: Callable[[Document], None], many: int = CUTS) -> Iterator[None]:
    """Change a certificate, and give all later ones the sums that then fit. Afterwards all are as before."""
    before = {n: lake.store.read(certificate_key("shop", n)) for n in range(seq, many + 1)}
    sha256 = ""
    for n, content in before.items():
        said = json.loads(content)
        if n == seq:
            change(said)
        else:
            said["predicate"]["previous"]["sha256"] = sha256
        content = json.dumps(said, ensure_ascii=False, indent=1).encode()
        assert content != before[n]
        lake.store.write(certificate_key("shop", n), content)
        sha256 = hashlib.sha256(content).hexdigest()
    try:
        yield
    finally:
        for n, content in before.items():
            lake.store.write(certificate_key("shop", n), content)
