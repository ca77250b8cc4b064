"""What every task in a Spark worker does around its work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from tidelake.lake import s3_access
from tidelake.lake.worker_errors import told


@contextmanager
def worker(s3: str) -> Iterator[None]:
    """Reach S3 as s3_access.given() says, hand errors over, and give memory back: Spark keeps workers, and theirs is not another's."""
    with told():
        s3_access.take(s3)
        try:
            yield
        finally:
            pa.default_memory_pool().release_unused()
