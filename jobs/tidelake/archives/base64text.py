"""Standard base64 (RFC 4648, padded) of a whole Arrow column at once, strictly.

Four characters are three bytes, so a column's characters are decoded as one run: padding counts as zero bits there, and the bytes
that stand for it are cut out afterwards.
"""

from __future__ import annotations

from binascii import Error as BinasciiError
from binascii import a2b_base64

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_PAD = ord("=")
_WRONG = 1 << 31
_QUADS = 1 << 15  # decoded at a time, so that all of it stays in the processor's cache


class Base64Error(ValueError):
    """A value that is not base64; row: its index in the column."""

    def __init__(self, row: int) -> None:
        super().__init__(f"row {row} is not base64")
        self.row = row


def decode(column: pa.Array) -> pa.Array:
    """string or binary → binary, nulls stay. Raises Base64Error with the first wrong row."""
    if column.null_count == len(column):
        return pa.nulls(len(column), pa.binary())
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)
    text = np.frombuffer(column.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    data = decode_run(text, offsets - offsets[0])
    validity = None if not column.null_count else column.is_valid().buffers()[1]
    return pa.Array.from_buffers(pa.binary(), len(column), [validity, *data])


def decode_run(text: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32]) -> tuple[pa.Buffer, pa.Buffer]:
    """Offsets and data of a binary column from the characters of all its values; value i is text[offsets[i]:offsets[i+1]]."""
    lengths = np.diff(offsets)
    ends = offsets[1:]
    filled = lengths > 0
    if (lengths & 3).any():
        raise Base64Error(_first_wrong(text, offsets))
    pads = np.zeros(len(lengths), np.int32)
    pads[filled] = text[ends[filled] - 1] == _PAD
    pads[filled] += pads[filled] & (text[ends[filled] - 2] == _PAD)
    data, sound = _decode_quads(text)
    if not sound or np.count_nonzero(text == _PAD) != pads.sum():
        raise Base64Error(_first_wrong(text, offsets))
    if pads.any():
        kept = np.ones(len(data), np.bool_)
        last = ends.astype(np.int64) // 4 * 3 - 1
        kept[last[pads >= 1]] = False
        kept[last[pads == 2] - 1] = False
        data = data[kept]
    starts = np.zeros(len(offsets), np.int32)
    np.cumsum(lengths // 4 * 3 - pads, out=starts[1:])
    return pa.py_buffer(starts), pa.py_buffer(data)


def _decode_quads(text: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint8], bool]:
    """Every four characters as three bytes; False when one is neither of the alphabet nor padding."""
    quads = len(text) // 4
    out = np.empty((quads, 3), np.uint8)
    wrong = 0
    for start in range(0, quads, _QUADS):
        pairs = np.frombuffer(text[4 * start : 4 * (start + _QUADS)].tobytes(), "<u2")
        high, low = _PAIRS[pairs[0::2]], _PAIRS[pairs[1::2]]
        wrong |= int((high | low).max())
        bits = ((high << 12) | low).astype("<u4", copy=False)
        out[start : start + _QUADS] = bits.view(np.uint8).reshape(-1, 4)[:, 2::-1]
    return out.reshape(-1), not wrong & _WRONG


def _pairs() -> npt.NDArray[np.uint32]:
    """The twelve bits of two characters, by the number that they are as little-endian uint16."""
    six = np.full(256, _WRONG, np.uint32)
    six[np.frombuffer(_ALPHABET, np.uint8)] = np.arange(64, dtype=np.uint32)
    six[_PAD] = 0
    first, second = six[np.newaxis, :], six[:, np.newaxis]
    return np.where((first | second) & _WRONG, np.uint32(_WRONG), (first << 6) | second).ravel()


_PAIRS = _pairs()


def _first_wrong(text: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32]) -> int:
    raw = text.tobytes()
    for row in range(len(offsets) - 1):
        if not is_base64(raw[offsets[row] : offsets[row + 1]]):
            return row
    return 0


def is_base64(value: bytes) -> bool:
    """Whether one value is padded standard base64."""
    try:
        a2b_base64(value, strict_mode=True)
    except BinasciiError:
        return False
    return len(value) % 4 == 0  # Python lets `AAAA=` pass
