"""Our own good messages of the binary protocols: every form that their encoders write, and traps for the compiled scans."""

from __future__ import annotations

from typing import Any

from tests.protocols import avro_messages as avro
from tests.protocols import canal_messages as canal
from tests.protocols import craft_messages as craft
from tests.protocols import simple_messages as simple
from tests.protocols.both_paths import Message
from tests.protocols.craft_messages import Column, Ddl, Resolved, Row, uvarint, varint
from tidelake.protocols import Context

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

CANAL_ROW = [
    canal.ID,
    canal.NAME,
    canal.Column("price", "decimal(10,2)", "12.50", sql_type=3),
    canal.Column("blob", "blob", "ÿ\0", sql_type=2004),
    canal.Column("none", "bigint unsigned", None, sql_type=-5),
    canal.Column("empty", "varchar", "", sql_type=12),
]
CANAL: list[list[bytes]] = [
    [canal.insert(*CANAL_ROW), canal.update(CANAL_ROW, CANAL_ROW), canal.delete(*CANAL_ROW), canal.insert(*CANAL_ROW)],
    [
        canal.insert(canal.ID, table="u"),
        canal.entry(b"", b"", canal.BEGIN),
        canal.update(CANAL_ROW[1:3], CANAL_ROW),
        canal.insert(*CANAL_ROW),
    ],
    [canal.entry(canal.header(), canal.change(canal.UPDATE, *[canal.row_data(CANAL_ROW, CANAL_ROW[:3])] * 3)), canal.delete(canal.ID)],
    [canal.insert(canal.ID)],
    [canal.ddl("create table t (id int)", canal.CREATE), canal.insert(canal.ID)],
    [canal.entry(b"", b"", canal.END)],
    [
        canal.entry(canal.header("", "", canal.QUERY), canal.change(canal.QUERY, sql="insert into t values ('ü')")),
        canal.insert(canal.Column("j", "json", "Ã¼", sql_type=2004), canal.Column("s", "set('a')", None, sql_type=2004)),
        canal.entry(canal.header("", "", canal.QUERY), canal.change(canal.QUERY, sql="# x\ndrop table t")),
    ],
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

OWN: dict[str, list[Message]] = {
    "craft": [(None, craft.message(*events)) for events in CRAFT],
    "avro": AVRO,
    "canal": [(None, canal.packet(*entries)) for entries in CANAL],
    "simple-avro": SIMPLE,
}


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
