"""TiDB's column-level checksum in plain Python, as docs/reference/protocols.md 4.2 tells it: the oracle of the compiled one."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from datetime import datetime
from zlib import crc32
from zoneinfo import ZoneInfo

from tidelake.history.event import RowSchema, SchemaColumn

_NUMBERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit")


def row_sum(row_schema: RowSchema, cells: Iterable[bytes | None], zone: str, *, names_sent: bool) -> int:
    """The checksum of a row image by its canonical cells."""
    crc = 0
    for column, cell in zip(row_schema.columns, cells, strict=True):
        if cell is not None:
            crc = crc32(_encoded(column, cell, zone, names_sent), crc)
    return crc


def _encoded(column: SchemaColumn, cell: bytes, zone: str, names_sent: bool) -> bytes:
    word = (column.type or "").removesuffix(" unsigned")
    if word in _NUMBERS or (word in ("enum", "set") and not names_sent):
        return struct.pack("<Q", int(cell) % (1 << 64))
    if word == "enum":
        return struct.pack("<Q", _names(column).index(cell) + 1 if cell in _names(column) else 0)
    if word == "set":
        return struct.pack("<Q", sum(1 << _names(column).index(name) for name in cell.split(b",") if cell))
    if word == "float":
        return struct.pack("<d", struct.unpack("<f", struct.pack("<f", float(cell)))[0])
    if word == "double":
        return struct.pack("<d", float(cell))
    if word == "vector":
        numbers = [float(n) for n in cell[1:-1].split(b",")] if cell != b"[]" else []
        return struct.pack(f"<I{len(numbers)}f", len(numbers), *numbers)
    text = _utc(cell, zone) if word == "timestamp" else cell
    return struct.pack("<I", len(text)) + text


def _names(column: SchemaColumn) -> Sequence[bytes]:
    return [e.encode() for e in column.elements or ()]


def _utc(text: bytes, zone: str) -> bytes:
    if text.startswith(b"0000"):
        return text
    seconds, point, fraction = text.decode().partition(".")
    local = datetime.fromisoformat(seconds).replace(tzinfo=ZoneInfo(zone))
    return (local.astimezone(ZoneInfo("UTC")).strftime("%Y-%m-%d %H:%M:%S") + point + fraction).encode()
