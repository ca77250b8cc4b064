r"""CSV of TiCDC's storage sink (docs/reference/protocols.md 9.5): one line a row, no statements, no watermark.

line   := "I" | "U" | "D", table, database, [commit ts], [is-update], [handle key], column…       each line ends in the terminator
header := ticdc-meta$operation, ticdc-meta$table, …, column name…                                 on top of a file, if configured

With a quote, text stands in quotes, inner quotes doubled; numbers and the null word are bare. Without one, \r \n \\ and each character
of a delimiter in the text follow a backslash, and text equal to the null word reads as NULL.
An update with its old value is a D line and an I line, both with is-update true. Where the handle key is sent too, they stay two events.

Lines name no columns and no types: those are in the sink's schema files (Context.columns) or the names in a header. Without either,
columns are c1, c2, … and cells the text as sent. A key of digits is the version of the table, where the archive says it: then its columns
are those of `table@version`, if that is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from tidelake.config.options import SinkOptions
from tidelake.errors import DecodeError
from tidelake.history.event import Event, RowSchema, SchemaColumn
from tidelake.wire.cells.plain_cells import from_text, is_binary
from tidelake.wire.kernels.arrays import Ints
from tidelake.wire.kernels.columnar import Scanned
from tidelake.wire.kernels.utf8_text import check_utf8

if TYPE_CHECKING:
    from tidelake.protocols import Context

OPS = {"I": "insert", "U": "update", "D": "delete"}
HEADER = "ticdc-meta$"
MAX_LINES, MAX_FIELDS = 1 << 15, 1 << 20  # of one message
MAX_COLUMNS = 4096 + 6  # of one line: TiDB's limit, and what stands before them
MAX_TS = (1 << 64) - 1
_REPEATS = 1000  # of a group in a regular expression, which keeps 100 bytes for each
_DIGITS = re.compile(r"[0-9]{1,20}", re.ASCII)
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line's fields before the columns, and its columns; None = NULL."""

    op: str
    database: str
    table: str
    commit_ts: int | None
    is_update: bool
    values: list[str | None]


def read(key: bytes | None, value: bytes | None, context: Context) -> list[Event]:
    """The events of the lines of one message. Raises DecodeError."""
    if value is None:
        raise DecodeError("the value is null, expected lines", code="NULL_VALUE")
    if (size := len(key or b"") + len(value)) > context.max_bytes:
        raise DecodeError(f"{size} bytes, the cap is {context.max_bytes}", code="TOO_LARGE")
    try:
        check_utf8(value)
    except UnicodeDecodeError as e:
        raise DecodeError(f"not UTF-8: byte 0x{value[e.start]:02x} at {e.start} of {len(value)}", code="BAD_UTF8") from e
    version = key.decode() if key and key.isdigit() else ""
    names: list[str] | None = None
    row_schemas: dict[tuple[str, str, bool, int], RowSchema] = {}  # by database, table, whether it is a delete, number of columns
    events: list[Event] = []
    deleted: Event | None = None  # by the D line of an update whose I line comes next
    for i, fields in enumerate(_lines(value.decode("latin-1"), context.options)):
        at = f"line {i + 1}"
        if (fields[0] or "").startswith(HEADER):
            names = [_plain(name or "") for name in fields if not (name or "").startswith(HEADER)]
            row_schemas.clear()
            continue
        line = _line(fields, context.options, at)
        alike = (line.database, line.table, line.op == "D", len(line.values))
        if alike not in row_schemas:
            row_schemas[alike] = RowSchema(_columns(line, names, version, context, at))
        event = _event(line, row_schemas[alike], context.options, at)
        if deleted is not None and _is_rest_of(event, line, deleted):
            events[-1] = replace(event, op="update", before_schema=deleted.before_schema, before=deleted.before)
            deleted = None
            continue
        events.append(event)
        deleted = event if line.op == "D" and line.is_update and not context.options.output_handle_key else None
    return events


def scan(messages: pa.RecordBatch, wanted: Ints, context: Context) -> Scanned:
    """Nothing yet: every message is left to `read`."""
    return Scanned.nothing(wanted)


