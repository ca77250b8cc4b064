"""Hashes of masked cells under one key (docs/masking.md). A value that comes again soon is not hashed again."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.wire.kernels.arrays import Bytes, Longs

HASH_DIGITS = 64
_PAIRS = np.frombuffer(b"".join(b"%02x" % n for n in range(256)), np.uint16)  # the two hex digits of each byte
_MOST = 1 << 15  # values that are remembered; looking one up costs more with more


@dataclass(slots=True)
class Hashes:
    """Hashes values. known: values that were hashed before, with their hashes."""

    key: bytes = field(repr=False)
    known: pa.BinaryArray = field(default_factory=lambda: pa.array([], pa.binary()))
    hashes: pa.BinaryArray = field(default_factory=lambda: pa.array([], pa.binary()))

    def of(self, cells: pa.BinaryArray) -> tuple[pa.BinaryArray, pa.Int32Array]:
        """Return hashes of 32 bytes, and for each cell the place of its own among them; NULL stays NULL."""
        encoded = cells.dictionary_encode()
        values, at = encoded.dictionary, pc.index_in(encoded.dictionary, self.known)
        new = values.filter(at.is_null())
        if 2 * len(new) > len(values) or len(self.known) + len(new) > _MOST:
            self.known, self.hashes = values, self._hashed(values)
            return self.hashes, encoded.indices
        if len(new):
            self.known, self.hashes = pa.concat_arrays([self.known, new]), pa.concat_arrays([self.hashes, self._hashed(new)])
            at = pc.index_in(values, self.known)
        return self.hashes, at.take(encoded.indices)

    def _hashed(self, values: pa.BinaryArray) -> pa.BinaryArray:
        from tidelake.wire.kernels.hmac_sha256 import DIGEST, hmac_sha256  # compiles

        data, offsets = content_of(values)
        found = hmac_sha256(self.key, data, offsets)
        return pa.FixedSizeBinaryArray.from_buffers(pa.binary(DIGEST), len(values), [None, pa.py_buffer(found)]).cast(pa.binary())


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
