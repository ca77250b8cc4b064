"""Numbers for row hashes: 0 for the first hash, 1 for the next different one, and so on."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from tidelake.wire.kernels.arrays import Ints, Words
from tidelake.wire.kernels.key_numbers import NONE, number, spread

Array = TypeVar("Array", bound=npt.NDArray[Any])
_LEAST = 1 << 12  # places of a new table


class KeyNumbers:
    """The numbers of all hashes that were added."""

    def __init__(self) -> None:
        self.count = 0
        self._known = np.empty((_LEAST // 2, 2), np.uint64)
        self._table = np.full(_LEAST, NONE, np.int32)

    def added(self, hashes: Words) -> Ints:
        """Return the number of each hash; unknown ones get the next numbers."""
        self._grow(self.count + len(hashes))
        out = np.empty(len(hashes), np.int32)
        self.count = number(self._table, self._known, self.count, hashes, out, True)
        return out

    def found(self, hashes: Words) -> Ints:
        """Return the number of each hash, NONE for an unknown one."""
        out = np.empty(len(hashes), np.int32)
        number(self._table, self._known, self.count, hashes, out, False)
        return out

    def _grow(self, most: int) -> None:
        if 2 * most <= len(self._table):
            return
        size = 1 << (2 * most - 1).bit_length()
        known = np.empty((size // 2, 2), np.uint64)
        known[: self.count] = self._known[: self.count]
        self._known, self._table = known, np.full(size, NONE, np.int32)
        spread(self._table, known, self.count)


def grown(values: Array, size: int, empty: int) -> Array:
    """Return an array with room for at least so many members, the new ones `empty`. It doubles, so that growing is cheap."""
    if size <= len(values):
        return values
    out = np.full((max(size, 2 * len(values)), *values.shape[1:]), empty, values.dtype)
    out[: len(values)] = values
    return cast(Array, out)
