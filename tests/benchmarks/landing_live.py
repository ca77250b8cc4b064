"""MB/s of message bytes from a real Kafka broker to durable canonical Parquet in an S3 server, peak memory, and where the time goes.

python -m tests.benchmarks.landing_live: broker, S3 server and landing share the machine. The median of the runs is judged; exit code 1
where landing is below MUST (issue 5, section 5), or a peak is above in_flight + one largest message a reader + 300 MB. `take` is the client
alone, messages as columns of Python objects; `cut` writes objects of them to local disk; both by one thread. `archive` is
`tidelake archive --once`, `land` landing from the topics.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow.compute as pc

from tests.archives.objects import Message
from tests.benchmarks.landing_memory import ALLOWANCE
from tests.kafka_broker import KafkaBroker
from tests.land.archive import HOUR, make_feed
from tests.land.live import FIRST_MS, produce
from tidelake.embedded_s3 import EmbeddedS3
from tidelake.feed import Feed
from tidelake.kafka import Topics
from tidelake.land import land_hour
from tidelake.land.objects import ObjectWriter
from tidelake.land.spool import payload
from tidelake.land.stream import ObjectCutter

MUST = 100  # MB/s
TOPIC = "shop"
PARTITIONS = 4
MESSAGE_BYTES = 500
BUDGET_MB = 64
RUNS = 3
WHATS = ("take", "cut", "archive", "land")


def main() -> int:
    """0 if it is fast enough and inside its memory."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.landing_live", description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000, help="of 500 bytes (default 1,000,000)")
    parser.add_argument("--child", nargs=3, metavar=("WHAT", "SERVERS", "LAKE"), help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.child:
        sys.stdout.write(json.dumps(_measured(*flags.child)))
        return 0
    with tempfile.TemporaryDirectory(prefix="tidelake-bench-") as root:
        folders = [Path(root) / name for name in ("kafka", "s3")]
        for folder in folders:
            folder.mkdir()
        with KafkaBroker(folders[0]) as broker, EmbeddedS3(folders[1]) as s3:
            broker.create(TOPIC, PARTITIONS)
            for partition in range(PARTITIONS):
                produce(broker, TOPIC, partition, _content(flags.messages // PARTITIONS))
            return _judged([_run(what, broker, s3, i) for what in WHATS for i in range(RUNS)])


def _content(count: int) -> Iterator[Message]:
    """Rows as Canal-JSON has them, about MESSAGE_BYTES each."""
    for i in range(count):
        noise, ms = hashlib.md5(b"%d" % i, usedforsecurity=False), FIRST_MS + i
        row = f'"id":"{i}","buyer":"{noise.digest()[0]}","state":"paid","total":"{i % 9973}.{i % 89 + 10}","note":"{noise.hexdigest()}"'
        types = '"id":"bigint","buyer":"bigint","state":"varchar(16)","total":"decimal(12,2)","note":"varchar(64)"'
        codes = '"id":-5,"buyer":-5,"state":12,"total":3,"note":12'
        head = (
            f'"id":0,"database":"shopdb","table":"orders","pkNames":["id"],"isDdl":false,"type":"INSERT","es":{ms},"ts":{ms + 250},"sql":""'
        )
        tail = f'"old":null,"data":[{{{row}}}],"_tidb":{{"commitTs":{ms << 18}}}'
        yield Message(i, f'{{{head},"sqlType":{{{codes}}},"mysqlType":{{{types}}},{tail}}}'.encode(), b"%010d" % i, ms)


def _run(what: str, broker: KafkaBroker, s3: EmbeddedS3, number: int) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.landing_live", "--child", what, broker.servers]
    lake = f"s3://{s3.bucket}/{what}-{number}"
    done = subprocess.run([*command, lake], check=True, capture_output=True, text=True, env=os.environ | s3.environment)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _judged(found: list[dict[str, Any]]) -> int:
    limit, over = (BUDGET_MB << 20) + ALLOWANCE, False
    for what in WHATS:
        runs = [run for run in found if run["what"] == what]
        rate = statistics.median(run["bytes"] / run["seconds"] / 1e6 for run in runs)
        cpu = statistics.median(run["cpu"] / run["bytes"] * 1e9 for run in runs)
        peak = max(run["peak"] for run in runs)
        over = over or (peak > limit and what in ("archive", "land"))
        sys.stdout.write(f"{what}: {rate:,.0f} MB/s, {cpu:.1f} CPU seconds a GB of messages, peak {peak >> 20:,} MiB\n")
    sys.stdout.write(f"must: {MUST} MB/s and {limit >> 20} MiB\n")
    return int(rate < MUST or over)


def _measured(what: str, servers: str, lake: str) -> dict[str, Any]:
    source: dict[str, Any] = {"kind": "kafka", "uri": servers, "in_flight": f"{BUDGET_MB} MB"}
    if what == "archive":
        source |= {"kind": "archive", "uri": lake, "layout": "canonical", "archiver": {"servers": servers}}
    feed = make_feed("none", topics=(TOPIC,), partitions=PARTITIONS, source=source, lake={"uri": lake})
    started, cpu = time.monotonic(), time.process_time()
    size = _archived(feed) if what == "archive" else land_hour(feed, HOUR).bytes if what == "land" else _taken(feed, cut=what == "cut")
    seconds, cpu = time.monotonic() - started, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return {"what": what, "bytes": size, "seconds": seconds, "cpu": cpu, "peak": peak}


def _archived(feed: Feed) -> int:
    from tidelake.archiver.follow import Goal, archive  # nor should the others pay for it

    return archive(feed, Goal(once=True), Event(), lambda _: None).bytes


def _taken(feed: Feed, *, cut: bool) -> int:
    """Read everything, and throw it away."""
    size = 0
    with Topics(feed.source.uri, {}, "benchmark") as topics, tempfile.TemporaryDirectory() as folder:
        places = [(TOPIC, number) for number in range(PARTITIONS)]
        for place, (low, high) in topics.bounds(places).items():
            cutter = ObjectCutter(Path(folder), lambda path, place=place: ObjectWriter(path, feed.name, "none", *place))  # type: ignore[misc]
            for batch in topics.read(place, low, high):
                size += int(pc.sum(payload(batch)).as_py())
                for done in cutter.add(batch) if cut else ():
                    done()
            for done in cutter.rest():
                done()
    return size


if __name__ == "__main__":
    sys.exit(main())
