"""Read, archive or land the live topic on a broker in one of several ways; prints one JSON object. A child of landing_live.py.

`plain` is the loop that one would write first: take messages one by one, put a row group of them into a Parquet file, upload the file.
"""

from __future__ import annotations

import io
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from confluent_kafka import Consumer, TopicPartition

from tests.benchmarks.landing_live import PARTITIONS, TOPIC
from tests.land.archive import HOUR, make_feed
from tidelake.config.feed import Feed
from tidelake.history.event import MESSAGE
from tidelake.io.kafka import Topics
from tidelake.land import land_hour
from tidelake.land.store.objects import ObjectWriter
from tidelake.land.store.spool import payload
from tidelake.land.store.stream import ObjectCutter

GROUP, OBJECT = 10_000, 100_000  # messages of the plain loop's row groups and objects


def main(what: str, servers: str, lake: str, budget_mb: int) -> dict[str, Any]:
    """Bytes of messages, seconds, CPU seconds, peak memory of this process in bytes."""
    source: dict[str, Any] = {"kind": "kafka", "uri": servers, "in_flight": f"{budget_mb} MB"}
    if what == "archive":
        source |= {"kind": "archive", "uri": lake, "layout": "canonical", "archiver": {"servers": servers}}
    feed = make_feed("none", topics=(TOPIC,), partitions=PARTITIONS, source=source, lake={"uri": lake})
    started, cpu = time.monotonic(), time.process_time()
    size = WAYS[what](feed)
    seconds, cpu = time.monotonic() - started, time.process_time() - cpu
    return {"bytes": size, "seconds": seconds, "cpu": cpu, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10}


def _archive(feed: Feed) -> int:
    from tidelake.land.archiver.follow import Goal, archive  # the others need not pay for it

    return archive(feed, Goal(once=True), Event()).bytes


def _take(feed: Feed, *, cut: bool = False) -> int:
    """Read everything with one thread, and throw it away, or write it to local disk."""
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


def _plain(feed: Feed) -> int:
    client, size = boto3.client("s3"), 0
    consumer = Consumer({"bootstrap.servers": feed.source.uri, "group.id": "plain", "enable.auto.commit": False})
    for number in range(PARTITIONS):
        low, high = consumer.get_watermark_offsets(TopicPartition(TOPIC, number))
        consumer.assign([TopicPartition(TOPIC, number, low)])
        for first in range(low, high, OBJECT):
            out, last = io.BytesIO(), min(first + OBJECT, high)
            with pq.ParquetWriter(out, MESSAGE, compression="zstd") as writer:
                for begin in range(first, last, GROUP):
                    rows = [_row(consumer) for _ in range(min(GROUP, last - begin))]
                    size += sum(len(row["key"]) + len(row["value"]) for row in rows)
                    writer.write_table(pa.Table.from_pylist(rows, MESSAGE))
            bucket, _, prefix = feed.lake.uri.removeprefix("s3://").partition("/")
            client.put_object(Bucket=bucket, Key=f"{prefix}/{number}-{first}.parquet", Body=out.getvalue())
    consumer.close()
    return size


def _row(consumer: Consumer) -> dict[str, Any]:
    message = consumer.poll(30)
    assert message is not None
    assert message.error() is None
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp_ms": message.timestamp()[1],
        "key": message.key(),
        "value": message.value(),
        "headers": [{"key": key, "value": value} for key, value in message.headers() or ()],
    }


WAYS: dict[str, Callable[[Feed], int]] = {
    "take": _take,
    "cut": lambda feed: _take(feed, cut=True),
    "archive": _archive,
    "land": lambda feed: land_hour(feed, HOUR).bytes,
    "plain": _plain,
}

if __name__ == "__main__":
    os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    sys.stdout.write("\n" + json.dumps(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))))
