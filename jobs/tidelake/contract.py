"""What a feed's folder says about its tables: tables.sql, ddl.jsonl, expectations/<db>.<table>.toml."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from tidelake.ddl import parse, statements
from tidelake.ddl.changes import CreateTable, NoEffect, TableDef
from tidelake.ddl.tokens import Cursor
from tidelake.errors import ConfigError, ContractError

Severity = Literal["critical", "warning"]
OWN_SQL = "unexpected_rows_expectation"  # the one type whose name does not say what is expected


@dataclass(frozen=True, slots=True, kw_only=True)
class TableContract:
    """A table as it stood before the first message."""

    database: str
    table: str
    definition: TableDef


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDdl:
    """A statement that the messages do not carry (Avro). commit_ts: TSO."""

    commit_ts: int
    database: str
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One expectation of a table: a Great Expectations type with its arguments."""

    table: str  # db.table
    type: str
    arguments: dict[str, Any]
    severity: Severity
    origin: str  # file and number, for messages


def read_tables(folder: Path) -> list[TableContract]:
    """The CREATE TABLE statements of tables.sql; none if there is no file. Raises ContractError with the statement."""
    path = folder / "tables.sql"
    if not path.is_file():
        return []
    database = ""
    out: list[TableContract] = []
    for statement in statements(path.read_text(encoding="utf-8")):
        if used := _used_database(statement):
            database = used
            continue
        for change in parse(statement, database):
            if isinstance(change, CreateTable) and change.definition is not None:
                if not change.database:
                    raise ContractError(
                        f"{path}: {change.table!r} has no database", remedy="write USE `database`; first, or qualify the name"
                    )
                out.append(TableContract(database=change.database, table=change.table, definition=change.definition))
            elif not isinstance(change, NoEffect):
                raise ContractError(f"{path}: only CREATE TABLE, CREATE DATABASE and USE belong here, found: {statement[:200]!r}")
    names = [(t.database.lower(), t.table.lower()) for t in out]
    doubled = next((n for n in names if names.count(n) > 1), None)
    if doubled:
        raise ContractError(f"{path}: {'.'.join(doubled)} is defined twice")
    return out


def read_recorded_ddl(folder: Path) -> list[RecordedDdl]:
    """The lines of ddl.jsonl by commit ts; none if there is no file. Raises ContractError with the line."""
    path = folder / "ddl.jsonl"
    if not path.is_file():
        return []
    out = [_recorded(path, number, line) for number, line in _lines(path)]
    return sorted(out, key=lambda d: d.commit_ts)


def read_expectations(folder: Path) -> list[Expectation]:
    """All expectations of a feed. Raises ConfigError with file, number and key."""
    return [e for path in sorted((folder / "expectations").glob("*.toml")) for e in _expectations(path)]


def _used_database(statement: str) -> str | None:
    cursor = Cursor(statement)
    return cursor.identifier() if cursor.skip("USE") else None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            yield number, line


def _recorded(path: Path, number: int, line: str) -> RecordedDdl:
    wanted = 'a line is {"commit_ts": TSO, "database": "…", "query": "…"}'
    try:
        members = cast(dict[str, Any], json.loads(line))
        ddl = RecordedDdl(commit_ts=members["commit_ts"], database=members["database"], query=members["query"])
    except (json.JSONDecodeError, KeyError, TypeError) as e:
        raise ContractError(f"{path}:{number}: {e!r}", remedy=wanted) from e
    if not isinstance(ddl.commit_ts, int) or not isinstance(ddl.database, str) or not isinstance(ddl.query, str):
        raise ContractError(f"{path}:{number}: members of a wrong type: {line[:200]}", remedy=wanted)
    parse(ddl.query, ddl.database)
    return ddl


def _expectations(path: Path) -> Iterator[Expectation]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise ConfigError(f"{path}: not TOML: {e}") from e
    database, dot, table = path.stem.partition(".")
    if not dot:
        raise ConfigError(f"{path}: the file's name says the table", remedy="name it <database>.<table>.toml")
    if set(content) - {"expect"}:
        raise ConfigError(f"{path}: unknown keys {sorted(set(content) - {'expect'})}", remedy="a file holds [[expect]] tables")
    for number, rule in enumerate(content.get("expect", []), 1):
        where = f"{path}: [[expect]] {number}"
        kind, severity = rule.get("type"), rule.get("severity", "critical")
        if not isinstance(kind, str) or not (kind.startswith("expect_") or kind == OWN_SQL):
            raise ConfigError(
                f"{where}: type: found {kind!r}", remedy="a Great Expectations type, such as expect_column_values_to_not_be_null"
            )
        if severity not in ("critical", "warning"):
            raise ConfigError(f"{where}: severity: found {severity!r}", remedy="critical or warning")
        arguments = {k: v for k, v in rule.items() if k not in ("type", "severity")}
        yield Expectation(table=f"{database}.{table}", type=kind, arguments=arguments, severity=cast(Severity, severity), origin=where)
