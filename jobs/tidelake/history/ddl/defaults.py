"""Value of an added column in older rows.

TiDB gives the constant default at the time of the statement, else NULL, else the type's zero value. Literals are read like MySQL reads
them. A literal that needs further interpretation or conversion counts as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext

from tidelake.errors import ContractError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.ddl.tokens import Token

DefaultAnswer = tuple[str | None, bool]
UNKNOWN: DefaultAnswer = (None, False)

_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit"})
_FLOATS = frozenset({"float", "double"})
_TEMPORAL = {
    "date": re.compile(r"(\d{4}-\d{2}-\d{2})()"),
    "datetime": re.compile(r"(\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2}:\d{2})?)(?:\.(\d+))?"),
    "timestamp": re.compile(r"(\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2}:\d{2})?)(?:\.(\d+))?"),
    "time": re.compile(r"(-?\d{2,3}:\d{2}:\d{2})(?:\.(\d+))?"),
}
_ZEROS = {"date": "0000-00-00", "datetime": "0000-00-00 00:00:00", "timestamp": "0000-00-00 00:00:00", "time": "00:00:00"}
_PLAIN = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_MOST_DIGITS = 400  # maximum digits of a number; the largest DOUBLE has 309


def older_rows(tokens: Sequence[Token] | None, mysql: MysqlType, nullable: bool) -> DefaultAnswer:
    """Return (canonical text, whether it is known) from the tokens after DEFAULT. Hex digits for binary types, names for ENUM and SET.

    Raises:
        ContractError: The literal is no value of the type.
    """
    if tokens is None:
        return (None, True) if nullable else _zero(mysql)
    tokens = [t for t in tokens if t.kind != "introducer" and t.upper != "+"]
    sign = "-" if tokens and tokens[0].upper == "-" else ""
    rest = tokens[1:] if sign else tokens
    if len(rest) != 1 or rest[0].upper not in ("", "NULL", "TRUE", "FALSE") or rest[0].kind == "name":
        return UNKNOWN
    if rest[0].upper == "NULL":
        return None, True
    try:
        return _reader(mysql)(_plain(rest[0]), sign, mysql)
    except (ArithmeticError, ValueError) as e:
        raise ContractError(f"{rest[0].text[:200]!r} is no default for {mysql.sql}") from e


def _plain(token: Token) -> Token:
    return Token("number", str(int(token.upper == "TRUE")), token.start, token.end) if token.kind == "word" else token


def _reader(mysql: MysqlType) -> Callable[[Token, str, MysqlType], DefaultAnswer]:
    if mysql.word in _INTEGERS:
        return _integer
    if mysql.word == "decimal":
        return _decimal
    if mysql.word in _FLOATS:
        return _float
    if mysql.word in _TEMPORAL:
        return _moment
    if mysql.word in ("enum", "set"):
        return _members
    return _bytes if mysql.is_binary else _text


def _number(token: Token, sign: str, places: int) -> Decimal:
    """The number, rounded like MySQL rounds exact numbers: half away from zero."""
    literal = str(int.from_bytes(_raw(token), "big")) if token.kind in ("bits", "hex") else token.text
    number = Decimal(sign + literal)
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        raise InvalidOperation
    with localcontext(prec=2 * _MOST_DIGITS):
        rounded = number.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return rounded if rounded else abs(rounded)


def _integer(token: Token, sign: str, mysql: MysqlType) -> DefaultAnswer:
    written = token.kind in ("bits", "hex") or (token.kind == "number" and not sign and token.text.isdecimal())
    if mysql.word == "bit" and not written:
        return UNKNOWN  # TiDB takes the bytes of the text
    number = int(_number(token, sign, 0))
    return _year(token, number) if mysql.word == "year" else (str(number), True)


def _year(token: Token, number: int) -> DefaultAnswer:
    if number == 0 and not (token.kind == "string" and token.text.isdecimal()):
        return UNKNOWN  # 2000 in TiDB, 0000 in MySQL
    if 0 < number < 100 or (number == 0 and len(token.text) < 4):
        number += 2000 if number < 70 else 1900
    return str(number), True


def _decimal(token: Token, sign: str, mysql: MysqlType) -> DefaultAnswer:
    return f"{_number(token, sign, mysql.scale or 0):f}", True


def _float(token: Token, sign: str, mysql: MysqlType) -> DefaultAnswer:
    exact = _number(token, sign, _MOST_DIGITS)
    if mysql.scale is not None and exact != _number(token, sign, mysql.scale):
        return UNKNOWN  # servers round binary numbers differently
    number = float(exact)
    if number in (float("inf"), float("-inf")):
        raise OverflowError
    return repr(number), True


def _moment(token: Token, sign: str, mysql: MysqlType) -> DefaultAnswer:
    if token.kind == "number" and token.text == "0":
        return _zero(mysql)
    found = _TEMPORAL[mysql.word].fullmatch(sign + token.text)
    if token.kind != "string" or not found:
        return UNKNOWN
    digits, fraction = mysql.length or 0, found[2] or ""
    if fraction[digits:].strip("0"):
        return UNKNOWN  # it would be rounded
    whole = found[1] if mysql.word in ("date", "time") or " " in found[1] else f"{found[1]} 00:00:00"
    return (f"{whole}.{fraction.ljust(digits, '0')[:digits]}" if digits else whole), True


def _members(token: Token, sign: str, mysql: MysqlType) -> DefaultAnswer:
    elements = mysql.elements or ()
    spelled = {e.lower(): e for e in reversed(elements)} | {e: e for e in elements}
    if token.kind != "string":
        return UNKNOWN
    text = token.text.rstrip(" ")
    wanted = [text] if mysql.word == "enum" else text.split(",") if text else []
    found = [spelled.get(name, spelled.get(name.lower())) for name in wanted]
    if None in found:
        raise ValueError(token.text)
    chosen = set(found)
    return ",".join(e for e in mysql.elements or () if e in chosen), True


def _bytes(token: Token, sign: str, mysql: MysqlType) -> DefaultAnswer:
    raw = _raw(token) if token.kind in ("bits", "hex") else (sign + token.text).encode()
    if _is_rewritten(token, sign) or not _is_text(raw):
        return UNKNOWN  # TiDB keeps defaults as text and puts U+FFFD for other bytes, MySQL keeps the bytes
    return (raw.ljust(mysql.length or 0, b"\0") if mysql.word == "binary" else raw).hex(), True


def _is_rewritten(token: Token, sign: str) -> bool:
    """Whether the text of a number differs from how it is written: 1e1, 007, -0."""
    return token.kind == "number" and (not _PLAIN.fullmatch(token.text) or (sign == "-" and Decimal(token.text) == 0))


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _text(token: Token, sign: str, mysql: MysqlType) -> DefaultAnswer:
    if _is_rewritten(token, sign):
        return UNKNOWN
    text = _raw(token).decode() if token.kind in ("bits", "hex") else sign + token.text
    return text.rstrip(" ") if mysql.word == "char" else text, True


def _raw(token: Token) -> bytes:
    """The bytes of a bit or hex literal, padded on the left."""
    base, per_byte = (2, 8) if token.kind == "bits" else (16, 2)
    return int(token.text or "0", base).to_bytes(-(-len(token.text) // per_byte), "big")


def _zero(mysql: MysqlType) -> DefaultAnswer:
    """The implicit default of a NOT NULL column."""
    if mysql.word in _ZEROS:
        digits = 0 if mysql.word == "date" else mysql.length or 0
        return _ZEROS[mysql.word] + (f".{'0' * digits}" if digits else ""), True
    if mysql.word in _INTEGERS or mysql.word == "decimal":
        return f"{Decimal(0):.{mysql.scale or 0}f}", True
    if mysql.word in _FLOATS:
        return "0.0", True
    if mysql.word == "enum":
        return (mysql.elements[0], True) if mysql.elements else UNKNOWN
    if mysql.word == "vector":
        return UNKNOWN
    if mysql.word == "binary":
        return "00" * (mysql.length or 0), True
    return ("null" if mysql.word == "json" else ""), True
