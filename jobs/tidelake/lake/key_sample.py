"""Select the keys whose old values are compared: one in `share`, different ones in every window. SQL and Arrow select the same keys.

Both hash a key's columns with Iceberg's bucket transform (spec, appendix B).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelake.config.lake_paths import CATALOG
from tidelake.spark.buckets import buckets_of
from tidelake.spark.sql_casts import quote

_HASHES = (1 << 31) - 1  # number of buckets; with it a value's bucket is its whole hash
_SPREADS = 1_640_531_527  # odd; its product with 31 bits fits into 63
_LOW, _TOP = (1 << 32) - 1, 20  # of the product's 32 low bits those above, which all bits of the hash move


def picked(key: Sequence[str], until_ts: int, share: int) -> str:
    """Return SQL, boolean: whether a row's key is selected. key: columns that Iceberg can bucket."""
    hashes = (f"coalesce({CATALOG}.system.bucket({_HASHES}, {quote(k)}), 0)" for k in key)
    summed = f"(({' + '.join(f'CAST({h} AS BIGINT)' for h in hashes)} + {_of_window(until_ts)}) & {_HASHES})"
    return f"pmod(shiftright({summed} * {_SPREADS}L & {_LOW}L, {_TOP}), {share}) = 0"


def are_picked(key: Sequence[pa.Array], until_ts: int, share: int) -> npt.NDArray[np.bool_]:
    """Return whether each row's key is selected, for keys without NULL."""
    summed: npt.NDArray[np.int64] = np.sum([buckets_of(k, _HASHES) for k in key], axis=0)
    spread = ((summed + _of_window(until_ts)) & _HASHES) * _SPREADS & _LOW
    chosen: npt.NDArray[np.bool_] = (spread >> _TOP) % share == 0
    return chosen


def _of_window(until_ts: int) -> int:
    return (until_ts ^ until_ts >> 18) & _HASHES
