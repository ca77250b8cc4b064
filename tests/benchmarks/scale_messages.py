"""Open Protocol messages of many rows as TiCDC writes them, old values included, made column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.benchmarks.scale_rows import UPDATE, Rows, cells, join, text

BATCH = 16  # rows of a message
STATEMENTS = {
    "column": "ALTER TABLE `{name}` ADD COLUMN `extra` INT NOT NULL DEFAULT 7",
    "key": "ALTER TABLE `{name}` DROP PRIMARY KEY, ADD PRIMARY KEY (`buyer`, `id`)",
}
_VERSION = (1).to_bytes(8, "big")
_CHUNK_BYTES = 64 << 20
_HEADS = {
    "id": '"t":8,"h":true,"f":11',
    "buyer": '"t":15,"f":64',
    "amount": '"t":246,"f":64',
    "qty": '"t":3,"f":64',
    "note": '"t":15,"f":64',
    "placed": '"t":12,"f":64',
    "state": '"t":3,"f":64',
    "extra": '"t":3,"f":0',
}
_WIDE = {"note": '"t":251,"f":64'}
_KEYLESS = {"id": '"t":8,"f":0'}
_NEW_KEY = {"buyer": '"t":15,"h":true,"f":10'}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """keyless: no column is marked as key; statement: the one of STATEMENTS that was executed; zero_dates, wide: of `scale_rows.cells`."""

    keyless: bool = False
    zero_dates: bool = False
    statement: str | None = None
    wide: int = 0

    @property
    def chunk(self) -> int:
        """Rows to make at a time."""
        return max(1, _CHUNK_BYTES // self.wide) if self.wide else 4096 * BATCH

    @property
    def batch(self) -> int:
        """Rows of a message."""
        return 1 if self.wide else BATCH


def messages(name: str, rows: Rows, stamps: np.ndarray, shape: Shape) -> tuple[pa.Array, pa.Array]:
    """Keys and values. stamps: commit ts of the rows."""
    values = join('{"u":', _images(rows, shape))
    if (rows.ops == UPDATE).any():  # an hour inserts all rows, or updates all
        values = join(values, ',"p":', _images(rows.before(), shape))
    keys = join('{"ts":', text(stamps), f',"scm":"shop","tbl":"{name}","t":1}}')
    return _batches(keys, shape.batch, _VERSION), _batches(join(values, "}"), shape.batch)


def statements(kind: str, names: Sequence[str], ts: int) -> tuple[pa.Array, pa.Array]:
    """One of STATEMENTS for every table, in messages of their own."""
    keys = pa.array([f'{{"ts":{ts},"scm":"shop","tbl":"{name}","t":2}}' for name in names])
    values = pa.array([f'{{"q":"{STATEMENTS[kind].format(name=name)}","t":5}}' for name in names])
    return _batches(keys, 1, _VERSION), _batches(values, 1)


def resolved(ts: int) -> tuple[pa.Array, pa.Array]:
    """A resolved ts."""
    return _batches(pa.array([f'{{"ts":{ts},"t":3}}']), 1, _VERSION), _batches(pa.array([""]), 1)


def _images(rows: Rows, shape: Shape) -> pa.Array:
    heads = _HEADS | (_KEYLESS if shape.keyless else {}) | (_WIDE if shape.wide else {}) | (_NEW_KEY if shape.statement == "key" else {})
    parts, before = list[pa.Array | str](), "{"
    for name, values in cells(rows, zero_dates=shape.zero_dates, extra=shape.statement == "column", wide=shape.wide).items():
        quote = '"' if pa.types.is_string(values.type) else ""
        parts += [f'{before}"{name}":{{{heads[name]},"v":{quote}', values.cast(pa.string())]
        before = f"{quote}}},"
    return join(*parts, before.rstrip(",") + "}")


def _batches(parts: pa.Array, size: int, begin: bytes = b"") -> pa.Array:
    """Lengths and parts of so many rows each, in one."""
    parts = parts.cast(pa.binary())
    lengths = np.asarray(pc.binary_length(parts)).astype(">u8")
    heads = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(parts), [None, pa.py_buffer(lengths.tobytes())])
    framed = pc.binary_join_element_wise(heads.cast(pa.binary()), parts, b"")
    offsets = pa.array(np.append(np.arange(0, len(parts), size), len(parts)), pa.int32())
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, framed), b"")
    return pc.binary_join_element_wise(pa.scalar(begin), joined, b"") if begin else joined
