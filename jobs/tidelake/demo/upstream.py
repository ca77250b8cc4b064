"""The simulated database: rows, transactions with TiCDC's net events, DDL statements, and contents as canonical text."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from tidelake.demo.bazaar import TRUNCATE_TABLE, DdlStep, tables
from tidelake.demo.makers import World
from tidelake.demo.messages.model import Row, SourceChange, SourceColumn, SourceTable, Value

Ident = int | Row  # a row's handle in TiKV: the clustered primary key's values, or a hidden row id
TableContents = dict[str, Any]

_CLASS = {"delete": 0, "update": 1, "insert": 2}
_TRUTH_TYPES = {
    5: "double",
    13: "year",
    16: "bit",
    245: "json",
    246: "dec",
    247: "enum",
    248: "set",
    **dict.fromkeys((1, 2, 3, 8, 9), "int"),
    **dict.fromkeys((7, 10, 11, 12), "time"),
}


class RowsByKey:
    """The rows of one table by handle, with random selection in constant time. `removed` has some deleted rows to insert again."""

    def __init__(self, table: SourceTable) -> None:
        self.table = table
        self.by_ident: dict[Ident, Row] = {}
        self.removed: deque[Row] = deque(maxlen=64)
        self._idents: list[Ident] = []
        self._at: dict[Ident, int] = {}
        self._next_row_id = 1

    def __len__(self) -> int:
        return len(self._idents)

    def pick(self, world: World) -> Ident | None:
        """Return the handle of a random row; None in an empty table."""
        return world.one_of(self._idents) if self._idents else None

    def place_of(self, row: Row) -> Ident:
        """Return the handle for a new row."""
        if self.table.clustered:
            return self.table.key_of(row)
        self._next_row_id += 1
        return self._next_row_id - 1

    def put(self, ident: Ident, row: Row) -> None:
        """Write a row."""
        if ident not in self._at:
            self._at[ident] = len(self._idents)
            self._idents.append(ident)
        self.by_ident[ident] = row

    def take(self, ident: Ident) -> Row:
        """Remove a row."""
        hole, last = self._at.pop(ident), self._idents.pop()
        if last != ident:
            self._idents[hole], self._at[last] = last, hole
        return self.by_ident.pop(ident)

    def reshape(self, table: SourceTable) -> None:
        """Give every row the columns of another definition: columns are kept by position, added ones are at the end with their default."""
        old, new = self.table.columns, table.columns
        self.table = table
        self.removed.clear()
        if len(new) == len(old):
            return
        kept = {c.name for c in new}
        keep = [i for i, c in enumerate(old) if c.name in kept]
        added = tuple(c.default for c in new[len(keep) :])
        for ident, row in self.by_ident.items():
            self.by_ident[ident] = (*[row[i] for i in keep], *added)


@dataclass
class UpstreamWork:
    """An open transaction: the rows before their first change, and the tables where a key changed."""

    upstream: SimulatedUpstream
    before: dict[tuple[str, Ident], Row | None] = field(default_factory=dict)
    moved: set[str] = field(default_factory=set)

    def insert(self, name: str, row: Row) -> Ident:
        """Add a row and return its handle."""
        rows = self.upstream.rows[name]
        ident = rows.place_of(row)
        self._put(name, ident, row)
        return ident

    def update(self, name: str, ident: Ident, row: Row) -> Ident:
        """Replace a row and return its handle, which is another one if a clustered key changed."""
        rows = self.upstream.rows[name]
        if not rows.table.clustered or rows.table.key_of(row) == ident:
            self._put(name, ident, row)
            return ident
        self.moved.add(name)
        self.before.setdefault((name, ident), rows.take(ident))
        return self.insert(name, row)

    def delete(self, name: str, ident: Ident) -> Row:
        """Remove a row and return it."""
        row = self.upstream.rows[name].take(ident)
        self.before.setdefault((name, ident), row)
        return row

    def _put(self, name: str, ident: Ident, row: Row) -> None:
        rows = self.upstream.rows[name]
        self.before.setdefault((name, ident), rows.by_ident.get(ident))
        rows.put(ident, row)

    def changes(self, commit_ts: int) -> list[SourceChange]:
        """Return the net events by physical table, deletes first if a key changed, else by handle.

        Source: docs/reference/protocols.md 1.6, 1.7.
        """
        parts: dict[int, list[tuple[Ident, SourceChange]]] = {}
        split: set[int] = set()
        for (name, ident), before in self.before.items():
            rows = self.upstream.rows[name]
            net = _net(rows.table, commit_ts, ident, before, rows.by_ident.get(ident))
            for change in net:
                part = _part(rows.table, change)
                parts.setdefault(part, []).append((ident, change))
                if len(net) > 1 or name in self.moved:
                    split.add(part)
        return [change for part in sorted(parts) for change in _sorted(parts[part], part in split)]


def _net(table: SourceTable, commit_ts: int, ident: Ident, before: Row | None, after: Row | None) -> list[SourceChange]:
    """No event, one, or the delete and insert that replace an update of the key."""
    if before == after:
        return []
    ops: list[tuple[str, Row | None, Row | None]]
    if before is None:
        ops = [("insert", None, after)]
    elif after is None:
        ops = [("delete", before, None)]
    elif any(before[i] != after[i] for i in table.split_by):
        ops = [("delete", before, None), ("insert", None, after)]
    else:
        ops = [("update", before, after)]
    row_id = ident if isinstance(ident, int) else ident[0] if len(ident) == 1 and isinstance(ident[0], int) else None
    physical = None
    if len(table.physical_ids) > 1 and isinstance(row_id, int):
        physical = table.physical_ids[abs(row_id) % len(table.physical_ids)]
    return [SourceChange(table, commit_ts, op, old, new, row_id, physical) for op, old, new in ops]


def _part(table: SourceTable, change: SourceChange) -> int:
    return table.physical_ids[0] if change.physical_id is None else change.physical_id


def _sorted(changes: list[tuple[Any, SourceChange]], split: bool) -> list[SourceChange]:
    ordered = sorted(changes, key=lambda c: _CLASS[c[1].op]) if split else sorted(changes, key=lambda c: c[0])
    return [change for _, change in ordered]


class SimulatedUpstream:
    """All tables by their name at creation; a table's present name is in its definition."""

    def __init__(self) -> None:
        self.rows = {t.name: RowsByKey(t) for t in tables()}

    def execute(self, statement: DdlStep) -> None:
        """Execute a DDL statement."""
        name, after = statement.on, statement.after
        if after is None:
            del self.rows[name]
        elif name not in self.rows or statement.ddl.code == TRUNCATE_TABLE:
            self.rows[name] = RowsByKey(after)
        else:
            self.rows[name].reshape(after)

    def contents(self) -> dict[str, TableContents]:
        """Return every table in the form of the truth files: columns, types, key, rows in key order."""
        return {f"{r.table.database}.{r.table.name}": _contents(r) for _, r in sorted(self.rows.items())}


def _contents(rows: RowsByKey) -> TableContents:
    columns = rows.table.columns
    types = {c.name: _truth_type(c) for c in columns}
    ordered: list[Any] = sorted(rows.by_ident)
    return {
        "columns": [c.name for c in columns],
        "types": types,
        "key": [columns[i].name for i in rows.table.key] or None,
        "rows": [{c.name: canonical(c, v) for c, v in zip(columns, rows.by_ident[i], strict=True)} for i in ordered],
    }


def _truth_type(column: SourceColumn) -> str:
    return _TRUTH_TYPES.get(column.code) or ("bin" if column.is_binary else "str")


def canonical(column: SourceColumn, value: Value) -> Any:
    """Return a value as canonical text (docs/architecture.md 6): ENUM and SET as names, bytes as {"hex": …}, NULL as None."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if column.elements:
        assert isinstance(value, int)
        return column.names(value)
    return repr(value) if isinstance(value, float) else str(value)
