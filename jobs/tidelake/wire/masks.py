"""Masked cells of events: dropped, NULL, hashed (32 bytes) or truncated, column by column of a batch (docs/masking.md).

A masked image gets its own schema, which records for each column how it is masked, so every later stage knows the masks.
"""

from __future__ import annotations

import hmac
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.config import table_name
from tidelake.config.feed import Feed
from tidelake.errors import ConfigError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import RowSchema
from tidelake.history.names import KnownNames, same_name
from tidelake.history.window import sent_type
from tidelake.wire.hashes import HASH_DIGITS, Hashes, column_of, content_of
from tidelake.wire.kernels.arrays import Flags, Ints, Longs

SIDES = {"after": "row_schema", "before": "before_schema"}  # an image, and the column of its schema
TEXT = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json"})
HASHED = MysqlType("char", length=HASH_DIGITS)  # what a hashed column holds
_DOCUMENTED = re.compile(r" /\* mask (\S+) \*/$")
_ID = b"tidelake: the id of a mask key"
_TRUNCATE = re.compile(r"truncate\((\d+)\)")
_CONTINUES, _CONTINUED = 0xC0, 0x80  # of UTF-8: (byte & _CONTINUES) == _CONTINUED is no first byte of a character
_NO_VALUE = -1
_NOWHERE = np.zeros(0, np.int64)
MaskPlaces = dict[str, list[tuple[Longs, int]]]  # by mask: rows, and which of their cells
_M = TypeVar("_M")


def mark(mask: str, key: bytes) -> str:
    """How a mask is named in schemas, tables and certificates: with the id of its key, never with the key."""
    return f"hash:{hmac.digest(key, _ID, 'sha256').hex()[:12]}" if mask == "hash" else mask


def refuse_other_key(marks: Iterable[str], key: bytes) -> None:
    """In a worker, before anything is hashed. Raises ConfigError (MASK_KEY) where the key is missing, or is not the one of the marks."""
    if any(m.startswith("hash") and m != mark("hash", key) for m in marks):
        raise ConfigError(
            "policy.mask_key: the worker does not have the key, or has another one",
            code="MASK_KEY",
            remedy="a Spark Connect server that Tidelake did not start needs the key's variable in its environment, its executors too "
            "(docs/cluster.md)",
        )


def mask_key(feed: Feed) -> bytes:
    """The key of the feed's hashes, empty where it has none."""
    return (feed.policy.mask_key or "").encode()


def marks_of(feed: Feed) -> list[tuple[str, str, str]]:
    """(`db.table`, column, mark) of every mask of the feed, sorted."""
    key = mask_key(feed)
    return sorted((t, c, mark(p.mask, key)) for t, columns in feed.columns.items() for c, p in columns.items() if p.mask)


def marks_at_decode(feed: Feed) -> list[tuple[str, str, str]]:
    """The marks that decode applies; where it applies any, it reads the statements of an hour before the rows."""
    return marks_of(feed) if feed.policy.mask_at == "decode" else []


def documented(text: str, mark: str | None) -> str:
    """A lake column's documentation, with its mask."""
    return f"{text} /* mask {mark} */" if mark else text


def read_documented(doc: str) -> tuple[str, str | None]:
    """The inverse of `documented`."""
    found = _DOCUMENTED.search(doc)
    return (doc[: found.start()], found[1]) if found else (doc, None)


def may_truncate(mysql: MysqlType) -> bool:
    """Whether values of the type have characters or bytes to leave away."""
    return mysql.word in TEXT or mysql.is_binary


def masked_text(text: str, mark: str, mysql: MysqlType, key: bytes) -> str | None:
    """A column's default under its mask. text: canonical, hex digits for bytes."""
    if mark in ("null", "drop"):
        return None
    cells = pa.array([bytes.fromhex(text) if mysql.is_binary else text.encode()], pa.binary())
    out: bytes = _replaced(cells, mark, key, mysql.is_binary)[0].as_py()
    return out.hex() if mysql.is_binary or mark.startswith("hash") else out.decode()


