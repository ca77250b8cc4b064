"""The schema files of TiCDC's storage sink (docs/reference/protocols.md 9.5): what the columns of its CSV lines are.

{"Schema", "Table", "TableVersion": TSO, "Query"?: the statement that led to it,
 "TableColumns": [{"ColumnName", "ColumnType": "BIGINT UNSIGNED", "ColumnPrecision"?: "10",
 "ColumnScale"?: "2", "ColumnIsPk"?: "true"}]}; numbers and flags are texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidelake.errors import ConfigError, ContractError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.event import SchemaColumn

PATTERN = "schema_*.json"
_SCALED = frozenset({"timestamp", "datetime", "time"})


@dataclass(frozen=True, slots=True)
class SinkTableSchema:
    """One schema file. table: empty for a database's; version: TSO; query: empty where no statement led to it."""

    database: str
    table: str
    version: int
    query: str
    columns: tuple[SchemaColumn, ...]


def table_schemas(path: Path) -> Callable[[str, str], tuple[SchemaColumn, ...] | None]:
    """Read a schema file, or all schema files in a folder and below; the newest version of each table. Raises ConfigError."""
    files = sorted(path.rglob(PATTERN)) if path.is_dir() else [path]
    if not files:
        raise ConfigError(f"{path}: no {PATTERN}")
    newest: dict[tuple[str, str], tuple[int, tuple[SchemaColumn, ...]]] = {}
    for file in files:
        found = _read(file)
        name = (found.database, found.table)
        if found.columns and (name not in newest or newest[name][0] <= found.version):
            newest[name] = (found.version, found.columns)

    def columns_of(database: str, table: str) -> tuple[SchemaColumn, ...] | None:
        return newest[database, table][1] if (database, table) in newest else None

    return columns_of


def parse_schema(content: bytes, where: str) -> SinkTableSchema:
    """A schema file's content. Raises ConfigError."""
    try:
        said = json.loads(content)
        columns = tuple(_column(c) for c in said.get("TableColumns") or ())
        return SinkTableSchema(
            _text(said, "Schema"), _text(said, "Table"), int(said.get("TableVersion", 0)), said.get("Query") or "", columns
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ContractError) as e:
        raise ConfigError(f"{where}: not a schema file of TiCDC's storage sink: {e}") from e


def _read(file: Path) -> SinkTableSchema:
    try:
        return parse_schema(file.read_bytes(), str(file))
    except OSError as e:
        raise ConfigError(f"{file}: {e.strerror}") from e


def _column(said: dict[str, Any]) -> SchemaColumn:
    kind = MysqlType.parse(_text(said, "ColumnType"))
    precision, scale = said.get("ColumnPrecision"), said.get("ColumnScale")
    numbers = {"decimal": f"{precision},{scale or 0}" if precision else None, "bit": precision}
    inner = scale if kind.word in _SCALED else numbers.get(kind.word)
    full = MysqlType.parse(f"{kind.word}({inner})").sql if inner else None
    return SchemaColumn(_text(said, "ColumnName"), kind.name, said.get("ColumnIsPk") == "true", full_type=full)


def _text(said: dict[str, Any], name: str) -> str:
    if not isinstance(said[name], str):
        raise TypeError(f"{name} is {said[name]!r}")
    return str(said[name])
