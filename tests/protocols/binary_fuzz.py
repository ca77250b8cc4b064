"""Broken Craft, Avro, Canal and Simple-Avro messages by the thousand: whatever the bytes, events or a DecodeError, the same by both paths.

Also run by itself, in a process whose compiled code checks its bounds.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from tests.protocols import avro_messages as avro
from tests.protocols import canal_messages as canal
from tests.protocols import craft_messages as craft
from tests.protocols import simple_messages as simple
from tests.protocols import vectors
from tests.protocols.both_paths import Message, both, left, read
from tests.protocols.craft_messages import Column, Ddl, Resolved, Row, uvarint, varint
from tidelake.protocols import Context

_NUMBERS = (0, 1, -1, 2, 63, 64, 127, 128, (1 << 31) - 1, 1 << 31, 1 << 32, (1 << 63) - 1, -(1 << 63))
_SNIPPETS = [*map(varint, _NUMBERS), *(uvarint(n % (1 << 64)) for n in _NUMBERS), b"\xff" * 10, b"\x80" * 12, bytes(8), b"\xff\xff\xff\xff"]

_TYPES: list[Column] = [
    ("id", 8, 11, varint(1 << 40)),
    ("tiny", 1, 0xC1, uvarint(255)),
    ("year", 13, 0xC1, varint(2024)),
    ("bit", 16, 0xC1, uvarint((1 << 64) - 1)),
    ("enum", 247, 0x41, uvarint(3)),
    ("f", 4, 0x41, craft.double(2.5)),
    ("d", 5, 0x41, craft.double(-1.25e-300)),
    ("dec", 246, 0x41, b"12.50"),
    ("when", 12, 0x41, b"2024-01-01 00:00:00"),
    ("name", 15, 0x40, "näme".encode()),
    ("blob", 252, 0x41, b"\xff\x00"),
    ("none", 3, 0x41, None),
]
_SHORT: list[Column] = [("id", 3, 11, varint(-5)), ("name", 15, 0x40, b"")]
CRAFT: list[list[craft.Any]] = [
    [Row(new=_TYPES), Row(new=_TYPES, old=_TYPES, ts=1 << 63, partition=77), Row(old=_TYPES[:1])],
    [Row(new=_SHORT, table="b"), Row(new=_TYPES), Row(old=_SHORT, table="b"), Row(new=_SHORT, schema=None)],
    [Row(new=[("id", 3, 11, varint(1))])],
    [Resolved(ts=9)],
    [Ddl(query="create table t (id int)", code=3)],
    [Resolved(ts=9), Row(new=_SHORT), Ddl(query="q", code=61, partition=5)],
]

SCHEMAS: dict[int | str, Any] = {
    1: avro.schema(avro.field("id", avro.kind("long", "BIGINT")), avro.field("k", avro.kind("string", "TEXT"))),
    2: avro.schema(
        avro.field("id", avro.kind("long", "BIGINT")),
        avro.field("k", avro.kind("string", "TEXT")),
        avro.field("i", avro.kind("int", "INT"), null=1),
        avro.field("u", avro.kind("long", "BIGINT UNSIGNED"), null=0),
        avro.field("f", avro.kind("float", "FLOAT"), null=0),
        avro.field("d", avro.kind("double", "DOUBLE")),
        avro.field("n", avro.kind("bytes", "DECIMAL", decimal=(65, 30)), null=0),
        avro.field("b", avro.kind("bytes", "BIT", length="64"), null=0),
        avro.field("z", avro.kind("bytes", "BLOB"), null=0),
        *avro.EXTENSION,
        *avro.CHECKSUM,
    ),
    "00000000-0000-0000-0000-000000000007": avro.schema(*avro.ID),
}
_KEY = varint(1 << 33) + avro.text("näme")
_VALUE = [
    avro.some(0, varint(-7)),
    avro.some(1, varint(-1)),
    avro.some(1, b"\0\0\x20\x40"),
    craft.double(-1.5),
    avro.some(1, avro.unscaled(-(10**40))),
    avro.some(1, avro.text(b"\xff" * 8)),
    avro.some(0),
    avro.extension("u", 1 << 58),
    avro.text("123") + b"\0" + varint(0),
]
AVRO: list[Message] = [
    (avro.confluent(1, _KEY), avro.confluent(2, _KEY, *_VALUE)),
    (avro.confluent(1, _KEY), None),
    (None, avro.confluent(2, _KEY, *_VALUE)),
    (avro.glue("00000000-0000-0000-0000-000000000007", varint(5)), avro.glue("00000000-0000-0000-0000-000000000007", varint(5))),
    (None, b"\2" + bytes(8)),
    (b"", b'\1{"query":"q","type":3,"schema":"s","table":"t","commitTs":1}'),
]

_ROW = [
    canal.ID,
    canal.NAME,
    canal.Column("price", "decimal(10,2)", "12.50", sql_type=3),
    canal.Column("blob", "blob", "ÿ\0", sql_type=2004),
    canal.Column("none", "bigint unsigned", None, sql_type=-5),
    canal.Column("empty", "varchar", "", sql_type=12),
]
CANAL: list[list[bytes]] = [
    [canal.insert(*_ROW), canal.update(_ROW, _ROW), canal.delete(*_ROW), canal.insert(*_ROW)],
    [canal.insert(canal.ID, table="u"), canal.entry(b"", b"", canal.BEGIN), canal.update(_ROW[1:3], _ROW), canal.insert(*_ROW)],
    [canal.entry(canal.header(), canal.change(canal.UPDATE, *[canal.row_data(_ROW, _ROW[:3])] * 3)), canal.delete(canal.ID)],
    [canal.insert(canal.ID)],
    [canal.ddl("create table t (id int)", canal.CREATE), canal.insert(canal.ID)],
    [canal.entry(b"", b"", canal.END)],
]


_SIMPLE: dict[str, simple.AvroValue] = {
    "i": (simple.LONG, -7),
    "näme": (simple.STRING, "text"),
    "b": (simple.LONG, -1),
    "f": (simple.FLOAT, 2.5),
    "d": (simple.DOUBLE, -1.5),
    "z": (simple.BYTES, b"\xff" * 9),
    "t": (simple.TIME, "2024-01-01"),
    "u": (simple.UNSIGNED, 1 << 63),
    "n": (simple.NULL, None),
}
_SIMPLE_TYPES = ("int", "varchar", "bit", "float", "double", "blob", "timestamp", "bigint unsigned", "enum")
_SCHEMA = simple.table_schema(
    [simple.column(n, t) | {"default": "1"} for n, t in zip(_SIMPLE, _SIMPLE_TYPES, strict=True)],
    [simple.index("i", primary=True)],
)
SIMPLE: list[Message] = [
    simple.avro_bootstrap(_SCHEMA),
    simple.avro_row("UPDATE", _SIMPLE, _SIMPLE),
    simple.avro_row("INSERT", _SIMPLE, checksum=b"\4\0\2\2"),
    simple.avro_row("DELETE", None, {"i": (simple.LONG, 5)}),
    simple.avro_row("INSERT", _SIMPLE, table="unknown"),
    simple.avro_row("INSERT", _SIMPLE, handle_only=True, claim="s3://x"),
    simple.avro_message(0, varint(1 << 58), b"\2"),
    simple.avro_ddl("ALTER", "ALTER TABLE `t` ADD COLUMN `n` INT", _SCHEMA, _SCHEMA | {"version": 5}),
]


def damaged(data: bytes, other: bytes, chance: random.Random) -> bytes:
    """The bytes with one to three places cut, flipped, replaced, spliced or blown up."""
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        at = chance.randrange(len(out) + 1)
        match chance.randrange(7):
            case 0:
                del out[at:]
            case 1 if out:
                out[at - 1] ^= 1 << chance.randrange(8)
            case 2:
                out[at:at] = chance.choice(_SNIPPETS)
            case 3:
                out[at : at + 1] = chance.choice(_SNIPPETS)
            case 4:
                del out[at : at + chance.randrange(1, 20)]
            case 5:
                start = chance.randrange(len(other) + 1)
                out[at : at + chance.randrange(40)] = other[start : start + chance.randrange(40)]
            case _:
                out[at : at + 1] = bytes([chance.randrange(256)])
    return bytes(out)


def craft_inside_out(chance: random.Random) -> Message:
    """A Craft message whose headers, bodies or dictionary are damaged and whose sizes still add up."""
    events, terms = chance.choice(CRAFT), craft.Terms()
    header, bodies, tables = craft.headers(events, terms), list[bytes](), list[list[int]]()
    for e in events:
        parts = craft.groups(e, terms) if isinstance(e, Row) else [b"\3\1q" if isinstance(e, Ddl) else b""]
        if chance.random() < 0.5:
            i = chance.randrange(len(parts))
            parts[i] = damaged(parts[i], parts[0], chance)
        bodies.append(b"".join(parts))
        if isinstance(e, Row):
            tables.append([len(p) for p in parts])
    words = terms.encode()
    if chance.random() < 0.3:
        header = damaged(header, words, chance)
    if chance.random() < 0.3:
        words = damaged(words, header, chance)
    if chance.random() < 0.1:
        chance.choice([*tables, [0]]).append(chance.choice(_NUMBERS))
    return None, craft.assemble(header, bodies, words, tables)


def broken_craft(chance: random.Random, good: Sequence[Message]) -> Message:
    if chance.random() < 0.6:
        return craft_inside_out(chance)
    one, other = chance.choices(good, k=2)
    return None, damaged(one[1] or b"", other[1] or b"", chance)


def broken_avro(chance: random.Random, good: Sequence[Message]) -> Message:
    (key, value), other = chance.choices(good, k=2)
    if chance.random() < 0.3:
        return damaged(key or b"", other[0] or b"", chance), value
    return key, damaged(value or b"", other[1] or b"", chance)


def canal_inside_out(chance: random.Random) -> Message:
    """A Canal message with one damaged part, whose lengths still add up."""
    row, other = list(_ROW), canal.column_fields(_ROW[0])
    fields = [field for c in row for field in canal.column_fields(c)]
    columns = [b"".join(canal.column_fields(c)) for c in row]
    i, level = chance.randrange(len(row)), chance.randrange(5)
    if level == 0:
        columns[i] = damaged(columns[i], fields[chance.randrange(len(fields))], chance)
    elif level == 1:
        some = canal.column_fields(row[i])
        chance.shuffle(some)
        columns[i] = b"".join(some + chance.choices(other, k=chance.randrange(2)))
    data = b"".join(canal.text(chance.choice((2, 2, 2, 2, 2, 1)), c) for c in columns)
    if level == 2:
        data = damaged(data, columns[i], chance)
    store = canal.change(chance.choice((1, 1, 1, 2, 2, 3)), *[data] * chance.randrange(1, 3))
    if level == 3:
        store = damaged(store, data, chance)
    head = canal.header() if level != 4 else damaged(canal.header(), store, chance)
    return None, canal.packet(canal.insert(*_ROW), canal.entry(head, store), canal.insert(*_ROW))


def broken_canal(chance: random.Random, good: Sequence[Message]) -> Message:
    if chance.random() < 0.6:
        return canal_inside_out(chance)
    one, other = chance.choices(good, k=2)
    return None, damaged(one[1] or b"", other[1] or b"", chance)


def canal_corpus() -> list[Message]:
    """Good messages to break: our own and, where they are, the shared vectors."""
    return [(None, canal.packet(*entries)) for entries in CANAL] + [vectors.record(v) for v in vectors.load("canal")]


def craft_corpus() -> list[Message]:
    """Good messages to break: our own and, where they are, the shared vectors."""
    return [(None, craft.message(*events)) for events in CRAFT] + [vectors.record(v) for v in vectors.load("craft")]


def check(protocol: str, messages: Sequence[Message], context: Context) -> int:
    """Both paths agree on every message; how many of them the compiled scan took."""
    both(protocol, messages, context)
    return len(messages) - len(left(protocol, messages, context))


def run_craft(seed: int, batches: int, size: int) -> int:
    """Breaks batches of so many messages; how many of them the compiled scan took."""
    chance, good, context = random.Random(seed), craft_corpus(), Context()
    return sum(check("craft", [*good[:1], *(broken_craft(chance, good) for _ in range(size))], context) for _ in range(batches))


def run_avro(seed: int, batches: int, size: int) -> int:
    """The same of Avro."""
    chance, context = random.Random(seed), avro.context(SCHEMAS)
    return sum(check("avro", [*AVRO[:1], *(broken_avro(chance, AVRO) for _ in range(size))], context) for _ in range(batches))


def run_canal(seed: int, batches: int, size: int) -> int:
    """The same of Canal."""
    chance, good, context = random.Random(seed), canal_corpus(), Context()
    return sum(check("canal", [*good[:1], *(broken_canal(chance, good) for _ in range(size))], context) for _ in range(batches))


def flipped(message: Message) -> Iterator[Message]:
    """The value with every bit flipped, one at a time."""
    key, value = message
    for i in range(8 * len(value or b"")):
        changed = bytearray(value or b"")
        changed[i // 8] ^= 1 << i % 8
        yield key, bytes(changed)


def run_simple(seed: int, batches: int, size: int) -> int:
    """The same of Simple's Avro encoding."""
    chance, context = random.Random(seed), Context()
    good = SIMPLE + [vectors.record(v) for v in vectors.load("simple-avro")]
    taken = 0
    for _ in range(batches):
        pairs = [chance.choices(good, k=2) for _ in range(size)]
        messages = [*SIMPLE[:1], *((b"", damaged(one[1] or b"", other[1] or b"", chance)) for one, other in pairs)]
        for message in messages:  # a batch's schemas are for all of its rows
            read("simple-avro", message, context)
        taken += check("simple-avro", messages, context)
    return taken


