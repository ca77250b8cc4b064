"""What the `schema` of a Debezium envelope says of a row's columns (docs/reference/protocols.md 9.2 and 9.2.1).

schema := {"fields": [{"field": "before" | "after", "fields": [field]}]}
field  := {"field": column, "type": Kafka Connect's word, "name"?: meaning, "parameters"?: {…}, "default"?: …, "tidb_type"?: TiDB's word}

A column's type is tidb_type, else what `__debezium.source.column.type` says, else what the meaning says, else that of a table known from
elsewhere than the message. A column of none of these has no type: Kafka Connect's own words do not tell TEXT from ENUM, or INT UNSIGNED
from BIGINT.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidelake.errors import ContractError, DecodeError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import SchemaColumn
from tidelake.wire.cells.debezium_cells import DECIMAL, DebeziumField
from tidelake.wire.json.json_text import Number, kind, string

if TYPE_CHECKING:
    from tidelake.protocols import Context

UPSTREAM = frozenset({"mysql", "mariadb"})  # Debezium's own connectors whose messages are read, by source.connector
MAX_WORD = 64  # characters of a type
MEANINGS = {  # Debezium's name of a field → MySQL's word
    "io.debezium.time.Date": "date",
    "io.debezium.time.IsoDate": "date",
    "org.apache.kafka.connect.data.Date": "date",
    "io.debezium.time.Timestamp": "datetime",
    "io.debezium.time.MicroTimestamp": "datetime",
    "io.debezium.time.NanoTimestamp": "datetime",
    "io.debezium.time.IsoTimestamp": "datetime",
    "org.apache.kafka.connect.data.Timestamp": "datetime",
    "io.debezium.time.ZonedTimestamp": "timestamp",
    "io.debezium.time.Time": "time",
    "io.debezium.time.MicroTime": "time",
    "io.debezium.time.NanoTime": "time",
    "io.debezium.time.IsoTime": "time",
    "org.apache.kafka.connect.data.Time": "time",
    "io.debezium.time.Year": "year",
    "io.debezium.data.Bits": "bit",
    "io.debezium.data.Enum": "enum",
    "io.debezium.data.EnumSet": "set",
    "io.debezium.data.Json": "json",
    "io.debezium.data.TiDBVectorFloat32": "vector",
}
_SOURCE_TYPE = "__debezium.source.column."  # parameters with column.propagate.source.type or datatype.propagate.source.type
_FRACTIONS = ("datetime", "timestamp", "time")
_COMMA = re.compile(r"(?<!\\),")
_SCALE = re.compile("[0-9]{1,2}", re.ASCII)

Fields = dict[str, DebeziumField]


@dataclass(frozen=True, slots=True)
class DebeziumTable:
    """What is known of a table from elsewhere than the message.

    Attributes:
        known: Its columns by name.
        types_later: Whether the table may have changed since, so that types of `known` are not used.
        time_zone: The feed's time zone.
        upstream: Whether a connector of Debezium's own wrote the message, not TiCDC.
    """

    known: dict[str, SchemaColumn]
    types_later: bool
    time_zone: str
    upstream: bool = False

    @classmethod
    def of(cls, database: str, table: str, context: Context, *, upstream: bool) -> DebeziumTable:
        """Return what the context knows of a table."""
        columns = {c.name: c for c in context.columns_of(database, table) or ()}
        return cls(columns, context.types_later, context.time_zone, upstream)

    def column(self, name: str) -> SchemaColumn:
        """Return a column of which the message says the name only."""
        found = None if self.types_later else self.known.get(name)
        return found or SchemaColumn(name)


def fields_of(schema: Any, side: str, table: DebeziumTable) -> Fields:
    """Return the columns of one image by their names. Raises DecodeError."""
    for part in _list(schema, "the schema"):
        if _text(part, "field") == side:
            fields = (_field(f, table) for f in _list(part, f"the schema of {side}"))
            return {f.column.name: f for f in fields}
    raise DecodeError(f"the schema has no field {side}", code="BAD_STRUCTURE")


def _list(schema: Any, what: str) -> list[dict[str, Any]]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(fields, list) or not all(isinstance(f, dict) for f in fields):
        raise DecodeError(f"{what}: member fields is a JSON {kind(fields)}, expected an array of objects", code="BAD_STRUCTURE")
    return fields


def _field(said: dict[str, Any], table: DebeziumTable) -> DebeziumField:
    name, meaning, sent = string(said, "field", "the schema"), _text(said, "name"), _text(said, "type")
    if meaning == DECIMAL:
        return _decimal(name, said, table)
    word = _text(said, "tidb_type") or _source_word(said) or MEANINGS.get(meaning, "")
    if not word and sent == "boolean":
        word = "bit"
    if not word and sent == "bytes" and table.upstream:
        word = "varbinary"  # or BINARY, or a BLOB: their bytes are sent alike
    full_type = _full_type(word, said)
    if word == "time" and full_type is None and table.upstream and table.types_later:
        column = SchemaColumn(name)  # the fraction digits are the table's: cells stay microseconds until it is known
    elif word:
        column = SchemaColumn(name, _type(word), full_type=full_type, elements=_elements(word, said))
        known = table.known.get(name)
        if known is not None and known.type == column.type and column.full_type is None:
            column = SchemaColumn(name, column.type, full_type=known.full_type, elements=column.elements or known.elements)
    else:
        column = table.column(name)
    default = said.get("default")
    ours = not table.upstream and isinstance(default, str) and not isinstance(default, Number)  # TiCDC sends it for a NULL
    return DebeziumField(column, meaning, default if ours else None)


def _decimal(name: str, said: dict[str, Any], table: DebeziumTable) -> DebeziumField:
    """An exact number: a DECIMAL, or without a precision a BIGINT UNSIGNED (bigint.unsigned.handling.mode=precise)."""
    scale, precision = _parameter(said, "scale"), _parameter(said, "connect.decimal.precision")
    if not _SCALE.fullmatch(scale):
        raise DecodeError(f"column {name[:80]!r}: the schema of a Decimal has no scale", code="BAD_STRUCTURE")
    if not _SCALE.fullmatch(precision):
        return DebeziumField(table.column(name), DECIMAL, scale=int(scale))
    return DebeziumField(SchemaColumn(name, "decimal", full_type=f"decimal({precision},{scale})"), DECIMAL, scale=int(scale))


def _source_word(said: dict[str, Any]) -> str:
    """The source's own word for the type, where the connector was told to send it."""
    return _parameter(said, f"{_SOURCE_TYPE}type").lower()