def _lines(text: str, options: SinkOptions) -> Iterator[list[str | None]]:
    """The fields of each line, unquoted. Raises DecodeError (TRUNCATED where the last line has no terminator)."""
    marks = _Marks.of(_flat(options.delimiter), _flat(options.quote), _flat(options.terminator or "\r\n"))
    at, fields, line, count = 0, list[str | None](), 0, 0
    while at < len(text):
        begin, stop, end = marks.field(text, at)
        if end is None:
            raise _unreadable(text, at, line, options)
        fields.append(_unquoted(text[begin:stop], options, line, quoted=begin > at))
        count += 1
        if end["delimiter"] is None:
            yield fields
            fields, line = [], line + 1
        if line > MAX_LINES or count > MAX_FIELDS or len(fields) > MAX_COLUMNS:
            caps = f"{MAX_LINES} lines, {MAX_FIELDS} fields, or {MAX_COLUMNS} fields of a line"
            raise DecodeError(f"more than {caps}", code="TOO_LARGE")
        at = end.end()
    if fields or not line:
        raise DecodeError(f"the message ends inside line {line + 1}, after {len(fields)} fields", code="TRUNCATED")


@dataclass(frozen=True, slots=True)
class _Marks:
    """What fields are told by. part: some of a field's text with marks inside; close: what ends such a field; end: what ends a bare one."""

    quote: str
    part: re.Pattern[str]
    close: re.Pattern[str]
    end: re.Pattern[str]

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, delimiter: str, quote: str, terminator: str) -> Self:
        q, d, t = map(re.escape, (quote, delimiter, terminator))
        if quote:
            stops = re.escape(quote[0])
            inside = f"{q}{q}|(?!{q}){stops}"
        else:
            stops = rf"\\{''.join(map(re.escape, sorted({delimiter[0], terminator[0]})))}"
            inside = rf"\\.|(?!{d}|{t}|\\)[{stops}]"
        end = f"(?:(?P<delimiter>{d})|{t})"
        part = re.compile(f"[^{stops}]*(?:(?:{inside})[^{stops}]*){{0,{_REPEATS}}}", re.DOTALL)
        return cls(quote, part, re.compile(q + end), re.compile(end))

    def field(self, text: str, at: int) -> tuple[int, int, re.Match[str] | None]:
        """Return where the field's text begins and stops, and what ends it; None for a field that has no end."""
        if not text.startswith(self.quote, at):
            end = self.end.search(text, at)
            return at, len(text) if end is None else end.start(), end
        begin = last = at + len(self.quote)
        stop = self.part.match(text, begin).end()  # type: ignore[union-attr]  # it matches nothing, too
        while (end := self.close.match(text, stop)) is None and stop > last:
            stop, last = self.part.match(text, stop).end(), stop  # type: ignore[union-attr]
        return begin, stop, end


def _unreadable(text: str, at: int, line: int, options: SinkOptions) -> DecodeError:
    """Why no field begins at `at`: it is cut short, or something follows its closing quote."""
    body = text[at:]
    quote = _flat(options.quote)
    if quote and body.startswith(quote):
        inner = body[len(quote) :].replace(quote * 2, "")
        after = inner.partition(quote)[2]
        ends = (_flat(options.delimiter), _flat(options.terminator or "\r\n"))
        if quote in inner and not any(e.startswith(after) for e in ends):
            return DecodeError(f"line {line + 1}: {_plain(after[:20])!r} follows a closing quote at byte {at}", code="BAD_STRUCTURE")
    return DecodeError(f"line {line + 1}: the message ends in a field, {len(body)} bytes after {at}", code="TRUNCATED")


def _unquoted(text: str, options: SinkOptions, line: int, *, quoted: bool) -> str | None:
    if quoted:
        quote = _flat(options.quote)
        return text.replace(quote * 2, quote)
    if text == _flat(options.null):
        return None
    return text if options.quote else _unescaped(text, _flat(options.delimiter), line)


def _unescaped(text: str, delimiter: str, line: int) -> str:
    if "\\" not in text:
        return text

    def plain(escape: re.Match[str]) -> str:
        letter = escape[1]
        if letter in delimiter + "\\" and letter:
            return letter
        if letter in "rn" and letter:
            return "\r" if letter == "r" else "\n"
        raise DecodeError(f"line {line + 1}: {_plain(escape[0])!r} is no escape", code="BAD_VALUE")

    return _ESCAPE.sub(plain, text)


