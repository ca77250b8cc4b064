"""Decode standard base64 (RFC 4648, padded), strictly, for a whole Arrow column at once."""

from __future__ import annotations

from binascii import Error as BinasciiError
from binascii import a2b_base64

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelake.wire.kernels import base64_kernels


class Base64Error(ValueError):
    """A value is not base64. row: its index in the column."""

    def __init__(self, row: int) -> None:
        super().__init__(f"row {row} is not base64")
        self.row = row


def decode(column: pa.Array) -> pa.Array:
    """Decode a column of string or binary to binary; nulls stay. Raises Base64Error with the first wrong row."""
    if column.null_count == len(column):
        return pa.nulls(len(column), pa.binary())
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)
    text = np.frombuffer(column.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    data = decode_run(text, offsets - offsets[0])
    validity = None if not column.null_count else column.is_valid().buffers()[1]
    return pa.Array.from_buffers(pa.binary(), len(column), [validity, *data])


def decode_run(text: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32]) -> tuple[pa.Buffer, pa.Buffer]:
    """Return offsets and data of a binary column from the characters of all its values. Value i is text[offsets[i]:offsets[i+1]]."""
    data, starts = np.empty(len(text) // 4 * 3, np.uint8), np.empty(len(offsets), np.int32)
    text = text.view()
    text.flags.writeable = False  # one kind of array needs one compilation
    wrong = base64_kernels.decode(text, offsets, data, starts)
    if wrong != base64_kernels.ALL:
        raise Base64Error(wrong)
    return pa.py_buffer(starts), pa.py_buffer(data[: starts[-1]])


def is_base64(value: bytes) -> bool:
    """Return whether one value is padded standard base64."""
    try:
        a2b_base64(value, strict_mode=True)
    except BinasciiError:
        return False
    return len(value) % 4 == 0  # Python accepts `AAAA=`
