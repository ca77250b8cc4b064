"""Lake types, which are texts, and filters of a scan in Iceberg's terms, and bounds that Iceberg stores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from pyiceberg.conversions import from_bytes
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, EqualTo, GreaterThan, In, IsNull, LessThanOrEqual
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

from tidelake.lake.scans import After, Where

_SIMPLE: dict[str, IcebergType] = {
    "int": IntegerType(),
    "bigint": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "date": DateType(),
    "timestamp_ntz": TimestampType(),
    "timestamp": TimestamptzType(),
    "string": StringType(),
    "binary": BinaryType(),
    "boolean": BooleanType(),
}
_TEXTS = {kind: text for text, kind in _SIMPLE.items()}
LIST_ELEMENT_IDS = 10_000


def iceberg_type(written: str, element_id: int = LIST_ELEMENT_IDS) -> IcebergType:
    """Return pyiceberg's type of a lake type."""
    if match := re.fullmatch(r"decimal\((\d+),(\d+)\)", written):
        return DecimalType(int(match[1]), int(match[2]))
    if match := re.fullmatch(r"array<(\w+)>", written):
        return ListType(element_id=element_id, element_type=_SIMPLE[match[1]], element_required=False)
    return _SIMPLE[written]


def written(kind: IcebergType) -> str:
    """Return the text of a lake type."""
    if isinstance(kind, DecimalType):
        return f"decimal({kind.precision},{kind.scale})"
    if isinstance(kind, ListType):
        return f"array<{written(kind.element_type)}>"
    return _TEXTS[kind]


def filter_of(where: Where) -> BooleanExpression:
    """Return the pyiceberg expression of a filter."""
    expression: BooleanExpression = AlwaysTrue()
    for name, value in where.items():
        expression = And(expression, _term(name, value))
    return expression


def _term(name: str, value: Any) -> BooleanExpression:
    match value:
        case None:
            return IsNull(name)  # type: ignore[call-arg, arg-type]
        case After():
            return And(GreaterThan(name, value.low), LessThanOrEqual(name, value.high))  # type: ignore[arg-type, call-arg]
        case list():
            return In(name, value)  # type: ignore[arg-type, call-arg]
        case _:
            return EqualTo(name, value)  # type: ignore[arg-type, call-arg]


def bounds_of(fields: Mapping[str | int, NestedField], stored: Mapping[int, bytes] | None) -> dict[str | int, Any]:
    """Return the bounds of columns in a file's metadata, where known."""
    found = {c: (stored or {}).get(f.field_id) for c, f in fields.items()}
    return {c: from_bytes(cast(Any, fields[c].field_type), b) for c, b in found.items() if b is not None}
