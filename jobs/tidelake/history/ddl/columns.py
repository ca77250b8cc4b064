"""Parses column definitions: name, type, options (`DEFAULT`, `NOT NULL`, …)."""

from __future__ import annotations

from dataclasses import replace

from tidelake.errors import ContractError
from tidelake.history.ddl.changes import FIRST, ColumnDef
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.ddl.defaults import older_rows
from tidelake.history.ddl.tokens import END, Cursor, Token

_TYPE_TAILS = {"PRECISION", "VARYING", "VARCHAR", "VARBINARY", "UNSIGNED", "ZEROFILL", "SIGNED"}
_NATIONAL = {"NATIONAL", "NCHAR", "NVARCHAR"}  # their charset is utf8
_BYTES_OF = {
    "char": "binary",
    "varchar": "varbinary",
    "tinytext": "tinyblob",
    "text": "blob",
    "mediumtext": "mediumblob",
    "longtext": "longblob",
}
_SQL_DEFAULTS = {"decimal": 10, "bit": 1, "char": 1, "binary": 1, "datetime": 0, "timestamp": 0, "time": 0}


class _Options:
    """Options after a column's type. binary: whether the charset is; None if it is the table's."""

    def __init__(self, binary: bool | None) -> None:
        self.nullable = True
        self.primary = False
        self.unique = False
        self.virtual = False
        self.computed = False
        self.numbered = False
        self.binary = binary
        self.default: list[Token] | None = None
        self.inputs: tuple[str, ...] = ()


def column_def(cursor: Cursor, *, binary: bool = False) -> ColumnDef:
    """Parse one column definition up to its comma, closing parenthesis, position word or the end. Raises ContractError.

    binary: the table's charset is binary.
    """
    start = cursor.at
    name = cursor.identifier()
    national = cursor.next.upper in _NATIONAL
    mysql = _type(cursor)
    options = _options(cursor, False if national else None)
    of_bytes = None
    if options.binary is None and binary:
        options.binary = True
    elif options.binary is None and mysql.word in _BYTES_OF:
        end, cursor.at = cursor.at, start
        of_bytes = column_def(cursor, binary=True)
        cursor.at = end
    if mysql.word == "serial":
        mysql, options.nullable, options.unique, options.numbered = MysqlType("bigint", unsigned=True), False, True, True
    if options.binary and mysql.word in _BYTES_OF:
        mysql = MysqlType(_BYTES_OF[mysql.word], length=mysql.length)
    nullable = options.nullable and not options.primary
    try:
        default, known = older_rows(options.default, mysql, nullable)
    except ContractError as e:
        raise ContractError(f"column {name!r}: {e.message}") from e
    return ColumnDef(
        name=name,
        type=mysql,
        nullable=nullable,
        default=default,
        default_known=known and not (options.computed or options.numbered),
        primary=options.primary,
        unique=options.unique,
        virtual=options.virtual,
        stored=options.computed,
        inputs=options.inputs,
        of_bytes=of_bytes,
    )


def position(cursor: Cursor) -> str | None:
    """Parse `FIRST` or `AFTER column`; None if neither follows."""
    if cursor.skip("FIRST"):
        return FIRST
    return cursor.identifier() if cursor.skip("AFTER") else None


def _type(cursor: Cursor) -> MysqlType:
    if cursor.next.kind != "word":
        raise ContractError(f"expected a type, found {cursor.next.text!r} in {cursor.sql!r}")
    words = [cursor.take().text]
    if words[0].upper() == "NATIONAL":
        words.append(cursor.take().text)
    words += _tails(cursor)
    numbers = ""
    if cursor.next.upper == "(":
        start = cursor.next.start
        cursor.parenthesised()
        numbers = cursor.sql[start : cursor.tokens[cursor.at - 1].end + 1]
    mysql = MysqlType.parse(" ".join([*words, numbers, *_tails(cursor)]))
    if mysql.length is None and mysql.word in _SQL_DEFAULTS:
        mysql = replace(mysql, length=_SQL_DEFAULTS[mysql.word], scale=0 if mysql.word == "decimal" else None)
    return mysql if mysql.elements is None else replace(mysql, elements=tuple(e.rstrip(" ") for e in mysql.elements))


def _tails(cursor: Cursor) -> list[str]:
    out = []
    while cursor.next.upper in _TYPE_TAILS:
        out.append(cursor.take().text)
    return out


def _options(cursor: Cursor, binary: bool | None) -> _Options:
    out = _Options(binary)
    while cursor.next is not END and cursor.next.upper not in (",", ")", "FIRST", "AFTER"):
        if not _option(cursor, out):
            _skip_one(cursor)
    return out


def _option(cursor: Cursor, out: _Options) -> bool:
    """Parse one relevant option; False if the next word is another."""
    if cursor.skip("NOT", "NULL"):
        out.nullable = False
    elif cursor.skip("DEFAULT"):
        out.default = _default_tokens(cursor)
    elif cursor.skip("PRIMARY", "KEY") or cursor.skip("KEY"):
        out.primary = True
    elif cursor.skip("AUTO_INCREMENT"):
        out.numbered = True
    elif cursor.skip("UNIQUE"):
        cursor.skip("KEY")
        out.unique = True
    elif cursor.skip("CHARACTER", "SET") or cursor.skip("CHARSET"):
        cursor.skip("=")
        out.binary = cursor.take().text.lower() == "binary"
    elif cursor.skip("COLLATE"):
        out.binary = cursor.take().text.lower() == "binary"
    elif cursor.skip("ASCII") or cursor.skip("UNICODE"):
        out.binary = False
    elif cursor.skip("AS"):
        out.inputs = tuple(sorted({t.text.lower() for t in cursor.parenthesised() if t.kind in ("word", "name")}))
        out.computed = cursor.skip("STORED") or cursor.skip("PERSISTENT")
        out.virtual = not out.computed
    else:
        return False
    return True


def _skip_one(cursor: Cursor) -> None:
    if cursor.next.upper == "(":
        cursor.parenthesised()
    elif cursor.skip("COMMENT"):
        cursor.take()
    elif cursor.skip("ON", "UPDATE"):
        _default_tokens(cursor)
    else:
        cursor.take()


def _default_tokens(cursor: Cursor) -> list[Token]:
    """The default's tokens: a literal with sign or introducer, a function call, or a parenthesised expression."""
    start = cursor.at
    if cursor.next.upper == "(":
        cursor.parenthesised()
        return cursor.tokens[start : cursor.at]
    while cursor.next.kind == "introducer" or cursor.next.upper in ("-", "+"):
        cursor.take()
    cursor.take()
    if cursor.next.upper == "(":
        cursor.parenthesised()
    return cursor.tokens[start : cursor.at]
