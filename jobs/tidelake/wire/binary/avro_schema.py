"""TiCDC's Avro schemas (docs/reference/protocols.md 4.2): a record's fields as columns, and as the steps of decoder and kernel.

Defaults are ignored: those of bytes are base64, which Avro does not know, and one of BIGINT UNSIGNED may be -1 for 2^64−1. What
TiCDC never writes (nested records, arrays, maps, enums, wider unions) has no place in a row and is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidelake.errors import DecodeError
from tidelake.history.event import SchemaColumn
from tidelake.wire.kernels.columnar import NONE

# how a value is read and what becomes its text; those up to DECIMAL start with a length
RAW, BIT, DECIMAL, INT, LONG, UNSIGNED, FLOAT, DOUBLE, SINGLE, BOOLEAN = range(10)
# what becomes of it
COLUMN, SKIPPED, OPERATION, COMMIT, CHECKSUM, CORRUPTED = range(6)

MAX_PRECISION = 65
MAX_DECIMAL_BYTES = 32  # 65 digits take 27

_STEPS = {"string": RAW, "bytes": RAW, "int": INT, "long": LONG, "float": FLOAT, "double": DOUBLE, "boolean": BOOLEAN}
_EXTENSION = {
    "_tidb_op": (OPERATION, RAW),
    "_tidb_commit_ts": (COMMIT, LONG),
    "_tidb_commit_physical_time": (SKIPPED, None),
    "_tidb_row_level_checksum": (SKIPPED, None),
    "_tidb_corrupted": (SKIPPED, None),
    "_tidb_checksum_version": (SKIPPED, None),
}
_CHECKED = {"_tidb_row_level_checksum": (CHECKSUM, RAW), "_tidb_corrupted": (CORRUPTED, BOOLEAN)}  # of this type; of another, skipped
_WORDS = {"tidbvectorfloat32": "vector"}


@dataclass(frozen=True, slots=True)
class AvroField:
    """null_branch: the union's branch for NULL, None where the type is no union. precision and scale: of decimals."""

    name: str
    step: int
    null_branch: int | None
    target: int
    precision: int
    scale: int
    column: SchemaColumn


@dataclass(frozen=True, slots=True)
class AvroRecord:
    """A table's key or value. database: the last part of the namespace, None without one."""

    database: str | None
    table: str
    fields: tuple[AvroField, ...]

    @property
    def columns(self) -> tuple[SchemaColumn, ...]:
        """The fields that are columns of the table."""
        return tuple(f.column for f in self.fields if f.target == COLUMN)


def parse(text: str) -> AvroRecord:
    """A schema's text. Raises DecodeError (BAD_STRUCTURE)."""
    try:
        schema = json.loads(text)
        json.dumps(schema, ensure_ascii=False).encode()  # no half surrogate pairs, which JSON can write and text cannot
    except (ValueError, TypeError, RecursionError) as e:
        raise _refused(f"not JSON: {type(e).__name__}") from e
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise _refused("the schema is not a record")
    space, _, table = f"{_text(schema, 'namespace')}.{_text(schema, 'name')}".rpartition(".")
    fields = schema.get("fields")
    if not isinstance(fields, list) or not fields or not table:
        raise _refused("the record has no name or no fields")
    record = AvroRecord(space.strip(".").rpartition(".")[2] or None, table, tuple(_field(f) for f in fields))
    if len({f.name for f in record.fields}) < len(record.fields):
        raise _refused(f"two fields of one name in record {table!r}")
    return record


def _field(field: object) -> AvroField:
    name = _text(field, "name")
    if not isinstance(field, dict) or not name:
        raise _refused("a field without a name")
    branches = field.get("type")
    null_branch = None
    if isinstance(branches, list):
        if len(branches) != 2 or branches.count("null") != 1:
            raise _refused(f"field {name!r}: a union is null and one type")
        null_branch = branches.index("null")
        branches = branches[1 - null_branch]
    kind: Mapping[str, Any] = {"type": branches} if isinstance(branches, str) else branches if isinstance(branches, dict) else {}
    step = _step(name, kind)
    target, needed = _EXTENSION.get(name, (COLUMN, None))
    if _CHECKED.get(name, (NONE, NONE))[1] == step and null_branch is None:
        target = _CHECKED[name][0]
    if needed is not None and (step != needed or null_branch is not None):
        raise _refused(f"field {name!r} has another type than TiDB's extension")
    precision, scale = _decimal(name, kind) if step == DECIMAL else (0, 0)
    return AvroField(name, step, null_branch, target, precision, scale, _column(name, kind, precision, scale))


def _step(name: str, kind: Mapping[str, Any]) -> int:
    avro, tidb = kind.get("type"), _parameter(kind, "tidb_type")
    if not isinstance(avro, str) or avro not in _STEPS:
        raise _refused(f"field {name!r}: type {avro!r} is none that a column has")
    if avro == "bytes" and kind.get("logicalType") == "decimal":
        return DECIMAL
    special = {("bytes", "BIT"): BIT, ("long", "BIGINT UNSIGNED"): UNSIGNED, ("double", "FLOAT"): SINGLE}  # FLOAT: before v7.0
    return special.get((avro, tidb), _STEPS[avro])


def _decimal(name: str, kind: Mapping[str, Any]) -> tuple[int, int]:
    precision, scale = kind.get("precision"), kind.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision <= MAX_PRECISION or precision == 0:
        raise _refused(f"field {name!r}: no decimal has precision {precision!r} and scale {scale!r}")
    return precision, scale


def _column(name: str, kind: Mapping[str, Any], precision: int, scale: int) -> SchemaColumn:
    word = _parameter(kind, "tidb_type").lower()
    length = _parameter(kind, "length")
    full = f"decimal({precision},{scale})" if precision else f"bit({length})" if word == "bit" and length.isdecimal() else None
    elements = _elements(_parameter(kind, "allowed")) if word in ("enum", "set") and "allowed" in _parameters(kind) else None
    return SchemaColumn(name, _WORDS.get(word, word) or None, full_type=full, elements=elements)


def _elements(allowed: str) -> tuple[str, ...]:
    r"""Members joined by commas; a comma inside a member is written `\,`."""
    return tuple(member.replace("\\,", ",") for member in re.split(r"(?<!\\),", allowed))


def _parameters(kind: Mapping[str, Any]) -> Mapping[str, Any]:
    parameters = kind.get("connect.parameters")
    return parameters if isinstance(parameters, dict) else {}


def _parameter(kind: Mapping[str, Any], name: str) -> str:
    value = _parameters(kind).get(name, "")
    return value if isinstance(value, str) else ""


def _text(schema: object, name: str) -> str:
    value = schema.get(name, "") if isinstance(schema, dict) else ""
    if not isinstance(value, str):
        raise _refused(f"{name!r} is no text")
    return value


def _refused(reason: str) -> DecodeError:
    return DecodeError(f"Avro schema: {reason}", code="BAD_STRUCTURE")