def masked_schema(plain: RowSchema, marks: Iterable[tuple[str, str, str]], database: str, table: str) -> RowSchema:
    """The schema of a table's rows once they are masked, by the names in the feed. Raises ConfigError as `marked` does."""
    wanted = dict(marks_by_name(marks).meant(database, table))
    return marked(plain, table_name.written(database, table), {c.name: mark_at(wanted, c.name) for c in plain.columns})


def marks_by_name(marks: Iterable[tuple[str, str, str]]) -> KnownNames[tuple[str, str]]:
    """The marks of tables as they are sent: (column, mark)."""
    tables = ((table_name.parse(t), c, m) for t, c, m in marks)
    return KnownNames((t.database, t.table, (c, m)) for t, c, m in tables)


def mark_at(marks: Mapping[str, _M], column: str) -> _M | None:
    """The mask of a column by its name as sent; exact names go before sanitised ones."""
    exact = next((m for name, m in marks.items() if name.lower() == column.lower()), None)
    return exact if exact is not None else next((m for name, m in marks.items() if same_name(column, name)), None)


def marked(plain: RowSchema, table: str, marks: Mapping[str, str | None]) -> RowSchema:
    """The schema with these marks, by its columns' names. Raises ConfigError for a mask that a column cannot have."""
    columns = tuple(replace(c, mask=marks.get(c.name)) for c in plain.columns)
    for c in columns:
        if c.mask is not None:
            check_mask(table, c.name, c.mask, c.key, sent_type(c) if c.full_type or c.type else None)
    return RowSchema(columns)


def check_mask(table: str, column: str, mark: str, in_key: bool, mysql: MysqlType | None) -> None:
    """Raises ConfigError for a mask that makes different rows one, or that the type cannot have."""
    where = f'feed.toml: columns."{table}".{column}.mask'
    if in_key and not mark.startswith("hash"):
        raise ConfigError(f'{where}: {column} is in the key of {table}: rows would become one (found "{mark}")', remedy='allowed: "hash"')
    if mysql is not None and mark.startswith("truncate") and not may_truncate(mysql):
        raise ConfigError(f"{where}: {mysql.sql} has no characters to truncate", remedy='allowed: "hash", "null", "drop"')


def masked_cells(sides: Sequence[tuple[pa.ListArray, MaskPlaces]], hashes: Hashes) -> list[pa.ListArray]:
    """The images of each side with some of their cells masked.

    Args:
        sides: Images, and by kind of mask the rows and the position of the cell in their lists.
        hashes: Hashes values.
    """
    chosen, parts, count = [list[tuple[Longs, Longs]]() for _ in sides], [pa.array([], pa.binary())], 0
    for kind in dict.fromkeys(kind for _, places in sides for kind in places):
        at = [np.concatenate([_NOWHERE, *(_inside(images, *w) for w in places.get(kind, ()))]) for images, places in sides]
        which = [np.full(len(a), _NO_VALUE) for a in at]
        if kind not in ("null", "drop"):
            there = [_there(images.values, a) for (images, _), a in zip(sides, at, strict=True)]
            cells = [(images.values, a[t]) for (images, _), a, t in zip(sides, at, there, strict=True)]
            of, found = _hashed(cells, hashes) if kind.startswith("hash") else _cut(cells, kind)
            for w, t, n in zip(which, there, of, strict=True):
                w[t] = n + count
            parts.append(found)
            count += len(found)
        for mine, *values_at in zip(chosen, zip(at, which, strict=True), strict=True):
            mine += values_at
    values = pa.concat_arrays(parts)
    return [_with(images, mine, values) for (images, _), mine in zip(sides, chosen, strict=True)]


def _there(cells: pa.BinaryArray, at: Longs) -> Flags:
    """Which of these cells are not NULL."""
    return np.asarray(cells.is_valid())[at] if cells.null_count else np.ones(len(at), np.bool_)


def _hashed(cells: Sequence[tuple[pa.BinaryArray, Longs]], hashes: Hashes) -> tuple[Sequence[Ints | Longs], pa.BinaryArray]:
    """The number of the hash of each of the cells at these places, and the hashes."""
    return [hashes.numbered(*c) for c in cells], hashes.taken()


