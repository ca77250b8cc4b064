"""Hand-made messages of Debezium, Maxwell and CSV, and a table whose columns they do not say."""

from __future__ import annotations

from typing import Any

from tests.protocols import debezium_messages
from tests.protocols.both_paths import Message
from tests.protocols.json_messages import compact
from tidelake.config.options import SinkOptions
from tidelake.history.event import SchemaColumn
from tidelake.protocols import Context

COLUMNS = (
    SchemaColumn("id", "bigint", key=True),
    SchemaColumn("v", "varchar"),
    SchemaColumn("bin", "varbinary"),
    SchemaColumn("n", "decimal", full_type="decimal(10,2)"),
)
VERSION = (1).to_bytes(8, "big")


def context(columns: tuple[SchemaColumn, ...] | None = None, **options: Any) -> Context:
    """A context that knows these columns of db.t, and no other table."""
    return Context(options=SinkOptions(**options), columns=columns and (lambda d, t: columns if (d, t) == ("db", "t") else None))


def debezium(
    op: str | None, schema: Any = None, key: Any = None, *, commit_ts: Any = 7, db: str = "db", table: str = "t", **more: Any
) -> Message:
    """A Debezium message with the members that matter."""
    source = {"connector": "TiCDC", "db": db, "table": table, "commit_ts": commit_ts}
    value = {"payload": {"source": source, "transaction": None} | ({"op": op} if op else {}) | more}
    key = None if key is None else compact({"payload": key})
    return key, compact(value | ({} if schema is None else {"schema": schema}))


def schema(*fields: dict[str, Any]) -> dict[str, Any]:
    """The schema of an envelope whose rows have these fields."""
    sides = [{"type": "struct", "field": side, "fields": list(fields)} for side in ("before", "after")]
    return {"type": "struct", "fields": [*sides, {"type": "string", "field": "op"}]}


def field(column: str, tidb_type: str | None = None, /, **more: Any) -> dict[str, Any]:
    """A column in the schema."""
    return {"type": "string", "optional": True, "field": column} | ({"tidb_type": tidb_type} if tidb_type else {}) | more


def maxwell(op: str, **more: Any) -> dict[str, Any]:
    """A Maxwell row."""
    return {"database": "db", "table": "t", "type": op, "ts": 1} | more


def maxwell_rows(*rows: dict[str, Any]) -> Message:
    """A Maxwell message of these rows."""
    return VERSION, b"".join(map(compact, rows))


def maxwell_ddl(sql: str = "DROP TABLE t", ts: Any = 9, key_ts: Any = 9, **more: Any) -> Message:
    """A statement of Maxwell."""
    key = {"ts": key_ts, "scm": "db", "tbl": "t", "t": 2}
    return compact(key), compact({"type": "table-drop", "database": "db", "table": "t", "ts": ts, "sql": sql} | more)


def daemon(op: str, **more: Any) -> dict[str, Any]:
    """A row of Maxwell's own form."""
    place = {"xid": 5, "commit": True, "position": "binlog.000002:48052", "server_id": 7}
    return {"database": "db", "table": "t", "type": op, "ts": 1} | place | more


def daemon_ddl(what: str = "table-alter", sql: str = "ALTER TABLE t ADD c INT", **more: Any) -> dict[str, Any]:
    """A statement of Maxwell's own form."""
    said = {"type": what, "database": "db", "table": "t", "def": {"database": "db", "table": "t", "columns": [], "primary-key": []}}
    return said | {"ts": 1000, "sql": sql, "position": "binlog.000002:4"} | more


_TYPED = [
    *(field(f"i{n}", word) for n, word in enumerate(("tinyint", "bigint unsigned", "year", "float", "double", "decimal"))),
    field("b1", "bit", type="boolean"),
    field("b9", "bit", parameters={"length": "9"}),
    field("bin", "varbinary", default="raw"),
    field("e", "enum", parameters={"allowed": "a,b"}),
    field("d", "date", name="io.debezium.time.Date"),
    field("dt", "datetime", name="io.debezium.time.MicroTimestamp"),
    field("ts", "timestamp"),
    field("t", "time"),
]
_ROW = {
    "i0": -1,
    "i1": -1,
    "i2": 2020,
    "i3": 1.5,
    "i4": -1.5e-7,
    "i5": 1e22,
    "b1": True,
    "b9": "/wE=",
    "bin": "/wA=",
    "e": "b",
    "d": 18_312,
}
_ROW |= {"dt": 1_703_680_043_000_001, "ts": "2024-03-11T08:51:01.5Z", "t": -8_420_000_000}
_PLAIN = {"id": 1, "v": "näme \n", "bin": "/wA=", "n": "1.50", "x": None, "f": -1.5e-7}
OWN: dict[str, list[Message]] = {
    "debezium": [
        debezium("u", schema(*_TYPED), key={"i0": -1}, before=_ROW, after=_ROW),
        debezium("c", before=None, after=_PLAIN | {"n": 1.5}),
        debezium("d", key={"id": 1}, before=_PLAIN | {"n": 1.5}, after=None),
        debezium("m", key={}, db="", table=""),
        debezium(None, key={"databaseName": "db"}, ddl="DROP TABLE t", tableChanges=[{"type": "DROP", "id": "x", "table": None}]),
        *debezium_messages.OWN,
    ],
    "maxwell": [
        maxwell_rows(maxwell("update", data=_PLAIN, old={"v": "old"})),
        maxwell_rows(maxwell("insert", data=_PLAIN)),
        maxwell_rows(maxwell("delete", old=_PLAIN)),
        maxwell_ddl(),
        (None, compact(daemon("insert", data=_PLAIN | {"s": ["x"], "j": {"a": [1, None, True, 1.5, "é"]}}, primary_key_columns=["id"]))),
        (None, compact(daemon("update", data=_PLAIN, old={"v": None}, xoffset=3) | {"commit": False})),
        (None, compact(daemon("delete", data=_PLAIN))),
        (None, compact(daemon("bootstrap-insert", data=_PLAIN))),
        (None, compact(daemon("bootstrap-complete", data={}))),
        (None, compact(daemon_ddl())),
    ],
    "csv": [
        (None, '"I","t","db",1,"näme ""\n","/wA=","1.50"\r\n'.encode()),
        (None, b'"D","t","db",1,\\N,\\N,"1.50"\r\n'),
        (None, b'"U","u","db",-1.5e+06\r\n'),
        (b"", b'"I","u","db","a,b\r\nc"\r\n'),
    ],
}
