"""Encoder of Craft, TiCDC's columnar binary batches (docs/reference/protocols.md 3).

message := version headers body* dictionary size-tables reversed-uvarint(length of the size tables)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from tidelake.demo.messages.model import Ddl, Row, SourceChange, SourceColumn, SourceTable, TopicRecord
from tidelake.demo.messages.varints import delta_uvarints, delta_varints, uvarint, zigzag
from tidelake.wire.cells.mysql_codes import UNSIGNED

_VERSION = uvarint(1)
_ROW, _DDL, _RESOLVED = 1, 2, 3
_NEW, _OLD = 1, 2
_NONE = -1
_Cell = Callable[[Any], bytes]


class CraftEncoder:
    """Encodes row changes, DDL and resolved ts as Craft records. A FLOAT is written as its float64; TiCDC's bug (3.8) is not imitated."""

    def __init__(self) -> None:
        self._plans: dict[SourceTable, tuple[bytes, list[_Cell]]] = {}

    def rows(self, changes: Sequence[SourceChange], build_ms: int = 0) -> TopicRecord:
        """Encode one batch. The key is empty, not null (docs/reference/protocols.md 1.7)."""
        terms: dict[str, int] = {}
        schemas = [_term(terms, c.table.database) for c in changes]
        names = [_term(terms, c.table.name) for c in changes]
        partitions = [_NONE if c.physical_id is None else c.physical_id for c in changes]
        heads: dict[SourceTable, bytes] = {}
        bodies, groups = list[bytes](), list[bytes]()
        for change in changes:
            if change.table not in heads:
                heads[change.table] = self._head(change.table, terms)
            head, cells = heads[change.table], self._plans[change.table][1]
            parts = [_group(kind, head, cells, row) for kind, row in ((_NEW, change.after), (_OLD, change.before)) if row is not None]
            bodies.append(b"".join(parts))
            groups.append(_table([len(p) for p in parts]))
        headers = _headers([c.commit_ts for c in changes], _ROW, partitions, schemas, names)
        return b"", _message(headers, bodies, terms, groups)

    def ddl(self, ddl: Ddl, build_ms: int = 0) -> TopicRecord:
        """Encode one statement."""
        terms: dict[str, int] = {}
        schema = _term(terms, ddl.database) if ddl.database else _NONE
        name = _term(terms, ddl.table) if ddl.table else _NONE
        query = ddl.query.encode()
        body = uvarint(ddl.code) + uvarint(len(query)) + query
        return None, _message(_headers([ddl.commit_ts], _DDL, [_NONE], [schema], [name]), [body], terms, [])

    def resolved(self, ts: int, build_ms: int = 0) -> TopicRecord:
        """Encode a resolved ts: an event without body and terms."""
        return None, _message(_headers([ts], _RESOLVED, [_NONE], [_NONE], [_NONE]), [b""], {}, [])

    def _head(self, table: SourceTable, terms: dict[str, int]) -> bytes:
        """What follows a group's kind, up to the values: count, name ids, types and flags."""
        if table not in self._plans:
            codes, flags = (b"".join(map(uvarint, numbers)) for numbers in zip(*((c.code, c.flag) for c in table.columns), strict=True))
            self._plans[table] = codes + flags, [_cell(c) for c in table.columns]
        ids = [_term(terms, c.name) for c in table.columns]
        return uvarint(len(ids)) + delta_varints(ids) + self._plans[table][0]


def _term(terms: dict[str, int], term: str) -> int:
    return terms.setdefault(term, len(terms))


def _headers(ts: list[int], kind: int, partitions: list[int], schemas: list[int], names: list[int]) -> bytes:
    kinds = uvarint(kind) * len(ts)
    return delta_uvarints(ts) + kinds + delta_varints(partitions) + delta_varints(schemas) + delta_varints(names)


def _group(kind: int, head: bytes, cells: list[_Cell], row: Row) -> bytes:
    values = [None if v is None else cell(v) for cell, v in zip(cells, row, strict=True)]
    lengths = [zigzag(-1 if v is None else len(v)) for v in values]
    return b"".join([uvarint(kind), head, *lengths, *filter(None, values)])


def _message(headers: bytes, bodies: list[bytes], terms: dict[str, int], groups: list[bytes]) -> bytes:
    dictionary = b""
    if terms:
        raw = [t.encode() for t in terms]
        dictionary = b"".join([uvarint(len(raw)), *(uvarint(len(t)) for t in raw), *raw])
    sizes = b"".join([_table([len(headers), len(dictionary)]), _table([len(b) for b in bodies]), *groups])
    return b"".join([_VERSION, headers, *bodies, dictionary, sizes, uvarint(len(sizes))[::-1]])


def _table(sizes: list[int]) -> bytes:
    return uvarint(len(sizes)) + delta_varints(sizes)


def _cell(column: SourceColumn) -> _Cell:
    """Function that writes a column's values as bytes (3.6)."""
    if column.code in (4, 5):
        return struct.Struct("<d").pack
    if column.code == 13:
        return zigzag
    if column.code in (16, 247, 248):
        return uvarint
    if column.code in (1, 2, 3, 8, 9):
        return uvarint if column.flag & UNSIGNED else zigzag
    return bytes if column.code in (15, 249, 250, 251, 252, 253, 254) and column.is_binary else _utf8


def _utf8(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
