"""Reads a feed's files about its tables: tables.sql, ddl.jsonl, expectations/<db>.<table>.toml."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast, get_args

from tidelake.config.finding_kinds import Action
from tidelake.config.table_name import of_file_stem, written
from tidelake.errors import ConfigError, ContractError
from tidelake.history.ddl.changes import CreateTable, NoEffect, TableDef
from tidelake.history.ddl.statement import parse
from tidelake.history.ddl.tokens import Cursor, statements

RuleSeverity = Literal["critical", "warning"]
OWN_SQL = "unexpected_rows_expectation"  # the only type whose name does not describe the expectation


@dataclass(frozen=True, slots=True, kw_only=True)
class TableContract:
    """A table as it was before the first message."""

    database: str
    table: str
    definition: TableDef


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDdl:
    """A statement that is not in the messages (Avro). commit_ts: TSO."""

    commit_ts: int
    database: str
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One expectation of a table: a Great Expectations type with its arguments. later: its column is added by a later statement."""

    table: str  # in the spelling of table_name
    type: str
    arguments: dict[str, Any]
    severity: RuleSeverity
    origin: str  # file and number, for messages
    later: bool = False


def read_tables(folder: Path) -> list[TableContract]:
    """Return the CREATE TABLE statements of tables.sql; empty without the file. Raises ContractError with file, line and statement."""
    path = folder / "tables.sql"
    if not path.is_file():
        return []
    return list(_tables(path, _text(path)))


@lru_cache(maxsize=4)  # a run reads the file several times, and a thousand tables take a second
def _tables(path: Path, script: str) -> tuple[TableContract, ...]:
    database, end = "", 0
    out: list[TableContract] = []
    seen: set[tuple[str, str]] = set()
    for statement in _statements(path, script):
        start = script.index(statement, end)
        end, where = start + len(statement), f"{path}:{script.count(chr(10), 0, start) + 1}"
        try:
            database, found = _defined(statement, database)
        except ContractError as e:
            raise ContractError(f"{where}: {e.message}", remedy=e.remedy) from e
        for t in found:
            name = (t.database.lower(), t.table.lower())
            if name in seen:
                raise ContractError(f"{where}: {written(t.database, t.table)} is defined twice")
            seen.add(name)
            out.append(t)
    return tuple(out)


def _statements(path: Path, script: str) -> list[str]:
    try:
        return statements(script)
    except ContractError as e:
        raise ContractError(f"{path}: {e.message}") from e


def _defined(statement: str, database: str) -> tuple[str, list[TableContract]]:
    """Return (the database for unqualified names after the statement, the tables that it defines)."""
    if used := _used_database(statement):
        return used, []
    out: list[TableContract] = []
    for change in parse(statement, database):
        if isinstance(change, CreateTable) and change.definition is not None:
            if not change.database:
                raise ContractError(f"{change.table!r} has no database", remedy="write USE `database`; first, or qualify the name")
            out.append(TableContract(database=change.database, table=change.table, definition=change.definition))
        elif not isinstance(change, NoEffect):
            raise ContractError(
                f"found {statement[:200]!r}", remedy="only USE, CREATE DATABASE and CREATE TABLE with its columns belong here"
            )
    return database, out


def read_recorded_ddl(folder: Path) -> list[RecordedDdl]:
    """Return the lines of ddl.jsonl in order of commit ts; empty without the file. Raises ContractError with the line."""
    path = folder / "ddl.jsonl"
    if not path.is_file():
        return []
    out = [_recorded(path, number, line) for number, line in _lines(path)]
    return sorted(out, key=lambda d: d.commit_ts)


def read_expectations(folder: Path) -> list[Expectation]:
    """Return all expectations of a feed. Raises ConfigError with file, number and key."""
    return [e for path in sorted((folder / "expectations").glob("*.toml")) for e in _expectations(path)]


