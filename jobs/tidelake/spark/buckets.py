"""Iceberg's buckets in workers. The only user of pyiceberg_core, which does it; pyiceberg would take a worker two seconds to import."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg_core import transform


def buckets_of(values: pa.Array, buckets: int) -> npt.NDArray[np.int64]:
    """The bucket of each value, none of them NULL (Iceberg's spec, appendix B)."""
    return np.asarray(transform.bucket(values, buckets)).astype(np.int64)
