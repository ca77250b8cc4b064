"""Avro schemas that TiCDC registers for a table (docs/reference/protocols.md 4.2), with decimals and BIGINT UNSIGNED as strings."""

from __future__ import annotations

from typing import Any

from tidelake.demo.messages.model import SourceColumn, SourceTable
from tidelake.wire.cells.mysql_codes import NULLABLE, UNSIGNED

Schema = dict[str, Any]

_EXTENSION = (
    {"default": "", "name": "_tidb_op", "type": "string"},
    {"default": 0, "name": "_tidb_commit_ts", "type": "long"},
    {"default": 0, "name": "_tidb_commit_physical_time", "type": "long"},
)
_WORDS = {7: "TIMESTAMP", 10: "DATE", 11: "TIME", 12: "DATETIME", 13: "YEAR", 16: "BIT", 225: "TiDBVECTORFloat32", 245: "JSON"}
_WORDS |= {1: "INT", 2: "INT", 9: "INT", 3: "INT", 8: "BIGINT", 4: "FLOAT", 5: "DOUBLE", 246: "DECIMAL", 247: "ENUM", 248: "SET"}


def key_schema(table: SourceTable) -> Schema:
    """Return the schema of a table's keys."""
    return _schema(table, [{"name": table.columns[i].name, "type": _type(table.columns[i])} for i in table.key])


def value_schema(table: SourceTable) -> Schema:
    """Return the schema of a table's values."""
    return _schema(table, [*map(_field, table.columns), *_EXTENSION])


def _schema(table: SourceTable, fields: list[Schema]) -> Schema:
    return {"type": "record", "name": table.name, "namespace": f"default.{table.database}", "fields": fields}


def _field(column: SourceColumn) -> Schema:
    """Schema of a column. A nullable column is a union whose first branch is the default's (4.2)."""
    plain, default = _type(column), _default(column)
    if column.flag & NULLABLE:
        return {"default": default, "name": column.name, "type": ["null", plain] if default is None else [plain, "null"]}
    return {"name": column.name, "type": plain} if default is None else {"default": default, "name": column.name, "type": plain}


def _default(column: SourceColumn) -> Any:
    if column.default is None:
        return None
    if _avro(column) in ("int", "long"):
        return int(column.default)
    return float(column.default) if column.code == 5 else column.default


def _type(column: SourceColumn) -> Schema:
    parameters = {"tidb_type": _word(column)}
    if column.elements:
        parameters = {"allowed": ",".join(e.replace(",", "\\,") for e in column.elements), **parameters}
    if column.code == 16:
        parameters = {"length": column.type.strip("bit()"), **parameters}
    return {"type": _avro(column), "connect.parameters": parameters}


def _word(column: SourceColumn) -> str:
    if column.code in _WORDS:
        unsigned = column.flag & UNSIGNED and column.code in (1, 2, 3, 8, 9)
        return _WORDS[column.code] + (" UNSIGNED" if unsigned else "")
    return "BLOB" if column.is_binary else "TEXT"


def _avro(column: SourceColumn) -> str:
    unsigned = bool(column.flag & UNSIGNED)
    if column.code in (1, 2, 9, 13):
        return "int"
    if column.code == 3:
        return "long" if unsigned else "int"
    if column.code == 8:
        return "string" if unsigned else "long"
    if column.code in (4, 5):
        return "float" if column.code == 4 else "double"
    return "bytes" if column.code == 16 or _word(column) == "BLOB" else "string"
