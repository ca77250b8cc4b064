"""Iceberg's bucket transform in workers. The only user of pyiceberg_core; importing pyiceberg would take a worker two seconds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg_core import transform


def buckets_of(values: pa.Array, buckets: int) -> npt.NDArray[np.int64]:
    """Return the bucket of each value, for values without NULL (Iceberg's spec, appendix B)."""
    return np.asarray(transform.bucket(values, buckets)).astype(np.int64)
