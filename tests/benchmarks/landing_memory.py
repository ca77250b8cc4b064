"""Peak memory of landing one hour inside a byte budget; prints one JSON object. A child of its section (landing.py).

The archive is gzipped lines with one large message, half of it delivered out of order and twice.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

from tests.archives.objects import Message
from tests.benchmarks.measure import peak, reset_peak
from tests.land.archive import HOUR, archive, make_feed, put
from tidelake.config.feed import Feed
from tidelake.demo.embedded_s3 import BUCKET
from tidelake.land import land_hour
from tidelake.land.pipeline import READERS

ALLOWANCE = 300 << 20
LARGEST = 16 << 20  # bytes of the largest message
PARTITIONS = 4
MESSAGE_BYTES = 386  # key and value of all others


def limit(budget: int) -> int:
    """Bytes that landing may take beyond what the process held before (docs/landing.md)."""
    return budget + READERS * LARGEST + ALLOWANCE


def main(budget_mb: int, megabytes: int) -> dict[str, Any]:
    """Land with a budget; makes the archive if megabytes are given and it does not exist yet."""
    feed = _feed(budget_mb)
    if not any(archive(feed).objects()):
        _make(feed, megabytes << 20)
        return {}
    held = psutil.Process().memory_info().rss
    reset_peak()
    started = time.monotonic()
    report = land_hour(feed, HOUR)
    seconds = time.monotonic() - started
    if psutil.Process().children():
        raise SystemExit("landing started processes, whose memory is not counted")
    return {"peak": peak() - held, "seconds": seconds, "bytes": report.bytes, "objects": report.objects_written}


def _feed(budget_mb: int) -> Feed:
    root = f"s3://{BUCKET}/memory"
    source = {"uri": f"{root}/archive", "layout": "aiven-jsonl", "in_flight": f"{budget_mb} MB"}
    return make_feed(root, partitions=PARTITIONS, source=source, lake={"uri": f"{root}/lake-{budget_mb}"})


def _make(feed: Feed, size: int) -> None:
    """Objects of about 32 MB of messages; in odd partitions each but the first begins with the second half of the one before."""
    count, each = size // MESSAGE_BYTES // PARTITIONS, (32 << 20) // MESSAGE_BYTES
    put(feed, 0, [Message(count, bytes(LARGEST), b"large")])
    with TemporaryDirectory(prefix="tidelake-bench-") as folder:
        for partition in range(PARTITIONS):
            for first in range(0, count, each):
                again = each // 2 if partition % 2 and first else 0
                _write(feed, Path(folder) / "object", partition, range(first - again, min(first + each, count)))


def _write(feed: Feed, path: Path, partition: int, offsets: range) -> None:
    """One object; an offset's message is the same wherever it is."""
    with gzip.open(path, "wb", compresslevel=1) as out:
        for offset in offsets:
            value = base64.b64encode(hashlib.sha512(b"%d" % offset).hexdigest().encode() * 3).decode()
            out.write(f'{{"key":"azE=","offset":{offset},"timestamp":"2026-01-05T10:00:00Z","value":"{value}"}}\n'.encode())
    archive(feed).upload(f"shop/dt=2026-01-05/hr=10/shop+{partition}+{offsets[0]:020d}.jsonl.gz", path)


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