def cut(message: Message) -> Iterator[Message]:
    """The message cut at every byte of either side."""
    key, value = message
    yield from ((key, value[:n]) for n in range(len(value or b"")) if value is not None)
    yield from ((key[:n], value) for n in range(len(key or b"")) if key is not None)


def craft_traps() -> list[Message]:
    """Rows whose inner sizes agree with each other and lead far out of the message."""
    far, terms = 60, craft.dictionary([b"s", b"t", b"v"])
    out = []
    for code, size in ((252, far), (5, 8), (3, far), (252, 1 << 20)):
        body = bytes([1, 1, 4]) + uvarint(code) + b"\0" + varint(size)
        out.append((None, craft.assemble(bytes.fromhex("0501010002"), [body], terms, [[len(body) + size]])))
    return out


def avro_flood() -> tuple[list[Message], Context]:
    """Rows whose text is many times longer than their bytes."""
    zero, wide = avro.some(1, avro.unscaled(0)), avro.kind("bytes", "DECIMAL", decimal=(65, 30))
    schema = avro.schema(*(avro.field(f"c{i}", wide, null=0) for i in range(20)))
    return [(None, avro.confluent(1, *[zero] * 20))] * 50, avro.context({1: schema})


if __name__ == "__main__":  # a broken message ends its batch, where bounds are those of the array
    run_craft(int(sys.argv[1]), int(sys.argv[2]), 1)
    run_avro(int(sys.argv[1]), int(sys.argv[2]), 1)
    run_canal(int(sys.argv[1]), int(sys.argv[2]), 1)
    run_simple(int(sys.argv[1]), int(sys.argv[2]), 1)
    for whole in craft_corpus()[: len(CRAFT)]:
        check("craft", [*cut(whole), whole], Context())
    for trap in craft_traps():
        check("craft", [trap], Context())
    for whole in AVRO:
        check("avro", [*cut(whole), whole], avro.context(SCHEMAS))
    for whole in SIMPLE:
        check("simple-avro", [*cut(whole), whole], Context())
    check("avro", *avro_flood())
    shared = Context()
    for whole in canal_corpus()[: len(CANAL)]:
        for broken in (*cut(whole), *list(flipped(whole))[::5], whole):
            left("canal", [broken], shared)
