"""Peak memory and MB/s of landing one hour inside a byte budget, for a small and a large one.

python -m tests.benchmarks.landing_memory: makes an archive of gzipped lines with one large message, half of it delivered out of order and
twice, and lands it into a folder in a process of its own for each budget. Exit code 1 where a peak is above budget + one largest message a
reader + 300 MB (issue 5, section 1).
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.archives.objects import Message
from tests.land.archive import HOUR, make_feed, put
from tidelake.feed import Feed
from tidelake.land import land_hour
from tidelake.land.pipeline import READERS

BUDGETS_MB = (64, 512)
ALLOWANCE = 300 << 20
LARGEST = 16 << 20  # bytes of the largest message
PARTITIONS = 4
MESSAGE_BYTES = 386  # key and value of all others


def main() -> int:
    """0 if every peak is inside its limit."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.landing_memory", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=600, help="MB of keys and values to land (default 600)")
    parser.add_argument("--land", nargs=2, metavar=("ROOT", "MB"), help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.land:
        sys.stdout.write(json.dumps(_land(Path(flags.land[0]), int(flags.land[1]))))
        return 0
    code = 0
    with tempfile.TemporaryDirectory(prefix="tidelake-bench-") as root:
        _make(Path(root), flags.megabytes << 20)
        for budget in BUDGETS_MB:
            command = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.landing_memory", "--land", root, str(budget)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            limit = (budget << 20) + READERS * LARGEST + ALLOWANCE
            code |= found["peak"] > limit
            sys.stdout.write(
                f"in_flight = {budget} MB: peak {found['peak'] >> 20:,} MiB of {limit >> 20:,} allowed, "
                f"{found['bytes'] / found['seconds'] / 1e6:,.0f} MB/s of messages, {found['objects']} objects\n"
            )
    return code


def _feed(root: Path, lake: str, budget: int) -> Feed:
    source = {"uri": f"{root}/archive", "layout": "aiven-jsonl", "in_flight": f"{budget} MB"}
    return make_feed(root, partitions=PARTITIONS, source=source, lake={"uri": f"{root}/{lake}"})


def _make(root: Path, size: int) -> None:
    """Objects of about 32 MB of messages; in odd partitions each but the first begins with the second half of the one before."""
    feed = _feed(root, "none", BUDGETS_MB[0])
    count, each = size // MESSAGE_BYTES // PARTITIONS, (32 << 20) // MESSAGE_BYTES
    put(feed, 0, [Message(count, bytes(LARGEST), b"large")])
    for partition in range(PARTITIONS):
        for first in range(0, count, each):
            again = each // 2 if partition % 2 and first else 0
            _write(feed, partition, range(first - again, min(first + each, count)))


def _write(feed: Feed, partition: int, offsets: range) -> None:
    """One object; an offset's message is the same wherever it is."""
    path = Path(feed.source.uri) / f"shop/dt=2026-01-05/hr=10/shop+{partition}+{offsets[0]:020d}.jsonl.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wb", compresslevel=1) as out:
        for offset in offsets:
            value = base64.b64encode(hashlib.sha512(b"%d" % offset).hexdigest().encode() * 3).decode()
            out.write(f'{{"key":"azE=","offset":{offset},"timestamp":"2026-01-05T10:00:00Z","value":"{value}"}}\n'.encode())


def _land(root: Path, budget: int) -> dict[str, Any]:
    started = time.monotonic()
    report = land_hour(_feed(root, f"lake-{budget}", budget), HOUR)
    seconds = time.monotonic() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return {"peak": peak, "seconds": seconds, "bytes": report.bytes, "objects": report.objects_written}


if __name__ == "__main__":
    sys.exit(main())
