"""A naive second opinion on a history's truth: plain lists of plain rows, changed commit by commit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tidelake.demo.messages.model import Commit, Ddl, Row, SourceChange, SourceColumn, SourceTable

Plain = dict[str, Any]
Tables = dict[str, list[Plain]]


def tables_after(commits: Iterable[Commit], names: Iterable[str]) -> Tables:
    """The rows of every table, in no particular order, after these commits on empty tables of these names."""
    state: Tables = {name: [] for name in names}
    for commit in commits:
        if isinstance(commit, Ddl):
            _ddl(state, commit)
        else:
            for change in commit.rows:
                _change(state[change.table.name], change)
    return state


def plain(table: SourceTable, row: Row) -> Plain:
    """A row as canonical text, written without our `canonical`."""
    return {c.name: _text(c, v) for c, v in zip(table.columns, row, strict=True)}


def same_rows(rows: list[Plain], others: list[Plain]) -> bool:
    """Equality as multisets."""
    return sorted(map(repr, map(_sorted, rows))) == sorted(map(repr, map(_sorted, others)))


def _sorted(row: Plain) -> list[Any]:
    return sorted(row.items())


def _change(rows: list[Plain], change: SourceChange) -> None:
    if change.before is not None:
        rows.remove(plain(change.table, change.before))  # raises if the old row is not there
    if change.after is not None:
        new = plain(change.table, change.after)
        key = [change.table.columns[i].name for i in change.table.key]
        assert not key or not any(all(r[k] == new[k] for k in key) for r in rows), f"{change} already exists"
        rows.append(new)


def _ddl(state: Tables, ddl: Ddl) -> None:
    words = ddl.query.replace("`", "").split()
    match " ".join(words[:2]), words:
        case "CREATE TABLE", [_, _, name, *_]:
            state[name] = []
        case "TRUNCATE TABLE", [_, _, name]:
            state[name].clear()
        case "DROP TABLE", [_, _, name]:
            del state[name.removeprefix("bazaar.")]
        case "RENAME TABLE", [_, _, old, _, new]:
            state[new] = state.pop(old)
        case "ALTER TABLE", [_, _, name, *clause]:
            for row in state[name]:
                _alter(row, clause)
        case unknown:
            raise AssertionError(unknown)


def _alter(row: Plain, clause: list[str]) -> None:
    match clause:
        case ["ADD", _, column, *rest]:
            row[column] = rest[-1]
        case ["DROP", _, column]:
            del row[column]
        case ["RENAME", _, old, _, new]:
            row[new] = row.pop(old)
        case ["MODIFY", *_]:
            pass
        case unknown:
            raise AssertionError(unknown)


def _text(column: SourceColumn, value: Any) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if value is not None and column.type.startswith(("enum", "set")):
        members = [m.replace("''", "'") for m in re.findall(r"'((?:[^']|'')*)'", column.type)]
        return members[value - 1] if column.type.startswith("enum") else ",".join(m for i, m in enumerate(members) if value & 2**i)
    return None if value is None else str(value)
