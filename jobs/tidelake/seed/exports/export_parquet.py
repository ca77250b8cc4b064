"""Rows of an export's Parquet files as canonical text. This module and docs/seed.md list the Arrow types that each MySQL type may have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidelake.archives.readers.parquet_pages import most_rows
from tidelake.errors import ContractError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.seed.exports.export_cells import canonical

BATCH_ROWS, BATCH_BYTES = 10_000, 8 << 20
_SECOND = len("2026-01-05 10:00:00")
_CLOCK = len("10:00:00")
_NUMBERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit", "decimal"})
_FLOATS = frozenset({"float", "double"})


def parquet_columns(path: Path) -> list[str]:
    """The names of a file's columns."""
    names: list[str] = pq.read_schema(path).names
    return names


def read_parquet(path: Path, columns: Sequence[tuple[str, MysqlType]], time_zone: str, *, names_sent: bool) -> Iterator[pa.ListArray]:
    """Yield batches of rows with the cells in column order.

    Args:
        path: A local file.
        columns: Names as in the file, with types.
        time_zone: Time zone of the text of instants.
        names_sent: The feed's protocol sends ENUM and SET as names.

    Raises:
        ContractError: A column has a type that cannot be read.
    """
    with pq.ParquetFile(path) as file:
        for batch in _batches(file, path, [name for name, _ in columns]):
            texts = [text_of(batch.column(name), mysql, time_zone, name) for name, mysql in columns]
            n, width = batch.num_rows, len(columns)
            order = (np.arange(width) * n + np.arange(n)[:, None]).ravel()  # from column order to row order
            starts = pa.array(np.arange(n + 1) * width, pa.int32())
            rows = pa.ListArray.from_arrays(starts, pa.concat_arrays(texts).take(pa.array(order)))
            yield canonical(rows, [mysql for _, mysql in columns], names_sent=names_sent)


def _batches(file: pq.ParquetFile, path: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
    """The columns in batches of at most BATCH_ROWS rows and about BATCH_BYTES."""
    with pa.memory_map(str(path)) as content:
        data = memoryview(content.read_buffer()).cast("B")
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            rows = min(BATCH_ROWS, BATCH_BYTES * group.num_rows // max(group.total_byte_size, 1), most_rows(data, group, names))
            yield from file.iter_batches(max(1, rows), [number], names)


def text_of(values: pa.Array, mysql: MysqlType, time_zone: str, name: str) -> pa.BinaryArray:
    """Return a column as text; BIT, YEAR, ENUM and SET as exports write them. Raises ContractError."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return values.cast(pa.binary())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return values.cast(pa.large_string()).cast(pa.large_binary()).cast(pa.binary())
    text = _of_number(values, mysql) if mysql.word in _NUMBERS | _FLOATS else _of_time(values, mysql, time_zone)
    if text is None:
        raise ContractError(
            f"column {name}: {mysql.sql} cannot be read from Parquet's {kind}",
            remedy="docs/seed.md lists the types that can be read; text as the server prints it always can",
        )
    return text.cast(pa.binary())


def _of_number(values: pa.Array, mysql: MysqlType) -> pa.Array | None:
    """Text of numbers; None if the Arrow type does not give the number exactly."""
    kind = values.type
    if pa.types.is_floating(kind):
        return values.cast(pa.string()) if mysql.word in _FLOATS else None
    if pa.types.is_boolean(kind):
        values = values.cast(pa.uint8()) if mysql.word in ("tinyint", "bit") else values
    if mysql.word == "bit":
        return _bits(values) if not pa.types.is_boolean(values.type) else None
    if pa.types.is_decimal(kind):
        return _decimal_text(values) if mysql.word not in _FLOATS else None
    return values.cast(pa.string()) if pa.types.is_integer(values.type) and mysql.word not in _FLOATS else None


def _of_time(values: pa.Array, mysql: MysqlType, time_zone: str) -> pa.Array | None:
    """Text of times; None if a time zone would be lost or the Arrow type is no time."""
    kind = values.type
    if pa.types.is_date(kind) and mysql.word == "date":
        return values.cast(pa.date32()).cast(pa.string())
    if pa.types.is_time(kind) and mysql.word == "time":
        return _cut(values.cast(pa.string()), _CLOCK, mysql.fraction_digits)
    if pa.types.is_timestamp(kind) and (mysql.word == "timestamp" or (mysql.word == "datetime" and kind.tz is None)):
        local = values if kind.tz is None else pc.local_timestamp(values.cast(pa.timestamp(kind.unit, time_zone)))
        return _cut(local.cast(pa.timestamp("us")).cast(pa.string()), _SECOND, mysql.fraction_digits)
    return None


def _cut(text: pa.StringArray, whole: int, digits: int | None) -> pa.StringArray:
    """Cut text to the column's fraction digits. Text with further non-zero digits stays, and then does not fit."""
    width = whole + (digits + 1 if digits else 0)
    padded = pc.utf8_rpad(
        pc.if_else(pc.equal(pc.utf8_length(text), whole), pc.binary_join_element_wise(text, "", "."), text), whole + 7, "0"
    )
    rest = pc.utf8_ltrim(pc.utf8_slice_codeunits(padded, width), ".0")
    return pc.if_else(pc.equal(rest, ""), pc.utf8_slice_codeunits(padded, 0, width), text)


def _decimal_text(values: pa.Array) -> pa.StringArray:
    """Plain digits. Arrow writes small decimals with an exponent, but never integers."""
    kind = values.type
    if kind.scale <= 0:
        return values.cast(pa.string())
    whole = pa.decimal256(kind.precision, 0) if pa.types.is_decimal256(kind) else pa.decimal128(kind.precision, 0)
    digits = pa.Array.from_buffers(whole, len(values), values.buffers(), offset=values.offset).cast(pa.string())
    minus = pc.starts_with(digits, "-")
    padded = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), kind.scale + 1, "0")
    sign = pc.if_else(minus, "-", "")
    parts = (pc.utf8_slice_codeunits(padded, 0, -kind.scale), pc.utf8_slice_codeunits(padded, -kind.scale))
    return pc.binary_join_element_wise(pc.binary_join_element_wise(sign, parts[0], ""), parts[1], ".")


def _bits(values: pa.Array) -> pa.BinaryArray:
    """A number as the eight bytes of BIT in exports."""
    numbers = np.array(values.fill_null(0).cast(pa.uint64())).astype(">u8")
    raw = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(numbers), [None, pa.py_buffer(numbers.tobytes())])
    return pc.if_else(values.is_valid(), raw.cast(pa.binary()), pa.scalar(None, pa.binary()))
