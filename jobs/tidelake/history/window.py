"""Applies a window's statements and observed rows to the catalog, in order of commit ts (docs/architecture.md 8.3). Pure.

Rows count as well: a table without a definition, or a column without a statement, is created by its first row. Protocols without DDL (Avro)
evolve this way unless ddl.jsonl has statements.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tidelake.config.policy import Policy
from tidelake.config.table_name import written
from tidelake.errors import ContractError, OrderError
from tidelake.history.ddl.changes import AddColumn, Change, ColumnDef, NoEffect, TableDef
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.ddl.statement import parse
from tidelake.history.definitions import unsaid_of
from tidelake.history.event import RowSchema, SchemaColumn
from tidelake.history.evolution import apply
from tidelake.history.incarnations import Catalog, Incarnation, Name, add_column, create
from tidelake.history.inhabited import Inhabited
from tidelake.history.names import KnownNames, same_name, unmeant
from tidelake.history.other_servers import check_change
from tidelake.history.partitions import check_source
from tidelake.tso import show


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The commit ts range of one run: after applied_ts, up to and including resolved_ts (both TSO)."""

    applied_ts: int
    resolved_ts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A DDL statement as sent. database: for unqualified names; commit_ts: TSO; recorded: from ddl.jsonl."""

    commit_ts: int
    database: str
    query: str
    recorded: bool = False

    @property
    def identity(self) -> tuple[int, str]:
        """What copies on other partitions and repeats of a statement share (docs/reference/protocols.md 6.4)."""
        return self.commit_ts, self.query


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTable:
    """Rows of one schema under one name in the window: first and last commit ts (TSO), and number."""

    database: str
    table: str
    row_schema: RowSchema
    first_ts: int
    last_ts: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """Effect of a statement, or of a column or table that rows showed first (query is then empty)."""

    commit_ts: int
    database: str
    query: str
    effect: str  # applied · no effect · ignored · seen
    why: str = ""  # reason if it was ignored
    tables: tuple[str, ...] = ()  # incarnations that it changes


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaMismatch:
    """Rows that fit their table neither before nor after any statement of the window.

    Attributes:
        observed_table: Name and schema of the rows.
        first_ts: First commit ts of the rows (TSO).
        until_ts: Last commit ts, inclusive; None means all rows.
        table: Name of the table.
        columns: Columns without a definition or statement.
        sent: Schema of the rows as SQL.
        known: Schema of the table as SQL. Empty for a table without a definition, unless rows that said enough created it.
        unsaid: For a table without a definition: columns whose type the messages do not state, each with what is missing.
    """

    observed_table: ObservedTable
    first_ts: int
    until_ts: int | None
    table: str
    columns: tuple[str, ...]
    sent: str
    known: str
    unsaid: tuple[tuple[str, str], ...] = ()


class Compiled(NamedTuple):
    """The catalog at a window's end, entries of the DDL ledger, and rows that fit no table."""

    catalog: Catalog
    ledger: list[LedgerEntry]
    mismatches: list[SchemaMismatch]


def compile_window(
    catalog: Catalog,
    statements: Sequence[Statement],
    observed: Sequence[ObservedTable],
    policy: Policy,
    *,
    has_ddl: bool = False,
    of_tidb: bool = False,
) -> Compiled:
    """Apply the statements and rows of a window to a catalog.

    Args:
        catalog: The catalog before.
        statements: Statements of the window.
        observed: Rows of the window.
        policy: The feed's policy.
        has_ddl: The messages have every statement. Rows of a defined table with a column that no statement added are then mismatches;
            otherwise, and with `ddl = "ignore"`, the rows add the column.
        of_tidb: The source is TiDB. Otherwise statements are refused after which MySQL and MariaDB have other rows (other_servers.py),
            or that empty a partition of KEY.

    Raises:
        OrderError: UNSUPPORTED_DDL, DDL_REFUSED and what `apply` raises, with the statement and the remedy.
    """
    ledger: list[LedgerEntry] = []
    unknown: list[_UnknownRows] = []
    added = frozenset(name.lower() for s in statements for name in _columns_added(s)) if has_ddl else None
    rules = _Rules(added, _unsaid(observed), policy.ddl == "ignore")
    in_order, inhabited, done = sorted(observed, key=_first_ts), Inhabited(observed), 0
    inhabited.expect(catalog.incarnations.values())
    for statement in sorted(statements, key=lambda s: s.commit_ts):
        reached = bisect_right(in_order, statement.commit_ts, key=_first_ts)
        catalog = _see_all(catalog, in_order[done:reached], rules, ledger, unknown)
        done = reached
        catalog = inhabited.marked(catalog, statement.commit_ts)
        catalog, entry = _execute(catalog, statement, policy, of_tidb)
        inhabited.expect(catalog.incarnations[i] for i in entry.tables)
        ledger.append(entry)
    catalog = _see_all(catalog, in_order[done:], rules, ledger, unknown)
    known = KnownNames((n.database, n.table, (i, n)) for i in catalog.incarnations.values() for n in i.names)
    again = [left for s in observed if (left := _unseen(known.meant(s.database, s.table), s)) is not None]
    catalog = _see_all(catalog, again, rules, ledger, unknown)
    catalog = inhabited.marked(catalog, max((s.last_ts for s in observed), default=0))
    return Compiled(catalog, ledger, _mismatches(catalog, unknown))


