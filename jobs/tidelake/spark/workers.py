"""Setup and cleanup around every task in a Spark worker."""

from __future__ import annotations

import gc
import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from zipimport import zipimporter

import pyarrow as pa

from tidelake.spark.worker_errors import errors_as_text
from tidelake.spark.worker_secrets import Secrets, take_s3


@contextmanager
def worker(secrets: Secrets) -> Iterator[None]:
    """Use the driver's S3 settings, send errors to the driver, and release memory afterwards, because Spark reuses worker processes."""
    with errors_as_text():
        acknowledge()
        take_s3(secrets.s3)
        try:
            yield
        finally:
            pa.default_memory_pool().release_unused()
            settle()


def acknowledge() -> None:
    """Acknowledge at once what Spark has sent to this worker.

    Spark's next bytes, a task's rows, wait until its function is acknowledged (Nagle's algorithm). On a connection that has been used for
    a while, Linux delays that by 40 ms (tcp(7), TCP_QUICKACK).
    """
    if "SPARK_REUSE_WORKER" not in os.environ or sys.platform != "linux":
        return
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the folder's own is closed by now
            if stat.S_ISSOCK(entry.stat().st_mode):
                with socket.socket(fileno=os.dup(int(entry.name))) as connection:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


@contextmanager
def all_cores() -> Iterator[None]:
    """Let Arrow use as many threads as this process may use cores, for the only task of a job.

    In a worker it has one otherwise: Spark sets OMP_NUM_THREADS to `spark.task.cpus`, which Arrow heeds.
    """
    before = pa.cpu_count()
    pa.set_cpu_count(len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1)
    try:
        yield
    finally:
        pa.set_cpu_count(before)


def settle() -> None:
    """Make the work that Spark does before a reused worker's next task cheap.

    Before each task PySpark invalidates Python's import caches, for which every package of pyspark.zip reads the archive's directory again.
    After it PySpark collects garbage, for which Python visits every imported object. Together they take ten times the CPU time of a small
    task. Imports recreate the archive finders that this function removes.
    """
    if "SPARK_REUSE_WORKER" not in os.environ:
        return
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]
    _freeze(len(sys.modules))


@cache
def _freeze(modules: int) -> None:
    """Take what is there from the collector, once for each number of imported modules: frozen objects are never collected.

    Python 3.12 begins with some that are frozen.
    """
    gc.collect()
    gc.freeze()
