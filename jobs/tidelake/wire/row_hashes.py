"""Hashes of rows in Arrow columns: equal rows have equal hashes, whatever files they come from (wire.kernels.row_hashes)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.wire.kernels.arrays import Flags, Ints, Longs, Words
from tidelake.wire.kernels.row_hashes import begin, finish, take_bytes, take_lists, take_words

_FLAGS = 64  # columns whose NULLs one word has


def row_hashes(columns: Sequence[pa.Array], key: tuple[int, int]) -> Words:
    """Return the hash of each row, two words each.

    Args:
        columns: At least one column, of single values or of lists of numbers or bytes. -0.0 and 0.0 are equal, and so are NULLs.
        key: Key of the hash. Hashes of different keys cannot be compared.
    """
    rows = len(columns[0])
    states, nulls, out = begin(rows, key), np.zeros(rows, np.uint64), np.empty((rows, 2), np.uint64)
    for n, cells in enumerate(columns):
        if n and n % _FLAGS == 0:
            take_words(states, nulls)
            nulls[:] = 0
        _take(states, cells)
        if cells.null_count:
            nulls |= np.asarray(cells.is_null()).astype(np.uint64) << np.uint64(n % _FLAGS)
    take_words(states, nulls)
    finish(states, out)
    return out


def _take(states: Words, cells: pa.Array) -> None:
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    kind = cells.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        offsets, data = offsets_of(cells), cells.buffers()[2]
        take_bytes(states, bytes_of(data), offsets, nulls_of(cells))
    elif pa.types.is_list(kind) and pa.types.is_binary(kind.value_type):
        _take_lists(states, cells)
    elif pa.types.is_list(kind):
        values = pc.add(cells.values, pa.scalar(0, kind.value_type))  # -0.0 becomes 0.0
        take_bytes(states, bytes_of(values.buffers()[1]), offsets_of(cells) * (kind.value_type.bit_width // 8), nulls_of(cells))
    else:
        for words in words_of(cells):
            take_words(states, words)


def _take_lists(states: Words, cells: pa.Array) -> None:
    values = cells.values
    there, data = np.asarray(values.is_valid()), bytes_of(values.buffers()[2])
    take_lists(states, data, _offsets(values), there, _offsets(cells), nulls_of(cells))


def words_of(cells: pa.Array) -> list[Words]:
    """Return the 64-bit words of cells of fixed size: one of a number, date or time, two of a decimal. NULL is 0."""
    kind = cells.type
    if pa.types.is_decimal(kind):
        both = decimal_words(cells)
        return [np.ascontiguousarray(both[:, n]).view(np.uint64) for n in (0, 1)]
    if pa.types.is_floating(kind):
        plain = np.asarray(pc.add(cells.cast(pa.float64()).fill_null(0), 0.0))  # -0.0 becomes 0.0
        return [plain.view(np.uint64)]
    if kind.bit_width == 32:
        cells = cells.view(pa.int32())
    return [np.asarray(cells.cast(pa.int64()).fill_null(0)).view(np.uint64)]


def decimal_words(cells: pa.Array) -> Longs:
    """Return (low, high) words of decimals; of NULL 0."""
    found = np.frombuffer(cells.buffers()[1], np.int64, 2 * len(cells), 16 * cells.offset).reshape(-1, 2)
    return np.where(np.asarray(cells.is_null())[:, None], 0, found) if cells.null_count else found


def offsets_of(cells: pa.Array) -> Longs:
    """Return where the values of strings, bytes or lists begin, and the end of the last."""
    return _offsets(cells).astype(np.int64)


def _offsets(cells: pa.Array) -> Ints:
    return np.frombuffer(cells.buffers()[1], np.int32, len(cells) + 1, 4 * cells.offset)


def bytes_of(data: pa.Buffer | None) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return a buffer's bytes; one 0 for none."""
    return np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)


def nulls_of(cells: pa.Array) -> Flags:
    """Return which cells are NULL."""
    return np.asarray(cells.is_null()) if cells.null_count else np.zeros(len(cells), np.bool_)
