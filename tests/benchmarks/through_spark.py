"""Measure decode through Spark, from landed Parquet in an S3 server to the events table; prints one JSON object. A child of its section.

Beside it, in turns, the same finished EVENT rows from Arrow files to the same table, by Iceberg's writer for Spark. Both go once
unmeasured: the JVM compiles, Python's workers start.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.benchmarks import arrow_files
from tests.benchmarks.measure import Used, measured
from tests.benchmarks.workload import FEEDS, make
from tidelake.config.feed import load_feed
from tidelake.config.lake_paths import CATALOG, events_table
from tidelake.decode.landed_source import DecodeJob, LandedReader
from tidelake.decode.stage import decode_hour
from tidelake.demo.embedded_s3 import EmbeddedS3
from tidelake.history.event import EVENT
from tidelake.lake.opened import Lake
from tidelake.land.store.manifest import newest
from tidelake.run import kept_session, land
from tidelake.spark.part_reader import read_parts
from tidelake.spark.worker_secrets import NONE
from tidelake.tso import format_hour

WRITTEN = "1970-01-01T00"  # the hour that the Arrow files' rows are written to
_WRITER = (
    "write.parquet.compression-codec",
    "write.parquet.dict-size-bytes",
    "write.parquet.row-group-size-bytes",
    "write.distribution-mode",
    "write.spark.fanout.enabled",
)


def main(folder: Path, protocol: str, rows: int, passes: int) -> dict[str, Any]:
    """What was measured, in seconds, bytes and counts."""
    with _opened(folder, protocol, rows) as (lake, hour, events):
        landed = land(lake, hour)
        found = newest(lake.store, lake.feed.name, format_hour(hour))
        assert found is not None
        feed = lake.feed
        job = DecodeJob(lake_uri=feed.lake.uri, feed=feed.name, objects=list(found.objects), protocol=protocol, options=feed.options)
        files, alone = _finished(job, folder / "arrow")
        runs = Runs(lake, job, files)
        steps = {"first": _used(lambda: decode_hour(lake, hour))}
        runs.write()
        turns = [_used(runs.write)]
        for _ in range(passes):
            turns += [_used(lambda: decode_hour(lake, hour, redo=True)), _used(runs.write)]
        steps |= {"decode to nowhere": _used(runs.decode_to_nowhere), "files to nowhere": _used(runs.read_to_nowhere)}
        table = lake.catalog.load(events_table(lake.feed.name))
        counts = [_counts(lake, h) for h in (format_hour(hour), WRITTEN)]
        assert counts[0] == counts[1], counts
        writer = {name: table.properties.get(name, "") for name in _WRITER}
    return {
        "events": events,
        "counts": counts[0],
        "bytes": landed.bytes,
        "objects": len(found.objects),
        "writer": writer,
        "alone": alone,
        "write": turns[::2],
        "decode": turns[1::2],
        **steps,
    }


@contextmanager
def _opened(folder: Path, protocol: str, rows: int) -> Iterator[tuple[Lake, Any, int]]:
    """A lake in an S3 server of its own with Spark running, the hour to decode, and its row events."""
    with EmbeddedS3(folder / "s3") as s3:
        os.environ.update(s3.environment)
        hour = make(folder / "workload", rows, protocol)
        feed = load_feed(hour.folder / "schemas", FEEDS[protocol], hour.variables("lake", "s3://lake/benchmark"))
        with kept_session("benchmark"), Lake.of(feed) as lake:
            yield lake, hour.workload.hours[0], hour.events


@dataclass(frozen=True, slots=True)
class Runs:
    """The ways that rows go. files: the same rows, finished."""

    lake: Lake
    job: DecodeJob
    files: list[str]

    def write(self) -> None:
        """Arrow files to the events table, by Spark."""
        rows = self._finished().withColumn("hour", F.lit(WRITTEN))
        rows.writeTo(f"{CATALOG}.{events_table(self.lake.feed.name)}").overwrite(F.col("hour") == F.lit(WRITTEN))

    def read_to_nowhere(self) -> None:
        """Arrow files to Spark's rows, which nobody takes."""
        self._finished().write.format("noop").mode("overwrite").save()

    def decode_to_nowhere(self) -> None:
        """Landed objects to Spark's rows, which nobody takes."""
        rows = read_parts(self.lake.spark, LandedReader(self.job))
        rows.write.format("noop").mode("overwrite").save()

    def _finished(self) -> DataFrame:
        return read_parts(self.lake.spark, arrow_files.ArrowFiles(self.files, EVENT))


def _finished(job: DecodeJob, folder: Path) -> tuple[list[str], float]:
    """Arrow files with what the product's reader gives, one a landed object, and the CPU seconds of that reading and decoding alone."""
    folder.mkdir(parents=True)
    reader, files, spent = LandedReader(job), list[str](), 0.0
    next(reader.rows(reader.parts[0], NONE))  # compiled code is read from disk
    for number, part in enumerate(reader.parts):
        files.append(str(folder / f"{number}.arrow"))
        with pa.OSFile(files[-1], "wb") as out, pa.ipc.new_file(out, EVENT) as writer:
            batches, started = reader.rows(part, NONE), time.process_time()
            while (batch := next(batches, None)) is not None:
                spent += time.process_time() - started
                writer.write_batch(batch)
                started = time.process_time()
            spent += time.process_time() - started
    return files, spent


def _counts(lake: Lake, hour: str) -> dict[str, int]:
    """Rows by kind."""
    table, counts = lake.catalog.load(events_table(lake.feed.name)), Counter[str]()
    for file in table.files({"hour": hour}, [], table.main):
        counts[file.partition[1]] += file.rows
    return dict(counts)


def _used(action: Callable[[], object]) -> dict[str, Any]:
    with measured() as used:
        action()
    return _plain(used)


def _plain(used: Used) -> dict[str, Any]:
    return {"seconds": used.seconds, "cpu": used.cpu_of, "worker": used.worker, "peak": used.peak}


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
