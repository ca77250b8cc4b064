"""What every task in a Spark worker does around its work."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from zipimport import zipimporter

import pyarrow as pa

from tidelake.spark.worker_errors import errors_as_text
from tidelake.spark.worker_secrets import Secrets, take_s3


@contextmanager
def worker(secrets: Secrets) -> Iterator[None]:
    """Reach S3 as the driver does, hand errors over, and give memory back: Spark keeps workers, and theirs is not another's."""
    with errors_as_text():
        take_s3(secrets.s3)
        try:
            yield
        finally:
            pa.default_memory_pool().release_unused()
            settle()


def settle() -> None:
    """In a worker that Spark keeps, make what Spark does before its next task cheap.

    Before each task PySpark invalidates Python's import caches, for which every package of pyspark.zip reads the archive's directory again,
    and after it collects garbage, for which Python looks at everything that was ever imported: together ten times the CPU time of a small
    task. Finders of archives are made again where an import asks for them.
    """
    if "SPARK_REUSE_WORKER" not in os.environ:
        return
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]
    if not gc.get_freeze_count():  # once: what is frozen is never collected
        gc.collect()
        gc.freeze()
