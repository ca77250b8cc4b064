"""Avro messages of many rows as classic TiCDC writes them, in Confluent's framing with the TiDB extension, made column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.benchmarks.scale_rows import DELETE, INSERT, Rows, cells
from tidelake.demo.messages.encode_avro import AvroEncoder
from tidelake.demo.messages.model import PRIMARY_KEY, SourceColumn, SourceTable
from tidelake.tso import physical_ms
from tidelake.wire.cells.mysql_codes import HANDLE_KEY

_ID = SourceColumn.parse("id BIGINT NOT NULL")
_REST = ("buyer VARCHAR(40)", "amount DECIMAL(12,2)", "qty INT", "note VARCHAR(100)", "placed DATETIME", "state INT")
_COLUMNS = (replace(_ID, flag=_ID.flag | HANDLE_KEY | PRIMARY_KEY), *map(SourceColumn.parse, _REST))
_THERE = b"\x02"  # the second branch of ["null", …]


def schemas(names: Sequence[str]) -> dict[int, str]:
    """The registry: two schemas a table, of key and value, by ids that count from 1."""
    return AvroEncoder(SourceTable("shop", name, _COLUMNS) for name in names).schemas


def messages(table: int, rows: Rows, stamps: np.ndarray) -> tuple[pa.Array, pa.Array]:
    """Keys and values of a table's rows; the value of a delete is null. stamps: commit ts."""
    found = {name: _field(values) for name, values in cells(rows).items()}
    key = found.pop("id")
    op = pc.if_else(pa.array(rows.ops == INSERT), pa.scalar(b"\x02c"), pa.scalar(b"\x02u"))
    rest = [part for values in found.values() for part in (_THERE, values)]
    values = _join(_frame(2 * table + 2), key, *rest, op, varints(stamps), varints(physical_ms(stamps)))
    return _join(_frame(2 * table + 1), key), pc.if_else(pa.array(rows.ops == DELETE), pa.scalar(None, pa.binary()), values)


def varints(numbers: np.ndarray) -> pa.Array:
    """Avro's numbers: zigzag, seven bits a byte."""
    zigzag = (numbers << 1 ^ numbers >> 63).astype(np.uint64)
    groups = zigzag[:, None] >> np.arange(0, 70, 7, dtype=np.uint64)
    used = groups > 0
    used[:, 0] = True
    more = np.append(used[:, 1:], np.zeros((len(numbers), 1), bool), axis=1)
    raw = ((groups & np.uint64(0x7F)) | (more * np.uint64(0x80))).astype(np.uint8)[used]
    offsets = np.append(0, np.cumsum(used.sum(axis=1))).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(raw)])


def _field(values: pa.Array) -> pa.Array:
    if pa.types.is_integer(values.type):
        return varints(np.asarray(values))
    return _join(varints(np.asarray(pc.binary_length(values)).astype(np.int64)), values.cast(pa.binary()))


def _frame(schema_id: int) -> bytes:
    return b"\x00" + schema_id.to_bytes(4, "big")


def _join(*parts: pa.Array | bytes) -> pa.Array:
    return pc.binary_join_element_wise(*(pa.scalar(p) if isinstance(p, bytes) else p for p in parts), pa.scalar(b""))
