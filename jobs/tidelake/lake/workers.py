"""What every task in a Spark worker does around its work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from tidelake.lake.worker_errors import told
from tidelake.lake.worker_secrets import Secrets, take_s3


@contextmanager
def worker(secrets: Secrets) -> Iterator[None]:
    """Reach S3 as the driver does, hand errors over, and give memory back: Spark keeps workers, and theirs is not another's."""
    with told():
        take_s3(secrets.s3)
        try:
            yield
        finally:
            pa.default_memory_pool().release_unused()
