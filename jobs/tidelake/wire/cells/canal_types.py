"""Column types as Canal writes them, in JSON and in protobuf alike (docs/reference/protocols.md 5.3).

Alibaba Canal decides by its own list of type names what is text. What a binlog holds as a BLOB and is not on that list (MariaDB's JSON,
TEXT(100)) has the JDBC code of a BLOB, and its bytes are written as code points, as those of binary columns are.
"""

from __future__ import annotations

from functools import lru_cache

from tidelake.errors import ContractError, DecodeError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.wire.kernels.canal_marks import BLOB

MAX_TYPE = 64  # characters of a type outside its parentheses
TEXT, BYTES, TEXT_AS_BYTES = range(3)  # as it is; bytes as code points U+0000 to U+00FF; the bytes of UTF-8, so written
_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json"})
_SHAPES = frozenset({"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection"})


@lru_cache(maxsize=4096)
def column_type(text: str) -> tuple[str, str | None, bool]:
    """The word of a type, its full text where that is more precise, and whether its values are bytes. Raises DecodeError."""
    head, parenthesis, tail = text.partition("(")[0], "(" in text, text.rpartition(")")[2]
    if len(head) > MAX_TYPE or (parenthesis and len(tail) > MAX_TYPE):
        raise DecodeError(f"mysqlType {text[:40]!r}... of {len(text)} characters is no MySQL type", code="UNKNOWN_TYPE")
    try:
        parsed = MysqlType.parse(text)
    except ContractError as e:
        raise DecodeError(f"mysqlType {text[:80]!r} is no MySQL type", code="UNKNOWN_TYPE") from e
    return parsed.name, text if parenthesis else None, parsed.is_binary


def form(word: str, binary: bool, code: object) -> int:
    """How the values of a column are written: TEXT, BYTES or TEXT_AS_BYTES. code: of its sqlType.

    A SET is a number, in ASCII: its code is a BLOB's where it is NULL.
    """
    if binary or word == "set" or word in _SHAPES:
        return BYTES
    return TEXT_AS_BYTES if code == BLOB and word in _TEXTS else TEXT


def utf8(text: bytes) -> bytes:
    """The bytes of a text column, with U+FFFD for what is not UTF-8."""
    return text.decode(errors="replace").encode()