def _line(fields: list[str | None], options: SinkOptions, at: str) -> _Line:
    count = 3 + options.include_commit_ts + options.output_old_value + options.output_handle_key
    if len(fields) <= count:
        raise DecodeError(f"{at} has {len(fields)} fields, expected {count} before the columns", code="BAD_STRUCTURE")
    meta = ["" if f is None else _plain(f) for f in fields[:count]]
    op, table, database, *more = meta
    if op not in OPS:
        raise DecodeError(f"{at}: operation {op[:40]!r}, expected I, U or D", code="UNKNOWN_TYPE")
    if not table or not database:
        raise DecodeError(f"{at} of database {database[:80]!r} and table {table[:80]!r}, expected both names", code="BAD_STRUCTURE")
    commit_ts = _commit_ts(more.pop(0), at) if options.include_commit_ts else None
    is_update = more.pop(0) if options.output_old_value else "false"
    if is_update not in ("true", "false"):
        raise DecodeError(f"{at}: is-update is {is_update[:40]!r}, expected true or false", code="BAD_VALUE")
    return _Line(op, database, table, commit_ts, is_update == "true", fields[count:])


def _commit_ts(text: str, at: str) -> int:
    if not _DIGITS.fullmatch(text) or int(text) > MAX_TS:
        raise DecodeError(f"{at}: commit ts {text[:40]!r}, expected 0 to {MAX_TS}", code="BAD_VALUE")
    return int(text)


def _event(line: _Line, row_schema: RowSchema, options: SinkOptions, at: str) -> Event:
    cells = [_cell(v, c, options, at) for v, c in zip(line.values, row_schema.columns, strict=True)]
    deleted = line.op == "D"
    return Event(
        kind="row",
        op=OPS[line.op],
        commit_ts=line.commit_ts,
        database=line.database,
        table=line.table,
        row_schema=None if deleted else row_schema,
        before_schema=row_schema if deleted else None,
        after=None if deleted else cells,
        before=cells if deleted else None,
    )


def _columns(line: _Line, names: list[str] | None, version: str, context: Context, at: str) -> tuple[SchemaColumn, ...]:
    known = context.columns_of(line.database, f"{line.table}@{version}") if version else None
    known = known or context.columns_of(line.database, line.table)
    if names is not None:
        by_name = {c.name: c for c in known or ()}
        columns = tuple(by_name.get(name) or SchemaColumn(name) for name in names)
    elif known is not None:
        columns = known
    else:
        columns = _nameless(len(line.values))
    keys = tuple(c for c in columns if c.key)
    if line.op == "D" and context.options.delete_only_output_handle_key_columns and len(line.values) == len(keys):
        return keys
    if len(columns) != len(line.values):
        where = f"{line.database}.{line.table}"[:160]
        raise DecodeError(f"{at} has {len(line.values)} columns, {where} has {len(columns)}", code="BAD_STRUCTURE")
    return columns


@lru_cache(maxsize=64)
def _nameless(count: int) -> tuple[SchemaColumn, ...]:
    return tuple(SchemaColumn(f"c{i}") for i in range(1, count + 1))


def _cell(value: str | None, column: SchemaColumn, options: SinkOptions, at: str) -> bytes | None:
    if value is None:
        return None
    if is_binary(column):
        return from_text(value, options.binary_encoding_method, f"{at}, column {column.name[:80]!r}")
    return value.encode("latin-1")


@lru_cache(maxsize=64)
def _flat(text: str) -> str:
    """Text in the lines' encoding: one character a byte, because a str takes four bytes a character beyond U+FFFF."""
    return text.encode().decode("latin-1")


def _plain(flat: str) -> str:
    """The content of the lines, as text."""
    return flat.encode("latin-1").decode(errors="replace")


def _is_rest_of(event: Event, line: _Line, deleted: Event) -> bool:
    same = (event.database, event.table, event.commit_ts) == (deleted.database, deleted.table, deleted.commit_ts)
    return line.op == "I" and line.is_update and same
