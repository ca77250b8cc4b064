"""Broken messages by the thousand: whatever the bytes, events or a DecodeError, and the same by both ways.

Also run by itself, in a process whose compiled code checks its bounds.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator
from dataclasses import replace

from tests.protocols import untyped_messages, vectors
from tests.protocols.json_messages import Message, canal, column, compact, decoded, open_key, open_message, open_raw, read, scanned
from tests.protocols.simple_messages import column as simple_column
from tests.protocols.simple_messages import index, json_message, json_row, json_schema_message, table_schema
from tidelake.errors import DECODE_CODES
from tidelake.options import SinkOptions
from tidelake.protocols import Context

_LENGTHS = (0, 1, 7, 8, 0xFF, 1 << 31, (1 << 31) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 8, (1 << 64) - 1)
_SNIPPETS = [
    b'"',
    b"\\",
    b"{",
    b"}",
    b",",
    b":",
    b"null",
    b"-",
    b"1e999",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"\xc3",
    b"[" * 50,
    b"0" * 30,
    b"=",
]

_ANY_VALUE = re.compile(rb'(?<=[:\[,])("(?:[^"\\]|\\.)*"|null|-?\d+|true|false|\{[^{}]*\}|\[[^\[\]]*\])')
_VALUES = [
    b"null",
    b"0",
    b"-0",
    b"1.5",
    b"1e3",
    b'""',
    b'"x"',
    b'"\xff"',
    b'"\\q"',
    b"{}",
    b"[]",
    b"true",
    b'[""]',
    b"9" * 19,
    b"9" * 20,
    b'"\\u0041"',
]

_ROW = {
    "id": column(8, 1, 11, key=True),
    "name": column(15, "näme \n", 64),
    "bin": column(15, r"\x89PNG", 65),
    "body": column(252, "YcOkYg==", 64),
    "blob": column(252, "/wA=", 65),
    "f": column(5, -1.5e-7),
    "big": column(8, (1 << 64) - 1, 193),
    "n": column(3, None),
}
_TYPES = {"id": "bigint", "name": "varchar", "bin": "varbinary(9)", "f": "double", "n": "int"}
_DATA = {"id": "1", "name": "näme \n", "bin": "\x00ÿ", "f": "-1.5", "n": None}
_SIMPLE = _DATA | {"at": {"location": "UTC", "value": "2024-01-01"}, "bin": "AP8="}
_SCHEMA = table_schema(
    [simple_column(n, w) for n, w in (_TYPES | {"at": "timestamp", "name": "varchar", "bin": "blob"}).items()], [index("id", primary=True)]
)
OWN: dict[str, list[Message]] = {
    "open": [
        open_message(
            (open_key(rid=5), {"u": _ROW}), (open_key(ptn=6), {"u": _ROW, "p": {"name": _ROW["name"]}}), (open_key(), {"d": _ROW})
        ),
        open_message((open_key(), {"u": _ROW, "p": {"name": _ROW["name"], "n": _ROW["n"]}})),
        open_message((open_key(), {"d": _ROW})),
        open_message(({"ts": 9, "t": 3}, None)),
        open_message(({"ts": 9, "scm": "a", "tbl": "b", "t": 3}, None)),
        open_message((open_key(t=2), {"q": "CREATE TABLE t (id INT)", "t": 3})),
    ],
    "canal-json": [
        (None, compact(canal("UPDATE", [_DATA], [{"name": "old"}], _TYPES, _tidb={"commitTs": 7}))),
        (b"", compact(dict(sorted(canal("INSERT", [_DATA, _DATA], None, _TYPES).items())))),
        (None, compact(canal("DELETE", [_DATA], None, _TYPES))),
        (None, compact(canal("TIDB_WATERMARK", mysqlType=None, sqlType=None, data=None, _tidb={"watermarkTs": 8}))),
    ],
    "simple-json": [
        json_schema_message(_SCHEMA),
        json_row("UPDATE", _SIMPLE, _SIMPLE | {"n": "5"}),
        json_row("INSERT", _SIMPLE, checksum={"version": 2, "corrupted": False, "current": 5, "previous": 0}),
        json_row("DELETE", None, {"id": "1"}),
        json_row("INSERT", _SIMPLE, table="u"),
        json_row("INSERT", {"id": "1"}, handleKeyOnly=True),
        json_message({"version": 1, "type": "WATERMARK", "commitTs": 7, "buildTs": 5}),
        json_schema_message(_SCHEMA, "ALTER", sql="ALTER TABLE `t` ADD COLUMN `n` INT", preTableSchema=_SCHEMA | {"version": 5}),
    ],
}
OWN |= untyped_messages.OWN  # not compiled yet: every message is read by the general reader


def corpus(protocol: str) -> list[Message]:
    """Good messages to break: our own and, where they are, the shared vectors; as many of either, since ours have every form."""
    shared = [vectors.record(v) for v in vectors.load(protocol)]
    return OWN[protocol] * max(len(shared) // len(OWN[protocol]), 1) + shared


def broken(message: Message, other: Message, random: random.Random) -> Message:
    """The message with one side damaged in one to three places."""
    sides = [side or b"" for side in message]
    i = int(random.random() < 0.7)
    data = bytearray(sides[i])
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        at = random.randrange(len(data) + 1)
        match random.randrange(14):  # half of them keep the JSON whole
            case 0:
                del data[at:]
            case 1 if data:
                data[at - 1] ^= 1 << random.randrange(8)
            case 2:
                data[at:at] = random.choice(_SNIPPETS)
            case 3:
                data[at : at + random.randrange(1, 40)] = b""
            case 4:
                donor = other[i] or b""
                start = random.randrange(len(donor) + 1)
                data[at : at + random.randrange(60)] = donor[start : start + random.randrange(60)]
            case 5:
                data[8 * (at // 8) : 8 * (at // 8) + 8] = random.choice(_LENGTHS).to_bytes(8, "big")
            case 6:
                data[at : at + 1] = bytes([random.randrange(256)])
            case _ if found := list(_ANY_VALUE.finditer(data)):
                start, end = random.choice(found).span()
                data[start:end] = random.choice(_VALUES)
    sides[i] = bytes(data)
    return (sides[0], sides[1])


def broken_inside(message: Message, other: Message, random: random.Random) -> Message:
    """An Open Protocol message with one of its JSON texts damaged and the lengths put right."""
    events, others = (list(zip(_parts(m[0] or b"", 8), _parts(m[1] or b"", 0), strict=False)) for m in (message, other))
    if not events or not others:
        return message
    i = random.randrange(len(events))
    key, value = broken(events[i], random.choice(others), random)
    return open_raw(*events[:i], (key or b"", value or b""), *events[i + 1 :])


def _parts(payload: bytes, at: int) -> Iterator[bytes]:
    while at < len(payload):
        size = int.from_bytes(payload[at : at + 8], "big")
        yield payload[at + 8 : at + 8 + size]
        at += 8 + size


def cut(message: Message) -> Iterator[Message]:
    """The message cut at every byte of either side."""
    key, value = message
    yield from ((key, value[:n]) for n in range(len(value or b"")) if value is not None)
    yield from ((key[:n], value) for n in range(len(key or b"")) if key is not None)


def check(protocol: str, messages: list[Message], context: Context) -> int:
    """Both ways agree on every message; how many of them the compiled scan took."""
    if protocol == "simple-json":  # a batch's schemas are for all of its rows
        for m in messages:
            read(protocol, m, context)
    want = [read(protocol, m, context) for m in messages]
    assert all(isinstance(w, list) or w in DECODE_CODES for w in want)
    taken = scanned(protocol, messages, context)
    for i, events in taken.items():
        assert events == want[i], f"{protocol} {messages[i]!r}"
    assert decoded(protocol, messages, context) == want
    return len(taken)


def run(protocol: str, seed: int, count: int, options: SinkOptions | None = None) -> int:
    """Breaks `count` messages; how many of them the compiled scan took."""
    chance, good = random.Random(seed), corpus(protocol)
    context, taken = untyped_messages.context(untyped_messages.COLUMNS) if options is None else Context(options=options), 0
    for start in range(0, len(good), 100):  # so that the scan knows every table, in every batch
        scanned(protocol, good[start : start + 100], context)
    for start in range(0, count, 250):
        size = min(250, count - start)
        ways = (broken, broken_inside if protocol == "open" else broken)
        messages = OWN[protocol] + [chance.choice(ways)(*chance.choices(good, k=2), chance) for _ in range(size)]
        taken += check(protocol, messages, replace(context, memory=dict(context.memory)))
    return taken


if __name__ == "__main__":
    for name in OWN:
        run(name, int(sys.argv[1]), int(sys.argv[2]))
        for whole in OWN[name]:
            check(name, [*cut(whole), whole], Context())