def _type(word: str) -> str:
    try:
        if len(word) > MAX_WORD:
            raise ContractError("too long")
        return MysqlType.parse(word).name
    except ContractError as e:
        raise DecodeError(f"column type {word[:80]!r} is no MySQL type that is known here", code="UNKNOWN_TYPE") from e


def _full_type(word: str, said: dict[str, Any]) -> str | None:
    length = _parameter(said, "length") if word == "bit" else _parameter(said, f"{_SOURCE_TYPE}length") if word in _FRACTIONS else ""
    return f"{word}({length})" if _SCALE.fullmatch(length) else None


def _elements(word: str, said: dict[str, Any]) -> tuple[str, ...] | None:
    r"""Members joined by commas; a comma inside an ENUM's member is written `\\,`, inside a SET's there is none."""
    if word not in ("enum", "set") or not (allowed := _parameter(said, "allowed")):
        return None
    return tuple(member.replace("\\,", ",") for member in _COMMA.split(allowed))


def _parameter(said: dict[str, Any], name: str) -> str:
    return _text(said.get("parameters") or {}, name)


def _text(said: Any, name: str) -> str:
    """A member that is a string, or empty where it is absent."""
    value = said.get(name) if isinstance(said, dict) else None
    if value is None:
        return ""
    return string(said, name, "the schema")