def _cut(cells: Sequence[tuple[pa.BinaryArray, Longs]], kind: str) -> tuple[Sequence[Ints | Longs], pa.BinaryArray]:
    """The number of each of the cells at these places, and the cells truncated."""
    whole = pa.concat_arrays([values.take(pa.array(at)) for values, at in cells])
    ends = np.cumsum([0, *(len(at) for _, at in cells)])
    found = _replaced(whole, kind.removesuffix(_OF_BYTES), b"", kind.endswith(_OF_BYTES))
    return [np.arange(first, end) for first, end in itertools.pairwise(ends)], found


def _with(images: pa.ListArray, chosen: Sequence[tuple[Longs, Longs]], values: pa.BinaryArray) -> pa.ListArray:
    """The images with other cells. chosen: places of cells, and the place of the value of each, or _NO_VALUE for NULL."""
    from tidelake.wire.kernels.replaced import replaced  # compiles

    at, which = (np.concatenate([_NOWHERE, *(c[n] for c in chosen)]) for n in (0, 1))
    if not len(at):
        return images
    if (np.diff(at) <= 0).any():  # of several columns
        at, first = np.unique(at, return_index=True)
        which = which[first]
    cells = images.values
    data, offsets = replaced(column_of(cells), at, which, column_of(values))
    bitmap = None
    if cells.null_count or (which == _NO_VALUE).any():
        there = np.array(cells.is_valid())
        there[at] = which != _NO_VALUE
        bitmap = pa.py_buffer(np.packbits(there, bitorder="little"))
    new = pa.Array.from_buffers(pa.binary(), len(cells), [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)])
    return pa.Array.from_buffers(images.type, len(images), images.buffers()[:2], offset=images.offset, children=[new])


_OF_BYTES = " of bytes"


def kind_of(mark: str, mysql: MysqlType) -> str:
    """How `masked_cells` calls a mask on a column of this type."""
    return mark + _OF_BYTES if mysql.is_binary else mark


def _inside(images: pa.ListArray, rows: Longs, i: int) -> Longs:
    """Places of the i-th cells of these rows that have one, among all cells."""
    bounds = np.asarray(images.offsets).astype(np.int64)
    at = bounds[rows] + i
    return at[np.asarray(images.is_valid())[rows] & (at < bounds[rows + 1])]


def truncated(cells: pa.BinaryArray, mark: str, of_bytes: bool) -> pa.BinaryArray:
    """The first characters of cells, or bytes; NULL stays NULL. mark: `truncate(n)`."""
    return _replaced(cells.cast(pa.binary()), mark, b"", of_bytes)


def _replaced(cells: pa.BinaryArray, mark: str, key: bytes, of_bytes: bool) -> pa.BinaryArray:
    """The cells hashed or truncated; NULL stays NULL."""
    if mark.startswith("hash"):
        return Hashes(key).of(cells)
    length = _TRUNCATE.fullmatch(mark)
    if length is None:
        raise ConfigError(f"feed.toml: no mask {mark!r}")
    size = int(length[1])
    return pc.binary_slice(cells, 0, size) if of_bytes else _shortened(cells, size)


def _shortened(cells: pa.BinaryArray, size: int) -> pa.BinaryArray:
    """The first characters of UTF-8, counted by their first bytes, so that invalid text is cut as well."""
    filled = cells.fill_null(b"")
    data, offsets = content_of(filled)
    first = np.concatenate([[0], np.cumsum((data & _CONTINUES) != _CONTINUED)])  # characters before each byte
    wanted = first[offsets[:-1]] + size
    ends = np.minimum(np.searchsorted(first, wanted, side="right") - 1, offsets[1:])
    owner = np.repeat(np.arange(len(filled)), np.diff(offsets))
    kept = data[np.arange(len(data)) < ends[owner]]
    lengths = np.maximum(ends - offsets[:-1], 0)
    buffers = [None, pa.py_buffer(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)), pa.py_buffer(kept)]
    short = pa.Array.from_buffers(pa.binary(), len(filled), buffers)
    return pc.if_else(cells.is_valid(), short, pa.scalar(None, pa.binary()))
