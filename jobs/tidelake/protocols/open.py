"""Open Protocol: batches of JSON events of TiCDC (docs/reference/protocols.md 2).

Kafka key   := u64be 1  { u64be length  key JSON   }*
Kafka value :=          { u64be length  value JSON }*          the n-th key belongs to the n-th value

key JSON    {"ts": commit ts, "scm": database, "tbl": table, "rid"?, "ptn"?: physical table id, "t": 1 row | 2 DDL | 3 resolved,
             "ohk"?: handle columns only, "ccl"?: claim-check file}
row JSON    {"u": new row, "p"?: previous row} or {"d": deleted row}, a row is {column: {"t": type, "h"?: key, "f"?: flag, "v": value}}
DDL JSON    {"q": statement, "t": TiDB job type};  a resolved event's value is empty

Sections in the comments are those of docs/reference/protocols.md.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidelake.config.options import SinkOptions
from tidelake.errors import DecodeError
from tidelake.history.event import OPS, Event, RowSchema, SchemaColumn
from tidelake.wire.cells.mysql_codes import BINARY, word
from tidelake.wire.claim_check import opened
from tidelake.wire.compression import decompress
from tidelake.wire.json import json_batches, json_cells, json_open
from tidelake.wire.json.json_known import KnownColumn, KnownSchemas, KnownTable
from tidelake.wire.json.json_open import MAX_EVENTS, scan_open
from tidelake.wire.json.json_text import Number, integer, kind, load, members, refuse_width, required, statement, string
from tidelake.wire.kernels.arrays import Ints
from tidelake.wire.kernels.columnar import Scanned

if TYPE_CHECKING:
    from tidelake.protocols import Context

VERSION = 1
MAX_TS, MAX_ID = (1 << 64) - 1, (1 << 63) - 1
MAX_LENGTH = (1 << 31) - 1  # no Kafka message is longer, cut or not

# Column types by what `v` is (2.4)
INTEGERS = frozenset({1, 2, 3, 8, 9, 13, 16, 247, 248})
FLOATS = frozenset({4, 5})
QUOTED_IF_BINARY = frozenset({15, 253, 254})
BASE64 = frozenset({249, 250, 251, 252})
NAMELESS = frozenset({0, 6, 255})  # unspecified, NULL, GEOMETRY: TiDB sends no value but null

_GO_ESCAPE = re.compile(rb'\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|([abfnrtv\\"]))')
_GO_PLAIN = re.compile(rb'[^\\"\n]*')
_GO_LETTERS = dict(zip(b'abfnrtv\\"', b'\a\b\f\n\r\t\v\\"', strict=True))
_COMPACT_COLUMN = re.compile(r'\{"t":(\d{1,3})(,"h":true)?(?:,"f":(\d{1,9}))?,"v":')


def read(key: bytes | None, value: bytes | None, context: Context) -> list[Event]:
    """The events of one message, of any legal form. Raises DecodeError."""
    if (size := len(key or b"") + len(value or b"")) > context.max_bytes:
        raise DecodeError(f"key and value have {size} bytes, the cap is {context.max_bytes}", code="TOO_LARGE")
    key, value = opened(key, value, context.options)
    if value is None:
        raise DecodeError("the Kafka value is null, expected an Open Protocol message", code="NULL_VALUE")
    key = key or b""
    if len(key) < 8:
        raise DecodeError(f"the key has {len(key)} bytes, its version word needs 8", code="TRUNCATED")
    if (version := int.from_bytes(key[:8], "big")) != VERSION:
        raise DecodeError(f"version {version}, expected {VERSION}", code="UNKNOWN_VERSION")
    keys, values = list(_parts(key, 8, "key")), list(_parts(value, 0, "value"))
    if len(keys) != len(values):
        raise DecodeError(f"{len(keys)} events in the key, {len(values)} in the value", code="BAD_STRUCTURE")
    values = _decompressed(values, context)
    return [_event(f"event {i}", k, v, context.options) for i, (k, v) in enumerate(zip(keys, values, strict=True))]


def scan(messages: pa.RecordBatch, wanted: Ints, context: Context) -> Scanned:
    """The rows and resolved events in the encoders' usual form, compiled; the rest is left to `read`."""
    keys, values = json_batches.payload(messages.column("key")), json_batches.payload(messages.column("value"))
    texts, key_sizes = len(values.data), len(keys.data)
    bare_op = OPS.index(_op_of_bare_row(context.options))

    def kernel(*arrays: Any) -> tuple[int, int]:
        return scan_open(keys, values, bare_op, *arrays)

    def learn(known: KnownSchemas, message: int) -> KnownSchemas:
        return _learned(known, messages.column("key")[message].as_py(), messages.column("value")[message].as_py(), context)

    room = json_batches.BatchRoom(key_sizes // 8, texts // len('"":{"t":1,"v":1}'), texts)
    return json_batches.scan(kernel, learn, wanted, room, context.memory, "open tables")


def _parts(payload: bytes, at: int, side: str) -> Iterator[bytes]:
    for i in range(MAX_EVENTS + 1):
        left = len(payload) - at
        if left == 0:
            return
        if left < 8:
            raise DecodeError(f"the {side} ends {left} bytes into the length of event {i}, at byte {len(payload)}", code="TRUNCATED")
        size = int.from_bytes(payload[at : at + 8], "big")
        if size > left - 8:
            code = "TRUNCATED" if size <= MAX_LENGTH else "BAD_LENGTH"
            raise DecodeError(f"event {i} announces {size} bytes at byte {at} of the {side}, {left - 8} are left", code=code)
        yield payload[at + 8 : at + 8 + size]
        at += 8 + size
    raise DecodeError(f"the {side} holds more than {MAX_EVENTS} events", code="TOO_LARGE")


def _decompressed(values: list[bytes], context: Context) -> list[bytes]:
    """Each value on its own, a resolved event's empty one never (2.1); the cap holds for their sum."""
    method, room, plain = context.options.large_message_handle_compression, context.max_bytes, []
    for i, value in enumerate(values):
        plain.append(decompress(value, method, room, f"event {i}") if value else value)
        room -= len(plain[-1])
    return plain


def _event(at: str, key: bytes, value: bytes, options: SinkOptions) -> Event:
    about = load(key, f"{at}: the key")
    commit_ts = integer(about, "ts", f"{at}: the key", 0, MAX_TS)
    match integer(about, "t", f"{at}: the key", 0, MAX_ID):
        case json_open.ROW:
            return _row(at, about, load(value, at), commit_ts, options)
        case json_open.DDL:
            return _ddl(at, about, load(value, at), commit_ts)
        case json_open.RESOLVED:
            if value:
                raise DecodeError(f"{at}: the value of a resolved event has {len(value)} bytes, expected none", code="TRAILING_BYTES")
            return Event(kind="resolved", commit_ts=commit_ts)
        case other:
            raise DecodeError(f"{at}: type {other}, expected 1 (row), 2 (DDL) or 3 (resolved)", code="UNKNOWN_TYPE")


def _ddl(at: str, key: dict[str, Any], value: dict[str, Any], commit_ts: int) -> Event:
    return Event(
        kind="ddl",
        commit_ts=commit_ts,
        database=_name(key, "scm", at),
        table=_name(key, "tbl", at),
        ddl=statement(value, "q", at),
        ddl_type=str(integer(value, "t", at, 0, MAX_ID)),
    )


def _row(at: str, key: dict[str, Any], value: dict[str, Any], commit_ts: int, options: SinkOptions) -> Event:
    database, table = _name(key, "scm", at), _name(key, "tbl", at)
    if database is None or table is None:
        raise DecodeError(f"{at}: a row of database {database!r} and table {table!r}, expected both names", code="BAD_STRUCTURE")
    sides = sorted({"u", "p", "d"} & value.keys())
    if sides not in (["u"], ["p", "u"], ["d"]):
        raise DecodeError(f"{at}: a row with the members {sides}, expected u, u and p, or d", code="BAD_STRUCTURE")
    row_schema, after = _image(at, value, "u") if "u" in value else (None, None)
    before_schema, before = _image(at, value, "d" if "d" in value else "p") if len(sides) > 1 or "d" in value else (None, None)
    return Event(
        kind="row",
        op="delete" if "d" in value else "update" if "p" in value else _op_of_bare_row(options),
        commit_ts=commit_ts,
        database=database,
        table=table,
        physical_table_id=None if key.get("ptn") is None else integer(key, "ptn", f"{at}: the key", 0, MAX_ID),
        row_schema=row_schema,
        before_schema=before_schema,
        after=after,
        before=before,
        handle_only=_flag(key, "ohk", at),
        claim_check=_name(key, "ccl", at),
    )


def _op_of_bare_row(options: SinkOptions) -> str:
    """An update without its previous row looks like an insert (2.3): it has none without old values, and none where only changed
    columns are sent and nothing changed."""
    return "insert" if options.open_output_old_value and not options.only_output_updated_columns else "upsert"


def _name(key: dict[str, Any], member: str, at: str) -> str | None:
    """Classic TiCDC leaves an empty name out, the new architecture writes it (2.2)."""
    return None if key.get(member) is None else string(key, member, f"{at}: the key") or None


def _flag(members: dict[str, Any], member: str, at: str) -> bool:
    value = members.get(member)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise DecodeError(f"{at}: member {member} is a JSON {kind(value)}, expected true or false", code="BAD_VALUE")
    return value


def _image(at: str, value: dict[str, Any], side: str) -> tuple[RowSchema, list[bytes | None]]:
    columns = value[side]
    if not isinstance(columns, dict):
        raise DecodeError(f"{at}: member {side} is a JSON {kind(columns)}, expected an object of columns", code="BAD_STRUCTURE")
    if side == "p":  # the new architecture's stray members of a column that became NULL (2.3)
        columns = {name: c for name, c in columns.items() if isinstance(c, dict)}
    elif not columns:
        raise DecodeError(f"{at}: member {side} has no columns", code="BAD_STRUCTURE")
    refuse_width(columns, f"{at}: member {side}")
    described, cells = [], []
    for name, column in columns.items():
        where = f"{at}, column {name[:80]!r} of {side}"
        if not isinstance(column, dict):
            raise DecodeError(f"{where}: a JSON {kind(column)}, expected an object", code="BAD_STRUCTURE")
        code, flag = integer(column, "t", where, 0, 255), integer({"f": 0} | column, "f", where, 0, MAX_ID)
        described.append(_described(name, code, flag, _flag(column, "h", where), where))
        cells.append(_cell(required(column, "v", where), code, flag, where))
    return RowSchema(tuple(described)), cells


def _described(name: str, code: int, flag: int, key: bool, where: str) -> SchemaColumn:
    type_word = word(code, flag)
    if type_word is None and code not in NAMELESS:
        raise DecodeError(f"{where}: type code {code} is unknown", code="UNKNOWN_TYPE")
    return SchemaColumn(name, type_word, key, flag)


def _cell(value: Any, code: int, flag: int, where: str) -> bytes | None:
    match _kind(code, flag), value:
        case _, None:
            return None
        case json_cells.INTEGER, int() if not isinstance(value, bool):
            if not -(1 << 63) <= value < 1 << 64:
                raise DecodeError(f"{where}: an integer of {value.bit_length()} bits, expected -2^63 to 2^64 - 1", code="BAD_VALUE")
            return b"%d" % value
        case json_cells.FLOAT, int() | Number() if not isinstance(value, bool):
            return _float(value, where)
        case json_cells.BASE64 | json_cells.BASE64_TEXT as text, str() if not isinstance(value, Number):
            return _from_base64(value, text == json_cells.BASE64_TEXT, where)
        case json_cells.QUOTED, str() if not isinstance(value, Number):
            return _unquoted(value, where)
        case _, str() if not isinstance(value, Number):  # also where a number was expected: hand-made messages have that
            return value.encode()
    raise DecodeError(f"{where}: a JSON {kind(value)} for type code {code}", code="BAD_VALUE")


def _kind(code: int, flag: int) -> int:
    """What to do to the values of a column: one of the kinds of wire.json.json_cells."""
    if code in INTEGERS:
        return json_cells.INTEGER
    if code in FLOATS:
        return json_cells.FLOAT
    if code in BASE64:
        return json_cells.BASE64 if flag & BINARY else json_cells.BASE64_TEXT
    if code in QUOTED_IF_BINARY and flag & BINARY:
        return json_cells.QUOTED
    return json_cells.VOID if code in NAMELESS else json_cells.TEXT


def _float(value: int | Number, where: str) -> bytes:
    """The number's own text: it is the shortest one already."""
    if (isinstance(value, int) and value.bit_length() > 1023) or not math.isfinite(float(value)):
        raise DecodeError(f"{where}: a number beyond the largest double", code="BAD_VALUE")
    return str(value).encode()


def _from_base64(text: str, is_text: bool, where: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
        if is_text:
            raw.decode()
    except UnicodeDecodeError as e:
        raise DecodeError(f"{where}: the text is not UTF-8 at byte {e.start} of {len(raw)}", code="BAD_UTF8") from e
    except (binascii.Error, ValueError) as e:
        raise DecodeError(f"{where}: {len(text)} characters are not base64: {e}", code="BAD_VALUE") from e
    return raw


def _unquoted(text: str, where: str) -> bytes:
    """Undoes Go's strconv.Quote: bytes that are no UTF-8 and unprintable characters came as escapes (2.4)."""
    raw, sent, at = list[bytes](), text.encode(), 0
    for match in _GO_ESCAPE.finditer(sent):
        raw += [_literal(sent[at : match.start()], where), _unescaped(match, where)]
        at = match.end()
    return b"".join([*raw, _literal(sent[at:], where)])


def _literal(sent: bytes, where: str) -> bytes:
    if not _GO_PLAIN.fullmatch(sent):
        raise DecodeError(f"{where}: {sent.decode()[:60]!r} is not valid in a Go string literal", code="BAD_VALUE")
    return sent


def _unescaped(escape: re.Match[bytes], where: str) -> bytes:
    byte, short, long, octal, letter = escape.groups()
    if letter:
        return bytes([_GO_LETTERS[letter[0]]])
    if byte or octal:
        return bytes([int(byte, 16) if byte else int(octal, 8)])
    try:
        return chr(int(short or long, 16)).encode()
    except (ValueError, OverflowError) as e:
        raise DecodeError(f"{where}: {escape[0].decode()} is no character", code="BAD_VALUE") from e


def _learned(known: KnownSchemas, key: bytes, value: bytes, context: Context) -> KnownSchemas:
    """What the compiled scan can recognise after it has seen this message: tables it has not met, columns they did not have."""
    if context.options.large_message_handle_compression != "none":
        return known
    try:
        events = read(key, value, context)
        parts = zip(_parts(key, 8, "key"), _parts(value, 0, "value"), events, strict=True)
        rows = ((k.decode(), v.decode(), e) for k, v, e in parts if e.kind == "row")
        for key_text, text, event in rows:
            raw = {name: key_text[start + 1 : end - 1].encode() for name, _, start, end in members(key_text, 0)}
            table = KnownTable((raw["scm"], raw["tbl"]), (event.database, event.table))
            for side, _, start, _ in members(text, 0):
                taught = known.with_layout(table, _columns(text, start)) if side in ("u", "p", "d") else known
                if taught is not known:
                    return taught
    except (DecodeError, ValueError):
        pass  # not a message for the compiled scan: the general reader says what it is
    return known


def _columns(text: str, at: int) -> list[KnownColumn]:
    """The columns of the image at `at` by nothing but the bytes before their values: what compiled code will compare is what it will
    take them for. Raises ValueError where they are not of the compact form."""
    columns = []
    for name, piece, start, _ in members(text, at):
        form = _COMPACT_COLUMN.match(text, start)
        if not form:
            raise ValueError(f"column {name} is not in the compact form")
        code, flag = int(form[1]), int(form[3] or 0)
        described = _described(name, code, flag, form[2] is not None, name)
        columns.append(KnownColumn((piece + form[0]).encode(), b"", _kind(code, flag), described))
    if len({c.described.name for c in columns}) < len(columns):
        raise ValueError("a column occurs twice")
    return columns
