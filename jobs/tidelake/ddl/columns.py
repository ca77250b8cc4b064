"""Column definitions: name, type, options (`DEFAULT`, `NOT NULL`, …), and what older rows take for a new column."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from tidelake.ddl.changes import FIRST, ColumnDef
from tidelake.ddl.tokens import END, Cursor, Token
from tidelake.errors import ContractError
from tidelake.values import MysqlType

_TYPE_TAILS = {"PRECISION", "VARYING", "VARCHAR", "VARBINARY", "UNSIGNED", "ZEROFILL", "SIGNED"}
_BYTES_OF = {
    "char": "binary",
    "varchar": "varbinary",
    "tinytext": "tinyblob",
    "text": "blob",
    "mediumtext": "mediumblob",
    "longtext": "longblob",
}
_SQL_DEFAULTS = {"decimal": 10, "bit": 1, "char": 1, "binary": 1, "datetime": 0, "timestamp": 0, "time": 0}
_NUMBERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit"})
_ZERO_DATES = {"date": "0000-00-00", "datetime": "0000-00-00 00:00:00", "timestamp": "0000-00-00 00:00:00", "time": "00:00:00"}


class _Options:
    """What the words after a column's type say."""

    def __init__(self) -> None:
        self.nullable = True
        self.primary = False
        self.unique = False
        self.virtual = False
        self.binary = False
        self.default: list[Token] | None = None


def column_def(cursor: Cursor) -> ColumnDef:
    """Read one column definition up to its comma, closing parenthesis, position word or the end. Raises ContractError."""
    name = cursor.identifier()
    mysql = _type(cursor)
    options = _options(cursor)
    if options.binary and mysql.word in _BYTES_OF:
        mysql = MysqlType(_BYTES_OF[mysql.word], length=mysql.length)
    nullable = options.nullable and not options.primary
    default, known = _older_rows(options.default, mysql, nullable, name)
    return ColumnDef(
        name=name,
        type=mysql,
        nullable=nullable,
        default=default,
        default_known=known,
        primary=options.primary,
        unique=options.unique,
        virtual=options.virtual,
    )


def position(cursor: Cursor) -> str | None:
    """`FIRST` or `AFTER column`, None where neither comes."""
    if cursor.skip("FIRST"):
        return FIRST
    return cursor.identifier() if cursor.skip("AFTER") else None


def _type(cursor: Cursor) -> MysqlType:
    first = cursor.take()
    end = first.end
    while cursor.next.upper in _TYPE_TAILS:
        end = cursor.take().end
    if cursor.next.upper == "(":
        cursor.parenthesised()
        end = cursor.tokens[cursor.at - 1].end
        while cursor.next.upper in _TYPE_TAILS:
            end = cursor.take().end
    mysql = MysqlType.parse(cursor.sql[first.start : end + 1])
    if mysql.length is None and mysql.word in _SQL_DEFAULTS:
        mysql = MysqlType(mysql.word, mysql.unsigned, _SQL_DEFAULTS[mysql.word], 0 if mysql.word == "decimal" else None)
    return mysql


def _options(cursor: Cursor) -> _Options:
    out = _Options()
    while cursor.next is not END and cursor.next.upper not in (",", ")", "FIRST", "AFTER"):
        if not _option(cursor, out):
            _skip_one(cursor)
    return out


def _option(cursor: Cursor, out: _Options) -> bool:
    """Read one option that matters; False if the next word is another."""
    if cursor.skip("NOT", "NULL"):
        out.nullable = False
    elif cursor.skip("DEFAULT"):
        out.default = _default_tokens(cursor)
    elif cursor.skip("PRIMARY", "KEY") or cursor.skip("KEY"):
        out.primary = True
    elif cursor.skip("UNIQUE"):
        cursor.skip("KEY")
        out.unique = True
    elif cursor.skip("CHARACTER", "SET") or cursor.skip("CHARSET"):
        cursor.skip("=")
        out.binary = cursor.take().text.lower() == "binary"
    elif cursor.skip("AS"):
        cursor.parenthesised()
        out.virtual = not cursor.skip("STORED")
    else:
        return False
    return True


def _skip_one(cursor: Cursor) -> None:
    if cursor.next.upper == "(":
        cursor.parenthesised()
    elif cursor.skip("COMMENT") or cursor.skip("COLLATE"):
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


def _older_rows(tokens: list[Token] | None, mysql: MysqlType, nullable: bool, name: str) -> tuple[str | None, bool]:
    """What rows from before the column hold: (canonical text, whether it is known). TiDB: the constant default as of the DDL, else NULL,
    else the type's zero value."""
    if tokens is None:
        return (None, True) if nullable else (_zero(mysql), True)
    tokens = [t for t in tokens if t.kind != "introducer" and t.upper != "+"]
    sign = "-" if tokens and tokens[0].upper == "-" else ""
    rest = tokens[1:] if sign else tokens
    if len(rest) != 1 or rest[0].upper not in ("", "NULL", "TRUE", "FALSE") or rest[0].kind == "name":
        return None, False
    if rest[0].upper == "NULL":
        return None, True
    try:
        return _canonical(rest[0], sign, mysql), True
    except (InvalidOperation, ValueError) as e:
        raise ContractError(f"column {name!r}: {rest[0].text!r} is no default for {mysql.sql}") from e


def _canonical(token: Token, sign: str, mysql: MysqlType) -> str:
    if token.kind in ("bits", "hex"):
        number = int(token.text, 2 if token.kind == "bits" else 16)
        if mysql.word in _NUMBERS or mysql.word == "decimal":
            return str(number)
        raw = number.to_bytes((len(token.text) + 1) // 2 if token.kind == "hex" else (len(token.text) + 7) // 8, "big")
        return raw.hex() if mysql.is_binary else raw.decode()
    text = sign + {"TRUE": "1", "FALSE": "0"}.get(token.upper, token.text)
    if mysql.word in _NUMBERS:
        return str(int(Decimal(text).to_integral_value()))
    if mysql.word == "decimal":
        return f"{Decimal(text):.{mysql.scale or 0}f}"
    if mysql.word in ("float", "double"):
        return repr(float(text))
    if mysql.word in ("datetime", "timestamp", "time"):
        return _temporal(text, mysql)
    if mysql.is_binary:
        raw = text.encode()
        return (raw.ljust(mysql.length or 0, b"\0") if mysql.word == "binary" else raw).hex()
    return text


def _temporal(text: str, mysql: MysqlType) -> str:
    whole, _, fraction = text.partition(".")
    if mysql.word != "time" and re.fullmatch(r"\d{4}-\d{2}-\d{2}", whole):
        whole += " 00:00:00"
    digits = mysql.length or 0
    return f"{whole}.{fraction.ljust(digits, '0')[:digits]}" if digits else whole


def _zero(mysql: MysqlType) -> str | None:
    """The implicit default of a NOT NULL column."""
    if mysql.word in _NUMBERS:
        return "0"
    if mysql.word == "decimal":
        return f"{Decimal(0):.{mysql.scale or 0}f}"
    if mysql.word in ("float", "double"):
        return "0.0"
    if mysql.word == "date":
        return _ZERO_DATES["date"]
    if mysql.word in _ZERO_DATES:
        return _temporal(_ZERO_DATES[mysql.word], mysql)
    if mysql.word == "enum":
        return mysql.elements[0] if mysql.elements else None
    if mysql.word == "json":
        return "null"
    if mysql.word == "binary":
        return "00" * (mysql.length or 0)
    return ""