def _first_ts(s: ObservedTable) -> int:
    return s.first_ts


def sent_type(column: SchemaColumn) -> MysqlType:
    """Return the type as far as a message states it; text if it does not."""
    mysql = MysqlType.parse(column.full_type or column.type or "text")
    return replace(mysql, elements=column.elements) if column.elements else mysql


def _execute(catalog: Catalog, s: Statement, policy: Policy, of_tidb: bool) -> tuple[Catalog, LedgerEntry]:
    if s.commit_ts in policy.ignore_ddl and not s.recorded:
        return catalog, _entry(s, "ignored", why="ignore_ddl contains its commit ts")
    try:
        after = _apply_all(catalog, s.commit_ts, parse(s.query, s.database), of_tidb)
        changed = after.changed_since(catalog)
        if not of_tidb:
            check_source(changed)
        if policy.ddl == "strict" and changed:
            raise OrderError("the feed's policy is ddl = strict", code="DDL_REFUSED")
    except (OrderError, ContractError) as e:
        if policy.ddl == "ignore":
            return catalog, _entry(s, "ignored", why=f"{e.code}: {e.message}")
        raise OrderError(f"{e.message}: {s.query!r} in {s.database!r} at TSO {show(s.commit_ts)}", code=e.code, remedy=_remedy(s)) from e
    return after, _entry(s, "applied" if changed else "no effect", tuple(i.id for i in changed))


def _apply_all(catalog: Catalog, ts: int, changes: list[Change], of_tidb: bool) -> Catalog:
    for change in changes:
        if change.table and not change.database and not isinstance(change, NoEffect):
            raise OrderError(f"nothing says in which database it looks for table {change.table!r}", code="UNSUPPORTED_DDL")
        if not of_tidb:
            check_change(catalog, change)
        catalog = apply(catalog, ts, change)
    return catalog


def _entry(s: Statement, effect: str, tables: tuple[str, ...] = (), why: str = "") -> LedgerEntry:
    return LedgerEntry(commit_ts=s.commit_ts, database=s.database, query=s.query, effect=effect, tables=tables, why=why)


def _remedy(s: Statement) -> str:
    return (
        "nothing is lost: the window waits. If the statement changed no row and no column, continue with "
        f"`ignore_ddl = [{s.commit_ts}]` under [policy] in feed.toml; if other statements have the same effect, write those into ddl.jsonl "
        "with its commit_ts as well (docs/ddl.md); else a version that supports it, or a new snapshot, is needed"
    )


def _mismatches(catalog: Catalog, unknown: Sequence[_UnknownRows]) -> list[SchemaMismatch]:
    """Mismatches without repeats that were found at several statements."""
    found: list[SchemaMismatch] = []
    for m in (_mismatch(catalog, unknown_rows) for unknown_rows in unknown):
        alike = (x for x in found if replace(x.observed_table, first_ts=0) == replace(m.observed_table, first_ts=0))
        if not any(x.until_ts is None or m.first_ts <= x.until_ts for x in alike):
            found.append(m)
    return found


def _mismatch(catalog: Catalog, unknown_rows: _UnknownRows) -> SchemaMismatch:
    """A mismatch. It ends where the name belongs to another table, or where a later statement adds the columns."""
    s, i, unsaid = unknown_rows
    return SchemaMismatch(
        observed_table=s,
        first_ts=s.first_ts,
        until_ts=min(_ends(catalog, s, i), default=None),
        table=i.name if i else written(s.database, s.table),
        columns=_unknown(i, s) if i else tuple(c.name for c in s.row_schema.columns),
        sent=", ".join(f"{c.name} {c.full_type or c.type or '?'}" for c in s.row_schema.columns),
        known=", ".join(f"{c.name} {c.type.sql}" for c in i.columns) if i else "",
        unsaid=unsaid,
    )


def _ends(catalog: Catalog, s: ObservedTable, i: Incarnation | None) -> list[int]:
    if i is None:
        born = (n.after_ts for life in catalog.incarnations.values() for n in life.names if _means(s, n))
        return [ts for ts in born if ts >= s.first_ts]
    now = catalog.incarnations[i.id]
    ends = [n.until_ts for n in now.names if _means(s, n) and n.until_ts is not None and n.until_ts >= s.first_ts]
    return ends + [
        g.after_ts for g in now.segments if g.after_ts >= s.first_ts and not _missing(s, [c.name for c in g.columns] + [*i.virtual])
    ]


def _columns_added(s: Statement) -> list[str]:
    try:
        changes = parse(s.query, s.database)
    except ContractError:
        return []
    return [c.column.name for c in changes if isinstance(c, AddColumn)]


class _UnknownRows(NamedTuple):
    """Rows with columns that their table did not have. table: as known at that time, or None; unsaid: as in SchemaMismatch."""

    observed_table: ObservedTable
    table: Incarnation | None
    unsaid: tuple[tuple[str, str], ...] = ()


