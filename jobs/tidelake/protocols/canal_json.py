"""Canal-JSON of TiCDC and of Alibaba Canal (docs/reference/protocols.md 5): one JSON object a message, the Kafka key empty or null.

    {"id", "database", "table", "pkNames": [name] | null, "isDdl", "type", "es", "ts", "sql", "sqlType": {column: JDBC code} | null,
     "mysqlType": {column: type} | null, "old": [row] | null, "data": [row] | null,
     "_tidb"?: {"commitTs" | "watermarkTs", "onlyHandleKey"?, "claimCheckLocation"?}}          members in any order

type        INSERT, UPDATE, DELETE: rows, several in Alibaba Canal's messages; TIDB_WATERMARK: a resolved ts; isDdl: a statement;
            QUERY, XACOMMIT without isDdl: of Alibaba Canal's, beside rows (canal_statements.py)
row         {column: text | null}; binary columns, and those of sqlType 2004, carry each byte as the code point U+0000 to U+00FF
old         of an UPDATE: all columns, or the changed ones

Sections in the comments are those of docs/reference/protocols.md.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidelake.errors import DecodeError
from tidelake.history.event import Event, RowSchema, SchemaColumn
from tidelake.protocols.canal_statements import XA_ROLLED_BACK, stands_beside_rows
from tidelake.wire.cells.canal_types import BYTES, TEXT, TEXT_AS_BYTES, column_type, form, utf8
from tidelake.wire.claim_check import opened
from tidelake.wire.compression import decompress
from tidelake.wire.json import json_batches, json_cells
from tidelake.wire.json.json_canal import MAX_ROWS, scan_canal
from tidelake.wire.json.json_known import KnownColumn, KnownSchemas, KnownTable
from tidelake.wire.json.json_text import Number, integer, kind, load, members, refuse_width, statement, string
from tidelake.wire.kernels.arrays import Ints
from tidelake.wire.kernels.columnar import Scanned

if TYPE_CHECKING:
    from tidelake.protocols import Context

OPS = {"INSERT": "insert", "UPDATE": "update", "DELETE": "delete"}
WATERMARK = "TIDB_WATERMARK"
QUERY, XA_COMMIT, XA_ROLLBACK = "QUERY", "XACOMMIT", "XAROLLBACK"
MAX_TS = (1 << 64) - 1
_KINDS = {TEXT: json_cells.TEXT, BYTES: json_cells.LATIN1, TEXT_AS_BYTES: json_cells.LATIN1_TEXT}


def read(key: bytes | None, value: bytes | None, context: Context) -> list[Event]:
    """The events of one message, of any legal form. Raises DecodeError."""
    if value is not None and len(value) > context.max_bytes:
        raise DecodeError(f"the value has {len(value)} bytes, the cap is {context.max_bytes}", code="TOO_LARGE")
    _, value = opened(key, value, context.options)
    if value is None:
        raise DecodeError("the Kafka value is null, expected a Canal-JSON message", code="NULL_VALUE")
    text = decompress(value, context.options.large_message_handle_compression, context.max_bytes, "the value")
    message = load(text, "the value")
    word = string(message, "type", "the value")
    if word == WATERMARK:
        extension = _extension(message)
        return [Event(kind="resolved", commit_ts=integer(extension, "watermarkTs", "_tidb", 0, MAX_TS))]
    commit_ts = integer(_extension(message), "commitTs", "_tidb", 0, MAX_TS) if message.get("_tidb") is not None else None
    if _is_ddl(message, word):
        return [_ddl(message, word, commit_ts)]
    if word in OPS:
        return _rows(message, word, commit_ts)
    return _unmarked(message, word)


def scan(messages: pa.RecordBatch, wanted: Ints, context: Context) -> Scanned:
    """The rows and watermarks in the usual compact form, compiled; the rest is left to `read`."""
    values = json_batches.payload(messages.column("value"))

    def kernel(*arrays: Any) -> tuple[int, int]:
        return scan_canal(values, *arrays)

    def learn(known: KnownSchemas, message: int) -> KnownSchemas:
        return _learned(known, messages.column("value")[message].as_py(), context)

    size = len(values.data)
    room = json_batches.BatchRoom(events=size // len('{"":""},') + 1, cells=size // len('"":"",'), size=size)
    return json_batches.scan(kernel, learn, wanted, room, context.memory, "canal-json tables")


def _extension(message: dict[str, Any]) -> dict[str, Any]:
    extension = message.get("_tidb")
    if not isinstance(extension, dict):
        raise DecodeError(f"member _tidb is a JSON {kind(extension)}, expected an object", code="BAD_STRUCTURE")
    return extension


def _is_ddl(message: dict[str, Any], word: str) -> bool:
    is_ddl = message.get("isDdl", False)
    if not isinstance(is_ddl, bool):
        raise DecodeError(f"member isDdl is a JSON {kind(is_ddl)}, expected true or false", code="BAD_VALUE")
    if is_ddl and word in OPS:
        raise DecodeError(f"type {word[:40]!r} with isDdl true", code="BAD_STRUCTURE")
    return is_ddl


def _unmarked(message: dict[str, Any], word: str) -> list[Event]:
    """What is neither rows nor marked as DDL."""
    rows = message.get("data")
    if rows is None and word == XA_COMMIT:
        return []
    if rows is None and word == QUERY:
        event = _ddl(message, word, None)
        return [] if stands_beside_rows(event.database, event.ddl or "") else [event]
    taken_back = f", {XA_ROLLED_BACK}" if word == XA_ROLLBACK else ""
    raise DecodeError(f"type {word[:40]!r} with isDdl false{taken_back}", code="UNKNOWN_TYPE")


def _ddl(message: dict[str, Any], word: str, commit_ts: int | None) -> Event:
    return Event(
        kind="ddl",
        commit_ts=commit_ts,
        database=string(message, "database", "the value") or None,
        table=string(message, "table", "the value") or None,
        ddl=statement(message, "sql", "the value"),
        ddl_type=word,
    )


def _rows(message: dict[str, Any], word: str, commit_ts: int | None) -> list[Event]:
    database, table = string(message, "database", "the value"), string(message, "table", "the value")
    if not database or not table:
        raise DecodeError(f"rows of database {database!r} and table {table!r}, expected both names", code="BAD_STRUCTURE")
    data, old = _images(message, "data"), _images(message, "old") if word == "UPDATE" else []
    if not data or not all(data) or (word == "UPDATE" and len(old) != len(data)):
        empty = sum(not row for row in data)
        raise DecodeError(f"{word} with {len(data)} rows in data, {empty} of them empty, and {len(old)} in old", code="BAD_STRUCTURE")
    types, codes, keys, extension = _types(message), _codes(message), _primary_key(message), message.get("_tidb") or {}
    shared = Event(
        kind="row",
        op=OPS[word],
        commit_ts=commit_ts,
        database=database,
        table=table,
        handle_only=_handle_only(extension),
        claim_check=_claim_check(extension),
    )
    events = []
    for i, row in enumerate(data):
        image = _image(row, f"row {i} of data", types, codes, keys)
        previous = _image(old[i], f"row {i} of old", types, codes, keys) if old else image
        row_schema, after = (None, None) if word == "DELETE" else image
        before_schema, before = (None, None) if word == "INSERT" else previous
        events.append(replace(shared, row_schema=row_schema, before_schema=before_schema, after=after, before=before))
    return events


def _handle_only(extension: dict[str, Any]) -> bool:
    value = extension.get("onlyHandleKey")
    if value is None:
        return False
    if not isinstance(value, bool):
        raise DecodeError(f"_tidb: member onlyHandleKey is a JSON {kind(value)}, expected true or false", code="BAD_VALUE")
    return value


def _claim_check(extension: dict[str, Any]) -> str | None:
    return None if extension.get("claimCheckLocation") is None else string(extension, "claimCheckLocation", "_tidb") or None


def _types(message: dict[str, Any]) -> dict[str, str]:
    types = message.get("mysqlType")
    if not isinstance(types, dict):
        raise DecodeError(f"member mysqlType is a JSON {kind(types)}, expected an object", code="BAD_STRUCTURE")
    return types


def _codes(message: dict[str, Any]) -> dict[str, Any]:
    codes = message.get("sqlType")
    return codes if isinstance(codes, dict) else {}


def _primary_key(message: dict[str, Any]) -> frozenset[str]:
    names = message.get("pkNames")
    if names is None:
        return frozenset()
    if not isinstance(names, list) or not all(isinstance(n, str) and not isinstance(n, Number) for n in names):
        raise DecodeError("member pkNames is not an array of strings", code="BAD_STRUCTURE")
    return frozenset(names)


def _images(message: dict[str, Any], member: str) -> list[dict[str, Any]]:
    rows = message.get(member)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DecodeError(f"member {member} is a JSON {kind(rows)}, expected an array of objects", code="BAD_STRUCTURE")
    if len(rows) > MAX_ROWS:
        raise DecodeError(f"{len(rows)} rows in {member}, the cap is {MAX_ROWS}", code="TOO_LARGE")
    return rows


def _image(
    row: dict[str, Any], at: str, types: dict[str, Any], codes: dict[str, Any], keys: frozenset[str]
) -> tuple[RowSchema, list[bytes | None]]:
    refuse_width(row, at)
    described, cells = [], []
    for name, value in row.items():
        where = f"column {name[:80]!r} of {at}"
        if name not in types:
            raise DecodeError(f"{where} has no type in mysqlType", code="BAD_STRUCTURE")
        word, full, binary = column_type(string(types, name, "mysqlType"))
        described.append(SchemaColumn(name, word, name in keys, full_type=full))
        cells.append(_cell(value, form(word, binary, codes.get(name)), where))
    return RowSchema(tuple(described)), cells


def _cell(value: Any, written: int, where: str) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, Number) or not isinstance(value, str):
        raise DecodeError(f"{where} is a JSON {kind(value)}, expected a string or null", code="BAD_VALUE")
    try:
        data = value.encode("utf-8" if written == TEXT else "latin-1")
        return utf8(data) if written == TEXT_AS_BYTES else data
    except UnicodeEncodeError as e:
        raise DecodeError(f"{where} holds U+{ord(e.object[e.start]):04X}, which is no byte", code="BAD_VALUE") from e


def _learned(known: KnownSchemas, value: bytes, context: Context) -> KnownSchemas:
    """What the compiled scan can recognise after it has seen this message: its table, and the columns that it has not met."""
    if context.options.large_message_handle_compression != "none":
        return known
    try:
        row = read(None, value, context)[0]
        text = value.decode()
        starts = {name: start for name, _, start, _ in members(text, 0)}
        raw = {name: text[start:end].encode() for name, _, start, end in members(text, 0)}
        types = {name: text[start:end].encode() for name, _, start, end in members(text, starts["mysqlType"])}
        table = KnownTable((raw["database"][1:-1], raw["table"][1:-1], raw["pkNames"]), (row.database, row.table))
        row_schema = row.row_schema or row.before_schema or RowSchema(())
        pieces, codes = zip(members(text, starts["data"] + 1), row_schema.columns, strict=True), json.loads(raw["sqlType"])
        return known.with_layout(table, [_column(piece, types[name], codes[name], c) for (name, piece, _, _), c in pieces])
    except (DecodeError, ValueError, LookupError, TypeError):
        return known  # not a row, or of another form: the general reader reports it


def _column(piece: str, type_piece: bytes, code: object, described: SchemaColumn) -> KnownColumn:
    word, _, binary = column_type(json.loads(type_piece))
    return KnownColumn(piece.encode(), type_piece, _KINDS[form(word, binary, code)], described)
