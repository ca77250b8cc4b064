"""MySQL column types: parsed from SQL text, mapped to lake types (docs/architecture.md 6).

Lake types are spelled as both Spark and Iceberg read them: int, bigint, decimal(p,s), float, double, date, timestamp_ntz (no time zone),
timestamp (an instant), string, binary, array<float>.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tidelake.config.policy import PLAIN, ValueRules
from tidelake.errors import ContractError

_WORD = re.compile(r"[a-z][a-z0-9_]*")
_MODIFIERS = frozenset({"unsigned", "zerofill", "signed", "binary"})
_NUMBER = re.compile(r"[0-9]+")
_MEMBER = re.compile(r"""'((?:[^'\\]|''|\\.)*)'|"((?:[^"\\]|""|\\.)*)\"""", re.DOTALL)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ALIASES = {
    "integer": "int",
    "int4": "int",
    "int8": "bigint",
    "int2": "smallint",
    "int1": "tinyint",
    "int3": "mediumint",
    "bool": "tinyint",
    "boolean": "tinyint",
    "numeric": "decimal",
    "dec": "decimal",
    "fixed": "decimal",
    "middleint": "mediumint",
    "float4": "float",
    "float8": "double",
    "real": "double",
    "double precision": "double",
    "character": "char",
    "nchar": "char",
    "nvarchar": "varchar",
    "varcharacter": "varchar",
    "char varying": "varchar",
    "character varying": "varchar",
    "nchar varying": "varchar",
    "nchar varchar": "varchar",
    "char byte": "binary",
    "long": "mediumtext",
    "long varchar": "mediumtext",
    "long varbinary": "mediumblob",
    "tidbvectorfloat32": "vector",
}
_INTEGERS = {"tinyint": "int", "smallint": "int", "mediumint": "int", "int": "int", "bigint": "bigint", "year": "int"}
_TEXT = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json", "time"})
_BINARY = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_DATES = {"date": "date", "datetime": "timestamp_ntz", "timestamp": "timestamp"}
_SIGNABLE = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "decimal"})
_WHOLE = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_CHARACTERS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_VARIABLE_BYTES = _BINARY - {"binary"}
_CONVERSIONS: tuple[tuple[frozenset[str], frozenset[str]], ...] = (
    (_WHOLE, _WHOLE | _CHARACTERS | {"decimal"}),
    (frozenset({"decimal"}), _WHOLE | _CHARACTERS | {"decimal"}),
    (frozenset({"float", "double"}), frozenset({"float", "double"})),
    (_CHARACTERS, _CHARACTERS | _WHOLE | {"decimal"}),
    (_VARIABLE_BYTES, _VARIABLE_BYTES),
    (frozenset({"enum"}), _CHARACTERS | {"enum"}),
    (frozenset({"set"}), _CHARACTERS | {"set"}),
    (frozenset({"datetime"}), frozenset({"datetime"})),
    (frozenset({"timestamp"}), frozenset({"timestamp"})),
    (frozenset({"time"}), frozenset({"time"})),
    (frozenset({"date"}), frozenset({"date", "datetime"})),
    (frozenset({"bit"}), frozenset({"bit"})),
)
MAX_PRECISION = 38
MAX_DIGITS = 10  # maximum digits of a length
FLOAT_DIGITS = 24  # maximum bits of a FLOAT; FLOAT(25) is a DOUBLE


