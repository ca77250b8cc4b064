"""MySQL column types: read from their SQL text, mapped to lake types (design section 6).

A lake type is written as Spark and Iceberg both read it: int, bigint, decimal(p,s), float, double, date, timestamp_ntz (no zone),
timestamp (an instant), string, binary, array<float>.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidelake.errors import ContractError
from tidelake.feed import ZeroDate

_TYPE = re.compile(r"\s*([a-z][a-z0-9_ ]*?)\s*(?:\((.*)\))?\s*((?:\b(?:unsigned|zerofill|signed|binary)\b|\s)*)", re.IGNORECASE | re.DOTALL)
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
    "real": "double",
    "double precision": "double",
    "character": "char",
    "nchar": "char",
    "nvarchar": "varchar",
    "character varying": "varchar",
    "tidbvectorfloat32": "vector",
}
_INTEGERS = {"tinyint": "int", "smallint": "int", "mediumint": "int", "int": "int", "bigint": "bigint", "year": "int"}
_TEXT = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json", "time"})
_BINARY = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_DATES = {"date": "date", "datetime": "timestamp_ntz", "timestamp": "timestamp"}
_SIGNABLE = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "decimal"})
MAX_PRECISION = 38


@dataclass(frozen=True, slots=True)
class MysqlType:
    """A MySQL type. length: display width, characters, precision or fraction digits; elements: of ENUM and SET, where known."""

    word: str
    unsigned: bool = False
    length: int | None = None
    scale: int | None = None
    elements: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, text: str) -> MysqlType:
        """`decimal(10,4) unsigned`, `enum('a','b')`, `TIMESTAMP(6)`, … Raises ContractError."""
        match = _TYPE.fullmatch(text)
        if not match:
            raise ContractError(f"not a MySQL type: {text!r}")
        word = " ".join(match[1].lower().split())
        modifiers = match[3].lower().split()
        while (tail := word.rpartition(" ")[2]) in ("unsigned", "zerofill", "signed"):  # without parentheses they follow the word
            word, modifiers = word.removesuffix(tail).rstrip(), [*modifiers, tail]
        word = _ALIASES.get(word, word)
        unsigned = bool({"unsigned", "zerofill"} & set(modifiers)) and word in _SIGNABLE
        if word in ("enum", "set"):
            return cls(word, elements=_elements(match[2]) if match[2] else None)
        numbers = [int(n) for n in re.findall(r"\d+", match[2] or "")]
        if word == "decimal" and not numbers and match[2] is not None:
            raise ContractError(f"not a MySQL type: {text!r}")
        return cls(word, unsigned, numbers[0] if numbers else None, numbers[1] if len(numbers) > 1 else None)

    @property
    def name(self) -> str:
        """The word that protocols share: `bigint unsigned`."""
        return f"{self.word} unsigned" if self.unsigned else self.word

    @property
    def is_binary(self) -> bool:
        """Whether cells are raw bytes rather than text."""
        return self.word in _BINARY

    @property
    def fraction_digits(self) -> int | None:
        """Of temporal types; None where the protocol did not say."""
        return self.length if self.word in ("datetime", "timestamp", "time") else None

    @property
    def sql(self) -> str:
        """As SQL writes it; `parse` reads it back."""
        if self.elements is not None:
            return f"{self.word}({','.join(_quoted(e) for e in self.elements)})"
        numbers = ",".join(str(n) for n in (self.length, self.scale) if n is not None)
        return f"{self.word}({numbers})" + (" unsigned" if self.unsigned else "") if numbers else self.name


def lake_type(mysql: MysqlType, zero_date: ZeroDate = "null") -> str:
    """The lake's type of a column (design section 6). Raises ContractError for a type that no protocol carries (GEOMETRY)."""
    word = mysql.word
    if word in _INTEGERS:
        return _integer(mysql)
    if word in _TEXT or word in ("enum", "set"):
        return "string" if mysql.elements is not None or word in _TEXT else "bigint" if word == "enum" else "decimal(20,0)"
    if word in _BINARY:
        return "binary"
    if word in _DATES:
        return "string" if zero_date == "string" else _DATES[word]
    if word in ("float", "double"):
        return word
    if word == "decimal":
        return _decimal(mysql)
    if word == "bit":
        return "bigint" if (mysql.length or 64) <= 63 else "decimal(20,0)"
    if word == "vector":
        return "array<float>"
    raise ContractError(f"no lake type for MySQL type {mysql.sql!r}", code="UNKNOWN_TYPE")


def _integer(mysql: MysqlType) -> str:
    if not mysql.unsigned:
        return _INTEGERS[mysql.word]
    return {"int": "bigint", "bigint": "decimal(20,0)"}.get(mysql.word, "int")


def _decimal(mysql: MysqlType) -> str:
    if mysql.length is None:
        return "string"  # a protocol's bare word: precision unknown
    return f"decimal({mysql.length},{mysql.scale or 0})" if mysql.length <= MAX_PRECISION else "string"


def _elements(text: str) -> tuple[str, ...]:
    """Members of `'a','it''s'`; backslash escapes are MySQL's."""
    members = re.findall(r"'((?:[^'\\]|''|\\.)*)'", text, re.DOTALL)
    return tuple(re.sub(r"\\(.)", r"\1", m.replace("''", "'"), flags=re.DOTALL) for m in members)


def _quoted(member: str) -> str:
    return "'" + member.replace("\\", "\\\\").replace("'", "''") + "'"
