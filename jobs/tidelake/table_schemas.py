"""The schema files of TiCDC's storage sink (reference/protocols.md 9.5): what the columns of its CSV lines are.

{"Schema", "Table", "TableVersion", "TableColumns": [{"ColumnName", "ColumnType": "BIGINT UNSIGNED", "ColumnPrecision"?: "10",
 "ColumnScale"?: "2", "ColumnIsPk"?: "true"}]}; numbers and flags are texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tidelake.errors import ConfigError, ContractError
from tidelake.event import ShapeColumn
from tidelake.values import MysqlType

PATTERN = "schema_*.json"
_SCALED = frozenset({"timestamp", "datetime", "time"})


def table_schemas(path: Path) -> Callable[[str, str], tuple[ShapeColumn, ...] | None]:
    """Of a schema file, or of all in a folder and below; of several versions of a table the newest. Raises ConfigError."""
    files = sorted(path.rglob(PATTERN)) if path.is_dir() else [path]
    if not files:
        raise ConfigError(f"{path}: no {PATTERN}")
    newest: dict[tuple[str, str], tuple[int, tuple[ShapeColumn, ...]]] = {}
    for file in files:
        name, version, columns = _table(file)
        if columns and (name not in newest or newest[name][0] <= version):
            newest[name] = (version, columns)

    def columns_of(database: str, table: str) -> tuple[ShapeColumn, ...] | None:
        return newest[database, table][1] if (database, table) in newest else None

    return columns_of


def _table(file: Path) -> tuple[tuple[str, str], int, tuple[ShapeColumn, ...]]:
    try:
        said = json.loads(file.read_bytes())
        name = (_text(said, "Schema"), _text(said, "Table"))
        return name, int(said.get("TableVersion", 0)), tuple(_column(c) for c in said.get("TableColumns") or ())
    except OSError as e:
        raise ConfigError(f"{file}: {e.strerror}") from e
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ContractError) as e:
        raise ConfigError(f"{file}: not a schema file of TiCDC's storage sink: {e}") from e


def _column(said: dict[str, Any]) -> ShapeColumn:
    kind = MysqlType.parse(_text(said, "ColumnType"))
    precision, scale = said.get("ColumnPrecision"), said.get("ColumnScale")
    numbers = {"decimal": f"{precision},{scale or 0}" if precision else None, "bit": precision}
    inner = scale if kind.word in _SCALED else numbers.get(kind.word)
    full = MysqlType.parse(f"{kind.word}({inner})").sql if inner else None
    return ShapeColumn(_text(said, "ColumnName"), kind.name, said.get("ColumnIsPk") == "true", full_type=full)


def _text(said: dict[str, Any], name: str) -> str:
    if not isinstance(said[name], str):
        raise TypeError(f"{name} is {said[name]!r}")
    return str(said[name])