def read_history_actions(folder: Path) -> dict[str, Action]:
    """Return what unusual numbers of a table do, by table, for the tables whose file says so. Raises ConfigError with the file."""
    files = map(_RuleFile.of, sorted((folder / "expectations").glob("*.toml")))
    return {f.table: f.history for f in files if f.history is not None}


def _used_database(statement: str) -> str | None:
    cursor = Cursor(statement)
    return cursor.identifier() if cursor.skip("USE") else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise ContractError(f"{path}: not readable as UTF-8 text: {e}") from e


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(_text(path).split("\n"), 1):
        if line.strip():
            yield number, line


def _recorded(path: Path, number: int, line: str) -> RecordedDdl:
    wanted = 'a line is {"commit_ts": TSO, "database": "…", "query": "…"}'
    try:
        members = cast(dict[str, Any], json.loads(line))
        ddl = RecordedDdl(commit_ts=members["commit_ts"], database=members["database"], query=members["query"])
    except KeyError as e:
        raise ContractError(f"{path}:{number}: {e.args[0]}: missing", remedy=wanted) from e
    except (ValueError, TypeError, RecursionError) as e:
        raise ContractError(f"{path}:{number}: {e}", remedy=wanted) from e
    if type(ddl.commit_ts) is not int or not isinstance(ddl.database, str) or not isinstance(ddl.query, str):
        raise ContractError(f"{path}:{number}: members of a wrong type: {line[:200]}", remedy=wanted)
    try:
        parse(ddl.query, ddl.database)
    except ContractError as e:
        raise ContractError(f"{path}:{number}: {e.message}") from e
    return ddl


@dataclass(frozen=True, slots=True, kw_only=True)
class _RuleFile:
    """A file of expectations/, its keys checked. history: what unusual numbers of the table do, None if the feed decides."""

    path: Path
    table: str
    rules: list[dict[str, Any]]
    history: Action | None

    @classmethod
    def of(cls, path: Path) -> _RuleFile:
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as e:
            raise ConfigError(f"{path}: not TOML: {e}") from e
        named = of_file_stem(path.stem)
        if named is None:
            raise ConfigError(f"{path}: the file's name must name the table", remedy="name it <database>.<table>.toml, docs/names.md")
        if unknown := sorted(set(content) - {"expect", "history"}):
            raise ConfigError(f"{path}: unknown keys {unknown}", remedy="a file holds [[expect]] tables, and `history` above them")
        rules, history = content.get("expect", []), content.get("history")
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            raise ConfigError(f"{path}: expect: found {rules!r}", remedy="a file holds [[expect]] tables")
        if history not in (None, *get_args(Action)):
            raise ConfigError(f"{path}: history: found {history!r}", remedy=f"{', '.join(get_args(Action))}, or leave it out")
        return cls(path=path, table=str(named), rules=rules, history=history)


def _expectations(path: Path) -> Iterator[Expectation]:
    file = _RuleFile.of(path)
    for number, rule in enumerate(file.rules, 1):
        where = f"{path}: [[expect]] {number}"
        kind, severity = rule.get("type"), rule.get("severity", "critical")
        if not isinstance(kind, str) or not (kind.startswith("expect_") or kind == OWN_SQL):
            raise ConfigError(
                f"{where}: type: found {kind!r}", remedy="a Great Expectations type, such as expect_column_values_to_not_be_null"
            )
        if severity not in ("critical", "warning"):
            raise ConfigError(f"{where}: severity: found {severity!r}", remedy="critical or warning")
        later = rule.get("later", False)
        if not isinstance(later, bool):
            raise ConfigError(f"{where}: later: found {later!r}", remedy="true where a later statement adds the column, else leave it out")
        arguments = {k: v for k, v in rule.items() if k not in ("type", "severity", "later")}
        yield Expectation(
            table=file.table, type=kind, arguments=arguments, severity=cast(RuleSeverity, severity), origin=where, later=later
        )
