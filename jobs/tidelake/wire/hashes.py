"""Hashes of masked cells under one key (docs/masking.md). A value that comes again soon is not hashed again."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.wire.kernels.arrays import Bytes, Ints, Longs

if TYPE_CHECKING:
    from tidelake.wire.key_numbers import KeyNumbers

HASH_DIGITS = 64
_PAIRS = np.frombuffer(b"".join(b"%02x" % n for n in range(256)), np.uint16)  # the two hex digits of each byte
_MOST = 1 << 15  # values that are remembered from one batch to the next
_NONE = np.empty((0, HASH_DIGITS // 2), np.uint8)
_NUMBERS = b"tidelake: the key of the numbers of values"


@dataclass(slots=True)
class Hashes:
    """Hashes values. numbers: of the values that were hashed before; hashes: theirs, by number."""

    key: bytes = field(repr=False)
    numbers: KeyNumbers | None = None
    hashes: npt.NDArray[np.uint8] = field(default_factory=lambda: _NONE, repr=False)

    def of(self, cells: pa.BinaryArray) -> pa.BinaryArray:
        """Return the hash of each cell, 32 bytes; NULL stays NULL."""
        there = np.flatnonzero(np.asarray(cells.is_valid()))
        which = np.zeros(len(cells), np.int32)
        which[there] = self.numbered(cells, there)
        return self.taken().take(pa.array(which, mask=np.asarray(cells.is_null())))

    def numbered(self, cells: pa.BinaryArray, at: Longs) -> Ints:
        """Return for each of these places in the cells the number of its value's hash among those that `taken` returns next."""
        from tidelake.wire.kernels.row_hashes import begin, hash_values  # both compile
        from tidelake.wire.key_numbers import KeyNumbers

        if self.numbers is None:
            self.numbers = KeyNumbers()
        known, words = self.numbers.count, np.empty((len(at), 2), np.uint64)
        hash_values(begin(1, self._numbers_key()), *column_of(cells), at, words)
        found = self.numbers.added(words)
        if self.numbers.count > known:
            new = np.flatnonzero(np.diff(np.maximum.accumulate(np.maximum(found, known - 1)), prepend=known - 1))
            self.hashes = np.concatenate([self.hashes, self._hashed(cells.take(pa.array(at[new])))])
        return found

    def taken(self) -> pa.BinaryArray:
        """Return the hashes by number, 32 bytes each. Too many are forgotten, and numbers begin anew."""
        count, size = self.hashes.shape
        found = pa.FixedSizeBinaryArray.from_buffers(pa.binary(size), count, [None, pa.py_buffer(self.hashes)])
        if count > _MOST:
            self.numbers, self.hashes = None, _NONE
        return found.cast(pa.binary())

    def _hashed(self, values: pa.BinaryArray) -> npt.NDArray[np.uint8]:
        from tidelake.wire.kernels.hmac_sha256 import hmac_sha256  # compiles

        return hmac_sha256(self.key, *content_of(values))

    def _numbers_key(self) -> tuple[int, int]:
        """The key of the numbers' hashes: who does not know it cannot write values with equal ones."""
        own = hmac.digest(self.key, _NUMBERS, "sha256")
        return int.from_bytes(own[:8]), int.from_bytes(own[8:16])


def hex_digits(hashes: pa.BinaryArray) -> pa.StringArray:
    """Return hashes as hex digits in lower case; NULL stays NULL. Events of earlier versions have the digits, which stay as they are."""
    data, offsets = content_of(hashes)
    buffers = [pa.py_buffer((2 * offsets).astype(np.int32)), pa.py_buffer(_PAIRS[data])]
    digits = pa.StringArray.from_buffers(len(hashes), *buffers)
    if (is_text := np.diff(offsets) == HASH_DIGITS).any():
        digits = pc.coalesce(pc.if_else(pa.array(is_text), hashes, pa.scalar(None, pa.binary())).cast(pa.string()), digits)
    return pc.if_else(hashes.is_valid(), digits, pa.scalar(None, pa.string())) if hashes.null_count else digits


def content_of(cells: pa.BinaryArray) -> tuple[Bytes, Longs]:
    """Return the values' bytes, and where each begins, and the end of the last."""
    _, offsets, data = cells.buffers()
    at = np.frombuffer(offsets, np.int32)[cells.offset : cells.offset + len(cells) + 1].astype(np.int64)
    content = np.frombuffer(data, np.uint8)[at[0] : at[-1]] if data is not None and at[-1] > at[0] else np.zeros(0, np.uint8)
    return content, at - at[0]


def column_of(cells: pa.BinaryArray) -> tuple[Bytes, Ints]:
    """Return the bytes of the values' buffer, and where each value begins in it, and the end of the last."""
    _, offsets, data = cells.buffers()
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return content, np.frombuffer(offsets, np.int32)[cells.offset : cells.offset + len(cells) + 1]
