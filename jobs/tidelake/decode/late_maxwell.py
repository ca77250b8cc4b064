"""Cells of Maxwell's own messages (docs/reference/protocols.md 9.3) → canonical text in Arrow, once their types are known.

binary, blobs   base64. BINARY(n) lacks its zero bytes at the end, as the binlog does: they are put back
DECIMAL         digits as Java prints them (`1E-10`): without exponent, with the zeros of the column's scale
ENUM            a member as SQL writes it, with `''` for `'`
SET             an array of such members: joined by commas
JSON            a value that is no JSON text is a JSON string, which loses its quotes on the way
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.decode.late_cells import from_base64, plain_decimals
from tidelake.history.ddl.column_types import MysqlType


def canonical(cells: pa.Array, mysql: MysqlType) -> pa.Array | None:
    """Return the canonical text, or the bytes of a binary column, of cells as sent; None if cells of the type are canonical as sent.

    Args:
        cells: Cells of type binary, as wire/cells/maxwell_cells.py leaves them.
        mysql: The column's type at the rows' commit ts.

    Returns:
        An array of type binary, as long as `cells`, with the same NULLs. A cell that is not of its type's form stays as sent.

    Source:
        https://maxwells-daemon.io/dataformat/
    """
    if mysql.is_binary:
        found = from_base64(cells)
        return _filled(found, mysql.length or 1) if mysql.word == "binary" else found
    match mysql.word:
        case "decimal":
            return plain_decimals(cells, mysql.scale)
        case "enum":
            spelled = _spelled(mysql)
            return _each(cells, lambda cell: spelled.get(cell.decode(errors="replace"), cell)) if spelled else None
        case "set":
            spelled = _spelled(mysql)
            return _each(cells, lambda cell: _members(cell, spelled))
        case "json":
            return _each(cells, _json)
        case _:
            return None


def _filled(cells: pa.Array, length: int) -> pa.Array:
    """Bytes with zero bytes up to the length."""
    if pc.all(pc.greater_equal(pc.binary_length(cells), length), min_count=0).as_py():
        return cells
    return _each(cells, lambda cell: cell.ljust(length, b"\0"))


def _each(cells: pa.Array, change: Callable[[bytes], bytes]) -> pa.Array:
    """Change every distinct cell."""
    coded = cells.dictionary_encode()
    return pa.array([change(c) for c in coded.dictionary.to_pylist()], pa.binary()).take(coded.indices)


def _spelled(mysql: MysqlType) -> dict[str, bytes]:
    """Members by how Maxwell writes them, without those that it writes as they are."""
    members = mysql.elements or ()
    quoted = {sql: m for m in members for sql in (m.replace("'", "''"), m.replace("\\", "\\\\").replace("'", "''"))}
    return {sql: m.encode() for sql, m in quoted.items() if sql not in members}


def _members(cell: bytes, spelled: dict[str, bytes]) -> bytes:
    names = _parsed(cell)
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        return cell
    return b",".join([spelled.get(n, n.encode()) for n in names])


def _json(cell: bytes) -> bytes:
    if _parsed(cell) is not _NO_JSON:
        return cell
    return json.dumps(cell.decode(errors="replace"), ensure_ascii=False).encode()


def _parsed(cell: bytes) -> object:
    try:
        return _STRICT.decode(cell.decode())
    except (ValueError, RecursionError):
        return _NO_JSON


def _refuse(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is not JSON")


_NO_JSON = object()
_STRICT = json.JSONDecoder(parse_constant=_refuse)
