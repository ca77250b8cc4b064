"""Messages of many MB, tried one by one: values, nesting and counts without end, decompression bombs, and more than the cap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tests.fuzz.corpus import METHODS, OWN, PACKED, Group, groups, size
from tests.fuzz.tally import MB
from tests.protocols import avro_messages as avro
from tests.protocols import canal_messages as canal
from tests.protocols import craft_messages as craft
from tests.protocols import simple_messages as simple
from tests.protocols.both_paths import Message
from tests.protocols.craft_messages import Resolved, Row, uvarint, varint
from tests.protocols.json_messages import frames, open_key, open_raw
from tests.protocols.simple_messages import compact
from tidelake.protocols import MAX_MESSAGE_BYTES

_PLANTED = '"näme \\n"'.encode()  # a value of the good JSON messages that may stand for any other
_ABOVE_CAP = 100 * MB
_LIE = uvarint(MAX_MESSAGE_BYTES)  # as snappy announces its plain length


@dataclass(frozen=True, eq=False)
class Giant:
    """One message. weight: its bytes, or those it decompresses to where these are more."""

    name: str
    group: Group
    message: Message
    weight: int


def of(protocol: str, mb: int) -> Iterator[Giant]:
    """All giants of a protocol: of a sixth of so many MB, of so many, and above the cap."""
    plain = groups(protocol)[0]
    sizes = sorted({max(mb // 6, 1), mb})
    for n in (s * MB for s in sizes):
        for name, make in (_TEXT if protocol in _ROWS else _BINARY[protocol]).items():
            message = make(protocol, n) if protocol in _ROWS else make(n)
            yield Giant(f"{name}, {n // MB} MB", plain, message, size(message))
        for name, value in _OF_MAXWELL.items() if protocol == "maxwell" else ():
            message = _own_row(value(n))
            yield Giant(f"{name} of Maxwell's own, {n // MB} MB", plain, message, size(message))
        for byte in (b"\0", b"\xff", b"\x80", b"{", b"[", b" "):
            yield Giant(f"nothing but {byte!r}, {n // MB} MB", plain, (OWN[protocol][0][0], byte * n), n)
        yield from _bombs(protocol, n) if protocol in PACKED else ()
    whole = OWN[protocol][0][1] or b""
    for byte in (b" ", b"\0"):
        yield Giant(f"{_ABOVE_CAP // MB} MB", plain, (OWN[protocol][0][0], whole + byte * (_ABOVE_CAP - len(whole))), _ABOVE_CAP)


def _planted(protocol: str, value: bytes) -> Message:
    """A good row with this JSON in the place of one value."""
    key, whole = next(m for m in OWN[protocol] if _PLANTED in (m[1] or b""))
    whole = whole or b""
    if protocol != "open":
        return key, whole.replace(_PLANTED, value, 1)
    return open_raw((next(frames(key or b"", 8)), next(frames(whole, 0)).replace(_PLANTED, value, 1)))


def _own_row(value: bytes) -> Message:
    """A good row of Maxwell's own form with this JSON in the place of one value: an array or object is a value there."""
    key, whole = next(m for m in OWN["maxwell"] if m[0] is None)
    return key, (whole or b"").replace(_PLANTED, value, 1)


def _wide(n: int) -> bytes:
    """Text of which Python makes four bytes a letter."""
    return b"x" * n + "😀".encode()


def _text(value: Callable[[int], bytes]) -> Callable[[str, int], Message]:
    return lambda protocol, n: _planted(protocol, value(n))


