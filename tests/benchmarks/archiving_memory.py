"""Peak memory of `tidelake archive` inside a byte budget, from a real Kafka broker to an S3 server, by the rule of landing.

python -m tests.benchmarks.archiving_memory [--megabytes 600]: exit code 1 where a peak is above in_flight + one largest message a reader
+ 300 MB. One partition holds a large message, and hours change in the middle.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import psutil

from tests.archives.objects import Message
from tests.benchmarks import child
from tests.benchmarks.landing import BUDGETS_MB
from tests.benchmarks.landing_memory import LARGEST, limit
from tests.benchmarks.measure import peak, reset_peak
from tests.io.kafka_broker import KafkaBroker
from tests.land.archive import make_feed
from tests.land.live import FIRST_MS, HOUR_MS, produce
from tidelake.demo.embedded_s3 import BUCKET, EmbeddedS3
from tidelake.land.archiver.follow import Goal, archive

TOPIC = "shop"
PARTITIONS = 4
MESSAGE_BYTES = 2_048
ROOM = LARGEST + (1 << 20)  # that brokers and producers must leave for a message


def main() -> int:
    """0 if every peak is inside its limit."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.archiving_memory", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=600, help="of messages (default %(default)s)")
    parser.add_argument("--child", nargs=2, metavar=("SERVERS", "BUDGET"), help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.child:
        sys.stdout.write("\n" + json.dumps(_measured(flags.child[0], int(flags.child[1]))))
        return 0
    with tempfile.TemporaryDirectory(prefix="tidelake-bench-") as root:
        folders = [Path(root) / name for name in ("kafka", "s3")]
        for folder in folders:
            folder.mkdir()
        with KafkaBroker(folders[0]) as broker, EmbeddedS3(folders[1]) as s3:
            _fill(broker, flags.megabytes << 20)
            return max([_judged(budget, broker, s3) for budget in BUDGETS_MB])


def _fill(broker: KafkaBroker, size: int) -> None:
    broker.create(TOPIC, PARTITIONS, max_message_bytes=str(ROOM))
    count = size // PARTITIONS // MESSAGE_BYTES
    for partition in range(PARTITIONS):
        produce(broker, TOPIC, partition, _content(count, large=partition == 0), **{"message.max.bytes": ROOM, "compression.type": "lz4"})


def _content(count: int, *, large: bool) -> Iterator[Message]:
    """Values that compress by four, about what rows do."""
    for i in range(count):
        noise = os.urandom(MESSAGE_BYTES // 4)
        value = os.urandom(LARGEST) if large and i == count // 3 else 4 * noise
        yield Message(i, value, noise[:8], FIRST_MS + (HOUR_MS if i > count // 2 else 0))


def _judged(budget: int, broker: KafkaBroker, s3: EmbeddedS3) -> int:
    found, must = child.run("archiving_memory", "--child", broker.servers, str(budget), environment=s3.environment), limit(budget << 20)
    sys.stdout.write(
        f"{budget} MB in flight: peak memory {found['peak'] >> 20:,} MiB (must: at most {must >> 20:,}), "
        f"{found['bytes'] / found['seconds'] / 1e6:,.0f} MB/s, {found['objects']} objects\n"
    )
    return int(found["peak"] > must)


def _measured(servers: str, budget: int) -> dict[str, Any]:
    source = {"uri": f"s3://{BUCKET}/memory-{budget}", "layout": "canonical", "in_flight": f"{budget} MB", "archiver": {"servers": servers}}
    feed = make_feed("none", topics=(TOPIC,), partitions=PARTITIONS, source=source)
    held = psutil.Process().memory_info().rss
    reset_peak()
    started = time.monotonic()
    done = archive(feed, Goal(once=True), Event())
    seconds = time.monotonic() - started
    if psutil.Process().children():
        raise SystemExit("archiving started processes, whose memory is not counted")
    return {"peak": peak() - held, "seconds": seconds, "bytes": done.bytes, "objects": done.objects}


if __name__ == "__main__":
    sys.exit(main())
