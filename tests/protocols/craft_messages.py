"""Writes Craft messages (docs/reference/protocols.md 3), right ones and, part by part, wrong ones."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Column = tuple[str | bytes, int, int, bytes | None]  # name, type code, flag, encoded value


@dataclass(frozen=True, kw_only=True)
class Row:
    new: Sequence[Column] | None = None
    old: Sequence[Column] | None = None
    ts: int = 5
    schema: str | bytes | None = "s"
    table: str | bytes | None = "t"
    partition: int = -1


@dataclass(frozen=True, kw_only=True)
class Ddl:
    query: str
    code: int
    ts: int = 5
    schema: str | bytes | None = "s"
    table: str | bytes | None = "t"
    partition: int = -1


@dataclass(frozen=True, kw_only=True)
class Resolved:
    ts: int
    schema: str | bytes | None = None
    table: str | bytes | None = None
    partition: int = -1


Any = Row | Ddl | Resolved


def uvarint(n: int) -> bytes:
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*out, n])


def varint(n: int) -> bytes:
    return uvarint((n << 1 ^ n >> 63) % (1 << 64))


def deltas(values: Iterable[int], *, signed: bool = True) -> bytes:
    out, last = b"", 0
    for v in values:
        step = (v - last) % (1 << 64)
        out += varint(step - (1 << 64) if step >> 63 else step) if signed else uvarint(step)
        last = v
    return out


def table(sizes: Sequence[int]) -> bytes:
    return uvarint(len(sizes)) + deltas(sizes)


def double(x: float) -> bytes:
    return struct.pack("<d", x)


class Terms:
    """The dictionary: ids on first use."""

    def __init__(self) -> None:
        self.ids: dict[bytes, int] = {}

    def id(self, term: str | bytes | None) -> int:
        if term is None:
            return -1
        return self.ids.setdefault(term.encode() if isinstance(term, str) else term, len(self.ids))

    def encode(self) -> bytes:
        return dictionary(list(self.ids))


def dictionary(terms: Sequence[bytes]) -> bytes:
    return uvarint(len(terms)) + b"".join(uvarint(len(t)) for t in terms) + b"".join(terms) if terms else b""


def headers(events: Sequence[Any], terms: Terms) -> bytes:
    kinds = [{Row: 1, Ddl: 2, Resolved: 3}[type(e)] for e in events]
    return b"".join(
        [
            deltas((e.ts for e in events), signed=False),
            b"".join(map(uvarint, kinds)),
            deltas(e.partition for e in events),
            deltas([terms.id(e.schema) for e in events]),
            deltas([terms.id(e.table) for e in events]),
        ]
    )


def group(kind: int, columns: Sequence[Column], terms: Terms) -> bytes:
    return b"".join(
        [
            bytes([kind]),
            uvarint(len(columns)),
            deltas(terms.id(name) for name, _, _, _ in columns),
            b"".join(uvarint(code) for _, code, _, _ in columns),
            b"".join(uvarint(flag) for _, _, flag, _ in columns),
            b"".join(varint(-1 if v is None else len(v)) for _, _, _, v in columns),
            b"".join(v or b"" for _, _, _, v in columns),
        ]
    )


def groups(row: Row, terms: Terms) -> list[bytes]:
    return [group(kind, columns, terms) for kind, columns in ((1, row.new), (2, row.old)) if columns is not None]


def assemble(header: bytes, bodies: Sequence[bytes], words: bytes, group_tables: Sequence[Sequence[int]]) -> bytes:
    tables = table([len(header), len(words)]) + table([len(b) for b in bodies]) + b"".join(map(table, group_tables))
    return uvarint(1) + header + b"".join(bodies) + words + tables + uvarint(len(tables))[::-1]


def message(*events: Any) -> bytes:
    terms = Terms()
    header, bodies, tables = headers(events, terms), list[bytes](), list[list[int]]()
    for e in events:
        if isinstance(e, Row):
            parts = groups(e, terms)
            tables.append([len(p) for p in parts])
            bodies.append(b"".join(parts))
        else:
            bodies.append(uvarint(e.code) + uvarint(len(e.query.encode())) + e.query.encode() if isinstance(e, Ddl) else b"")
    return assemble(header, bodies, terms.encode(), tables)
