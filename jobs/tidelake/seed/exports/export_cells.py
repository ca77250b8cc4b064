"""Converts values as an export writes them to the canonical text of the feed's protocol (docs/architecture.md 6).

The server's text is canonical for most types. Exports write BIT as its bytes, the YEAR zero as 0000, and ENUM and SET as names, which many
protocols send as numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.history.ddl.column_types import MysqlType

Convert = Callable[[pa.BinaryArray], pa.BinaryArray]
NO_NUMBER = b"?"  # replaces invalid BITs and members: it fits no type, so it is counted


def canonical(rows: pa.ListArray, types: Sequence[MysqlType], *, names_sent: bool) -> pa.ListArray:
    """Return rows with canonical text.

    Args:
        rows: Rows with one cell per type.
        types: Types of the cells.
        names_sent: The feed's protocol sends ENUM and SET as names.
    """
    changed = {k: c for k, t in enumerate(types) if (c := conversion(t, names_sent)) is not None}
    if not changed or not len(rows):
        return rows
    flat, width = rows.flatten(), len(types)
    source, parts, first = np.arange(len(flat), dtype=np.int64), [flat], len(flat)
    for k, convert in changed.items():
        source[k::width] = first + np.arange(len(rows))
        parts.append(convert(flat.take(pa.array(np.arange(k, len(flat), width)))))
        first += len(rows)
    return pa.ListArray.from_arrays(rows.offsets, pa.concat_arrays(parts).take(pa.array(source)))


def conversion(mysql: MysqlType, names_sent: bool) -> Convert | None:
    """Return the conversion of a type's cells; None if they do not change."""
    if mysql.word == "bit":
        return partial(_of_distinct, _bit)
    if mysql.word == "year":
        return _year
    if mysql.elements is not None and not names_sent:
        return partial(_of_distinct, partial(_member, mysql))
    return None


def _of_distinct(one: Callable[[bytes], bytes], cells: pa.BinaryArray) -> pa.BinaryArray:
    """Convert distinct values once; these types have few."""
    encoded = cells.dictionary_encode()
    values = pa.array([one(v) for v in encoded.dictionary.to_pylist()], pa.binary())
    return values.take(encoded.indices)


def _bit(value: bytes) -> bytes:
    return str(int.from_bytes(value, "big")).encode() if 0 < len(value) <= 8 else NO_NUMBER


def _year(cells: pa.BinaryArray) -> pa.BinaryArray:
    return pc.if_else(pc.fill_null(pc.equal(cells, b"0000"), False), pa.scalar(b"0", pa.binary()), cells)


def _member(mysql: MysqlType, value: bytes) -> bytes:
    """The number of an ENUM's member, or the bits of a SET's members."""
    places = {e.encode(): i for i, e in enumerate(mysql.elements or ())}
    if mysql.word == "enum":
        return str(places[value] + 1).encode() if value in places else b"0" if value == b"" else NO_NUMBER
    names = value.split(b",") if value else []
    return str(sum(1 << places[n] for n in names)).encode() if places.keys() >= set(names) else NO_NUMBER