def _members(n: int) -> bytes:
    """Members with names of their own, about so many bytes."""
    return b'"x",' + b",".join(b'"c%d":"1"' % i for i in range(n // 14)) if n else b""


def _rows(protocol: str, n: int) -> Message:
    """As many rows as so many bytes hold."""
    key, value = next(m for m in OWN[protocol] if _PLANTED in (m[1] or b""))
    value = value or b""
    match protocol:
        case "open":
            event = compact(open_key()), b'{"u":{"a":{"t":3,"v":1}}}'
            return open_raw(*[event] * (n // (16 + len(event[0] + event[1]))))
        case "canal-json":
            row = b'{"id":"1"}'
            return key, b'{"database":"d","table":"t","type":"INSERT","isDdl":false,"data":[' + b",".join([row] * (n // 11)) + b"]}"
        case _:
            return key, value * (n // len(value))


_ROWS = ("open", "canal-json", "simple-json", "debezium", "maxwell")
_TEXT: dict[str, Callable[[str, int], Message]] = {
    "one long text": _text(lambda n: b'"%b"' % (b"x" * n)),
    "one long text of escapes": _text(lambda n: b'"%b"' % (b"\\u00e9" * (n // 6))),
    "one long text of pairs": _text(lambda n: b'"%b"' % (b"\\ud83d\\ude00" * (n // 12))),
    "one long text of wide letters": _text(lambda n: b'"%b"' % ("€".encode() * (n // 3))),
    "one long text with one wide letter": _text(lambda n: b'"%b"' % _wide(n)),
    "one long text with one pair": _text(lambda n: b'"%b\\ud83d\\ude00"' % (b"x" * n)),
    "one long text with one letter of two bytes": _text(lambda n: b'"%b%b"' % (b"x" * n, "€".encode())),
    "texts with one wide letter": _text(lambda n: b"[%b]" % b",".join([b'"%b"' % _wide(1000)] * (n // 1007))),
    "short texts with one wide letter": _text(lambda n: b"[%b]" % b",".join([b'"%b"' % _wide(28)] * (n // 35))),
    "one long number": _text(lambda n: b"1" * n),
    "one long fraction": _text(lambda n: b"0." + b"1" * n),
    "one long text of NUL": _text(lambda n: b'"%b"' % (b"\\u0000" * (n // 6))),
    "arrays in arrays": _text(lambda n: b"[" * n),
    "objects in objects": _text(lambda n: b'{"a":' * (n // 5)),
    "arrays beside arrays": _text(lambda n: b"[%b]" % b",".join([b"[]"] * (n // 3))),
    "objects beside objects": _text(lambda n: b"[%b]" % b",".join([b"{}"] * (n // 3))),
    "numbers beside numbers": _text(lambda n: b"[%b]" % b",".join([b"1000"] * (n // 5))),
    "one member again and again": _text(lambda n: b'"x"' + b',"zz":"11"' * (n // 10)),
    "members without end": _text(_members),
    "rows without end": _rows,
}

_OF_MAXWELL: dict[str, Callable[[int], bytes]] = {
    "one long text with one wide letter": lambda n: b'"%b"' % _wide(n),
    "texts with one wide letter": lambda n: b"[%b]" % b",".join([b'"%b"' % _wide(1000)] * (n // 1007)),
    "arrays in arrays": lambda n: b"[" * (n // 2) + b"]" * (n // 2),
    "arrays beside arrays": lambda n: b"[%b]" % b",".join([b"[]"] * (n // 3)),
    "numbers beside numbers": lambda n: b"[%b]" % b",".join([b"1000"] * (n // 5)),
    "members beside members": lambda n: b"{%b}" % b",".join([b'"c%d":"1"' % i for i in range(n // 14)]),
    "columns without end": _members,
}


def _canal_change(*rows: bytes) -> Message:
    return None, canal.packet(canal.entry(canal.header(), canal.change(canal.INSERT, *rows)))


def _csv(cells: bytes) -> Message:
    return None, b'"I","t","db",' + cells + b"\r\n"


_BINARY: dict[str, dict[str, Callable[[int], Message]]] = {
    "craft": {
        "one long value": lambda n: (None, craft.message(Row(new=[("v", 252, 0x41, b"x" * n)]))),
        "one long name": lambda n: (None, craft.message(Row(new=[("v" * n, 252, 0x41, b"x")]))),
        "events without end": lambda n: (None, craft.message(*[Resolved(ts=9)] * (n // 10))),
        "columns without end": lambda n: (None, craft.message(Row(new=[(f"c{i}", 3, 65, b"\2") for i in range(n // 14)]))),
        "NULLs without end": lambda n: (None, craft.message(Row(new=[(f"c{i}", 3, 65, None) for i in range(n // 14)]))),
        "terms without end": lambda n: (None, craft.assemble(b"", [b""], craft.dictionary([b""] * n), [])),
        "size tables without end": lambda n: (None, craft.assemble(b"", [b""], b"", [[0]] * (n // 2))),
    },
    "avro": {
        "one long value": lambda n: (None, avro.confluent(1, varint(1), avro.text(b"x" * n))),
        "one long key": lambda n: (avro.confluent(1, varint(1), avro.text(b"x" * n)), None),
        "a long statement": lambda n: (b"", b'\1{"query":"%b","type":3,"schema":"s","table":"t","commitTs":1}' % _wide(n)),
        "a statement of arrays": lambda n: (b"", b'\1{"query":[%b]}' % b",".join([b"[]"] * (n // 3))),
        "a statement of objects": lambda n: (b"", b'\1{"query":"q",%b}' % _members(n)[4:]),
    },
    "canal": {
        "one long value": lambda n: (None, canal.packet(canal.insert(canal.Column("v", "text", "x" * n)))),
        "one long binary value": lambda n: (None, canal.packet(canal.insert(canal.Column("v", "blob", "ÿ" * (n // 2), sql_type=2004)))),
        "a long statement": lambda n: (None, canal.packet(canal.ddl(_wide(n).decode()))),
        "entries without end": lambda n: (None, canal.packet(*[canal.entry(b"", b"", canal.BEGIN)] * (n // 10))),
        "rows without end": lambda n: _canal_change(*[canal.row_data([canal.ID])] * (n // 60)),
        "columns without end": lambda n: (None, canal.packet(canal.insert(*[canal.ID] * (n // 60)))),
        "empty rows without end": lambda n: _canal_change(*[b""] * (n // 2)),
        "empty columns without end": lambda n: _canal_change(canal.text(2, b"") * (n // 2)),
        "unknown fields without end": lambda n: (None, canal.packet(canal.insert(canal.ID)) + b"\xa0\6\1" * (n // 3)),
    },
    "simple-avro": {
        "one long text": lambda n: simple.avro_row("INSERT", {"näme": (simple.STRING, "x" * n)}),
        "one long binary value": lambda n: simple.avro_row("INSERT", {"z": (simple.BYTES, b"\xff" * n)}),
        "columns without end": lambda n: simple.avro_row("INSERT", {f"c{i}": (simple.NULL, None) for i in range(n // 10)}),
        "a long statement": lambda n: simple.avro_ddl("ALTER", _wide(n).decode()),
        "a schema without end": lambda n: simple.avro_bootstrap(
            simple.table_schema([simple.column(f"c{i}", "int") for i in range(n // 30)], [])
        ),
    },
    "csv": {
        "one long text": lambda n: _csv(b'"%b"' % (b"x" * n)),
        "one long text with one wide letter": lambda n: _csv(b'"%b"' % _wide(n)),
        "one long text of quotes": lambda n: _csv(b'"%b"' % (b'""' * (n // 2))),
        "one long number": lambda n: _csv(b"1" * n),
        "cells without end": lambda n: _csv(b",".join([b"1"] * (n // 2))),
        "NULLs without end": lambda n: _csv(b",".join([rb"\N"] * (n // 3))),
        "lines without end": lambda n: (None, (OWN["csv"][0][1] or b"") * (n // 50)),
        "quotes without end": lambda n: _csv(b'"' * n),
    },
}


def _bombs(protocol: str, n: int) -> Iterator[Giant]:
    """What is small on the wire and large in memory, or says so."""
    for number, method in enumerate(METHODS, 1):
        group = groups(protocol)[number]
        for what, plain in _plain(protocol, n):
            yield Giant(f"{what}, {method} of {n // MB} MB", group, _wrapped(protocol, _compressed(plain, method)), n)
        yield Giant(f"{method} beyond the cap", group, _wrapped(protocol, _compressed(b" " * _ABOVE_CAP, method)), MAX_MESSAGE_BYTES)
    snappy = groups(protocol)[1]
    for what, lie in {"little": b"x" * 9, "much": b"\xfe" * n}.items():
        yield Giant(f"a snappy length that lies, with {what} behind it", snappy, _wrapped(protocol, _LIE + lie), MAX_MESSAGE_BYTES)


def _plain(protocol: str, n: int) -> Iterator[tuple[str, bytes]]:
    yield "blanks", b" " * n
    if protocol in _ROWS:
        value = _planted(protocol, b'"%b"' % (b"x" * n))[1] or b""
        yield "one long text", next(frames(value, 0)) if protocol == "open" else value
        yield "arrays", b'{"a":[%b]}' % b",".join([b"[]"] * (n // 3))
    else:
        yield "one long text", simple.avro_row("INSERT", {"näme": (simple.STRING, "x" * n)})[1] or b""


def _compressed(plain: bytes, method: Any) -> bytes:
    return bytes(pa.Codec(method).compress(plain, asbytes=True))


def _wrapped(protocol: str, value: bytes) -> Message:
    return open_raw((compact(open_key()), value)) if protocol == "open" else (None, value)
