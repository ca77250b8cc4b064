"""Names of numpy's arrays by what they hold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
