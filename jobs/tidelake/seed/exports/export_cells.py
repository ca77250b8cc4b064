"""Values as an export writes them → the canonical text that the feed's own protocol would have carried (docs/architecture.md 6).

A server's text is canonical for most types. BIT is written as its bytes, a YEAR of zero as 0000, ENUM and SET as names, which many
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
NO_NUMBER = b"?"  # in place of what is no BIT or no member: it fits no type, so it is counted


def canonical(rows: pa.ListArray, types: Sequence[MysqlType], *, names_sent: bool) -> pa.ListArray:
    """Rows of so many cells each, with canonical text. names_sent: whether the feed's protocol sends ENUM and SET as names."""
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
    """How cells of a type change, None where they do not."""
    if mysql.word == "bit":
        return partial(_of_distinct, _bit)
    if mysql.word == "year":
        return _year
    if mysql.elements is not None and not names_sent:
        return partial(_of_distinct, partial(_member, mysql))
    return None


def _of_distinct(one: Callable[[bytes], bytes], cells: pa.BinaryArray) -> pa.BinaryArray:
    """Equal values are converted once: there are few of such types."""
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