@dataclass(frozen=True, slots=True)
class MysqlType:
    """A MySQL type.

    length: characters, bytes, bits, precision or fraction digits; elements: members of ENUM and SET, if known; zerofill: whether the texts
    of numbers begin with zeros, which not all protocols say. The display width of integers is left out because it does not affect values.
    """

    word: str
    unsigned: bool = False
    length: int | None = None
    scale: int | None = None
    elements: tuple[str, ...] | None = None
    zerofill: bool = field(default=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> MysqlType:
        """Parse `decimal(10,4) unsigned`, `enum('a','b')`, `TIMESTAMP(6)`, … Raises ContractError."""
        head, opened, rest = text.partition("(")
        inner, closed, tail = rest.rpartition(")")
        words, modifiers = head.lower().split(), set(tail.lower().split())
        whole = bool(opened) == bool(closed) and words and all(map(_WORD.fullmatch, words))
        if not whole or not modifiers <= _MODIFIERS:
            raise ContractError(f"not a MySQL type: {text[:200]!r}")
        while len(words) > 1 and words[-1] in _MODIFIERS:  # without parentheses the modifiers follow the word
            modifiers.add(words.pop())
        word = " ".join(words).removeprefix("national ")
        word = _ALIASES.get(word, word)
        if word in ("enum", "set"):
            return cls(word, elements=_elements(text, inner) if opened else None)
        numbers = _NUMBER.findall(inner)
        if any(len(n) > MAX_DIGITS for n in numbers) or (word == "decimal" and opened and not numbers):
            raise ContractError(f"not a MySQL type: {text[:200]!r}")
        length, scale = (*(int(n) for n in numbers[:2]), None, None)[:2]
        if word == "decimal" and length is not None:
            scale = scale or 0
        zerofill = "zerofill" in modifiers and word in _SIGNABLE
        unsigned = zerofill or ("unsigned" in modifiers and word in _SIGNABLE)
        if word == "float" and scale is None and length is not None:  # FLOAT(p): the precision only selects the type
            word, length = "double" if length > FLOAT_DIGITS else "float", None
        return cls(word, unsigned, *((None, None) if word in _INTEGERS else (length, scale)), zerofill=zerofill)

    @property
    def name(self) -> str:
        """The word that protocols use: `bigint unsigned`."""
        return f"{self.word} unsigned" if self.unsigned else self.word

    @property
    def is_binary(self) -> bool:
        """Whether cells are raw bytes rather than text."""
        return self.word in _BINARY

    @property
    def fraction_digits(self) -> int | None:
        """Fraction digits of temporal types; None if the protocol did not state them."""
        return self.length if self.word in ("datetime", "timestamp", "time") else None

    @property
    def sql(self) -> str:
        """The type as SQL; `parse` reads it back."""
        if self.elements is not None:
            return f"{self.word}({','.join(_quoted(e) for e in self.elements)})"
        numbers = ",".join(str(n) for n in (self.length, self.scale) if n is not None)
        bare = f"{self.word}({numbers})" + (" unsigned" if self.unsigned else "") if numbers else self.name
        return f"{bare} zerofill" if self.zerofill else bare


def lake_type(mysql: MysqlType, rules: ValueRules = PLAIN) -> str:
    """Return the lake's type of a column (docs/architecture.md 6). Raises ContractError for a type that no protocol sends (GEOMETRY)."""
    if rules.mask == "hash":
        return "string"
    of_type = _lake_type(mysql, rules)
    return "string" if rules.invalid_values == "string" and of_type != "binary" else of_type


def _lake_type(mysql: MysqlType, rules: ValueRules) -> str:
    word = mysql.word
    if word in _INTEGERS:
        return _integer(mysql)
    if word in _TEXT or word in ("enum", "set"):
        return "string" if mysql.elements is not None or word in _TEXT else "bigint" if word == "enum" else "decimal(20,0)"
    if word in _BINARY:
        return "binary"
    if word in _DATES:
        return "string" if rules.zero_date == "string" else _DATES[word]
    if word in ("float", "double"):
        return word
    if word == "decimal":
        return _decimal(mysql, rules.wide_decimal)
    if word == "bit":
        return "bigint" if (mysql.length or 64) <= 63 else "decimal(20,0)"
    if word == "vector":
        return "array<float>"
    raise ContractError(f"no lake type for MySQL type {mysql.sql!r}", code="UNKNOWN_TYPE")


def converts(old: MysqlType, new: MysqlType) -> bool:
    """Whether the values of existing rows in the new type can be computed.

    In strict SQL mode the server refuses the statement if a value does not fit, so only the text of values matters. Numbers are rounded
    half away from zero.
    """
    if old == new or not _conversions(old):
        return old == new
    if new.fraction_digits is not None and old.fraction_digits is not None and not _keeps_fraction(old, new):
        return False
    if old.zerofill and new.word in _CHARACTERS:
        return False  # MySQL writes as many zeros as the column shows
    if new.word in ("float", "double") and new.scale is not None and not _keeps_digits(old, new):
        return False
    return new.word in _conversions(old) and not _too_wide(old, new) and _keeps_text(old, new)


def has_charset(mysql: MysqlType) -> bool:
    """Whether values are text in a charset of the column."""
    return mysql.word in _CHARACTERS or mysql.word in ("enum", "set")


def same_number(old: MysqlType, new: MysqlType) -> bool:
    """Whether both types are whole numbers, of which all computations and texts are the same."""
    return {old.word, new.word} <= _WHOLE and old.unsigned == new.unsigned and not (old.zerofill or new.zerofill)


def _keeps_fraction(old: MysqlType, new: MysqlType) -> bool:
    """Whether no value is rounded; the lake has TIME as text with the column's digits, so theirs must stay."""
    return (new.length or 0) == (old.length or 0) or (old.word != "time" and (new.length or 0) > (old.length or 0))


def _keeps_digits(old: MysqlType, new: MysqlType) -> bool:
    """Whether no binary number is rounded to decimal digits, which servers do differently."""
    return old.word == new.word and old.scale is not None and old.scale <= (new.scale or 0)


def _keeps_text(old: MysqlType, new: MysqlType) -> bool:
    """Whether values that are text in the lake before and after stay the same text.

    A CHAR loses spaces at its end. A SET is written in the order of its elements. An element that differs in case takes the new case in
    some collations.
    """
    if new.word == "char":
        return old.word == "char" or old.word not in _CHARACTERS
    had, has = old.elements or (), new.elements or ()
    respelled = {e.lower() for e in had} & {e.lower() for e in has if e not in had}
    return not respelled and (new.word != "set" or [e for e in had if e in has] == [e for e in has if e in had])


def _conversions(old: MysqlType) -> frozenset[str]:
    """Words of the types in which values of a type can be computed."""
    return next((to for words, to in _CONVERSIONS if old.word in words), frozenset())


def _too_wide(old: MysqlType, new: MysqlType) -> bool:
    """Whether decimals that the lake keeps as text get another number of fraction digits."""
    wide = any(t.word == "decimal" and lake_type(t) == "string" for t in (old, new))
    return wide and (old.word != new.word or old.scale != new.scale)


def _integer(mysql: MysqlType) -> str:
    if not mysql.unsigned:
        return _INTEGERS[mysql.word]
    return {"int": "bigint", "bigint": "decimal(20,0)"}.get(mysql.word, "int")


def _decimal(mysql: MysqlType, wide: str) -> str:
    if mysql.length is None:
        return "string"  # a protocol's bare word: precision unknown
    return f"decimal({mysql.length},{mysql.scale or 0})" if mysql.length <= MAX_PRECISION else wide


def _elements(text: str, inner: str) -> tuple[str, ...]:
    """Members of `'a','it''s'`, with MySQL's backslash escapes."""
    members = [(m[1], "'") if m[1] is not None else (m[2], '"') for m in _MEMBER.finditer(inner)]
    if not members:
        raise ContractError(f"not a MySQL type: {text[:200]!r}")
    return tuple(re.sub(r"\\(.)", _unescaped, m.replace(quote * 2, quote), flags=re.DOTALL) for m, quote in members)


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[1], match[1])


def _quoted(member: str) -> str:
    return "'" + member.replace("\\", "\\\\").replace("'", "''") + "'"
