"""Our own good messages of the JSON protocols and CSV: every form that their encoders write."""

from __future__ import annotations

from tests.protocols import untyped_messages
from tests.protocols.both_paths import Message
from tests.protocols.json_messages import canal, column, compact, open_key, open_message
from tests.protocols.simple_messages import column as simple_column
from tests.protocols.simple_messages import index, json_message, json_row, json_schema_message, table_schema

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
_NO_ROWS = {"database": "", "table": "", "pkNames": None, "mysqlType": None, "sqlType": None, "data": None}  # of Alibaba's Canal
_DOCUMENT = {"pkNames": [], "sqlType": {"j": 2004, "s": -7}}
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
        (None, compact(canal("QUERY", sql="insert into t values ('ü\n')") | _NO_ROWS)),
        (None, compact(canal("QUERY", sql="/* x */ drop table t") | _NO_ROWS)),
        (None, compact(canal("INSERT", [{"j": "Ã¼", "s": "5"}], types={"j": "json", "s": "set('a','b')"}, **_DOCUMENT))),
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
OWN |= untyped_messages.OWN