_Unsaid = dict[tuple[str, str], dict[str, str]]  # (database, table) as sent, lower case → column → what no message states about its type


class _Rules(NamedTuple):
    """Rules for new columns.

    added: columns that statements of the window add, in lower case; rows of a defined table may have no others. None: statements are not
    sent.
    ignores: all columns are allowed (`ddl = "ignore"`).
    """

    added: frozenset[str] | None
    unsaid: _Unsaid
    ignores: bool


def _unsaid(observed: Sequence[ObservedTable]) -> _Unsaid:
    row_schemas: dict[tuple[str, str], list[RowSchema]] = {}
    for s in observed:
        row_schemas.setdefault((s.database.lower(), s.table.lower()), []).append(s.row_schema)
    return {name: unsaid_of(of_table) for name, of_table in row_schemas.items()}


def _see_all(
    catalog: Catalog, observed: Sequence[ObservedTable], rules: _Rules, ledger: list[LedgerEntry], unknown: list[_UnknownRows]
) -> Catalog:
    for s in observed:
        found = find_sent(catalog, s.database, s.table)
        unknown_rows = _unknown_rows(s, found, rules)
        if unknown_rows is not None:
            unknown.append(unknown_rows)
            continue
        catalog, seen = _see(catalog, s)
        ledger += seen
    return catalog


def _unknown_rows(s: ObservedTable, found: Incarnation | None, rules: _Rules) -> _UnknownRows | None:
    """The rows, if no message states the types of their table or of its new columns."""
    unsaid = rules.unsaid[s.database.lower(), s.table.lower()]
    unknown = _unknown(found, s) if found else tuple(unsaid)
    missing = tuple((name, unsaid[name]) for name in unknown if name in unsaid)
    if found is None or found.guessed:
        return _UnknownRows(s, found, missing) if missing else None
    unrecorded = rules.added is not None and not rules.added.issuperset(c.lower() for c in unknown)
    return _UnknownRows(s, found) if (unrecorded or missing) and not rules.ignores else None


def _unknown(i: Incarnation, s: ObservedTable) -> tuple[str, ...]:
    """Columns of the rows that the table neither has nor computes."""
    return _missing(s, [*(c.name for c in i.columns), *i.virtual])


def _missing(s: ObservedTable, known: Sequence[str]) -> tuple[str, ...]:
    return tuple(unmeant((c.name for c in s.row_schema.columns), known))


def _see(catalog: Catalog, s: ObservedTable) -> tuple[Catalog, list[LedgerEntry]]:
    found = find_sent(catalog, s.database, s.table)
    if found is None:
        born = create(catalog, s.database, s.table, _guess(s.row_schema), s.first_ts - 1, guessed=True)
        return born, [_seen(s, f"table {s.database}.{s.table}")]
    known, missing = found, _missing(s, [c.name for c in found.columns])
    for c in s.row_schema.columns:
        if c.name in missing and not any(same_name(c.name, k.name) for k in known.columns):
            column = ColumnDef(name=c.name, type=sent_type(c))
            known = add_column(known, column, s.first_ts - 1)
    new = [c.name for c in known.columns[len(found.columns) :]]
    return catalog.with_(known) if new else catalog, [_seen(s, f"column {name} of {found.name}") for name in new]


def _unseen(names: Sequence[tuple[Incarnation, Name]], s: ObservedTable) -> ObservedTable | None:
    """The part of the rows to look at again, because rows of one schema can be on both sides of a DROP or RENAME.

    It begins after the last table of that name, or where the present table lacks columns. names: the tables that have had it.
    """
    i = next((i for i, n in names if n.after_ts < s.last_ts and (n.until_ts is None or s.last_ts <= n.until_ts)), None)
    if i is None:
        ends = [n.until_ts for _, n in names if n.until_ts is not None and n.until_ts < s.last_ts]
        return replace(s, first_ts=max(ends) + 1) if ends else None
    last = i.segments[-1]
    lacks = bool(_missing(s, [c.name for c in last.columns]))
    return replace(s, first_ts=max(s.first_ts, last.after_ts + 1)) if lacks and i.dropped_ts is None and last.after_ts < s.last_ts else None


def _means(s: ObservedTable, name: Name) -> bool:
    return same_name(s.database, name.database) and same_name(s.table, name.table)


def find_sent(catalog: Catalog, database: str, table: str) -> Incarnation | None:
    """Return the present table that a message's names mean; exact names win over sanitised ones."""
    exact = catalog.find(database, table)
    return exact if exact is not None else next(iter(catalog.present.meant(database, table)), None)


def _seen(s: ObservedTable, what: str) -> LedgerEntry:
    return LedgerEntry(commit_ts=s.first_ts, database=s.database, query="", effect=f"seen: {what}")


def _guess(row_schema: RowSchema) -> TableDef:
    columns = tuple(ColumnDef(name=c.name, type=sent_type(c), nullable=not c.key) for c in row_schema.columns)
    return TableDef(columns=columns, primary_key=tuple(c.name for c in row_schema.columns if c.key))
