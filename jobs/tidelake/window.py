"""A window's statements and first sights → the catalog at its end (design section 8), by their commit ts. Pure.

What was seen in rows counts too: a table without a definition, or a column that no statement told of, comes to life at its first
row. Protocols without DDL (Avro) evolve this way where ddl.jsonl does not say more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidelake.ddl import parse
from tidelake.ddl.changes import Change, ColumnDef, NoEffect, TableDef
from tidelake.errors import ContractError, OrderError
from tidelake.event import Shape, ShapeColumn
from tidelake.feed import Policy
from tidelake.incarnations import Catalog, Incarnation, add_column, apply, create
from tidelake.tso import show
from tidelake.values import MysqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The commit ts range that one run moves the lake by: after applied_ts, up to and including resolved_ts (both TSO)."""

    applied_ts: int
    resolved_ts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A DDL statement as sent. database: of the event, for unqualified names. commit_ts: TSO."""

    commit_ts: int
    database: str
    query: str

    @property
    def identity(self) -> tuple[int, str]:
        """What makes copies on other partitions and repeats the same statement (protocols.md 6.4)."""
        return self.commit_ts, self.query


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Rows of one shape under one name, in the window: the first and last commit ts and how many."""

    database: str
    table: str
    shape: Shape
    first_ts: int
    last_ts: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """What was done about a statement, or about a column or table seen first in rows (query empty)."""

    commit_ts: int
    database: str
    query: str
    effect: str  # applied · no effect · ignored · seen


def compile_window(
    catalog: Catalog, statements: Sequence[Statement], sightings: Sequence[Sighting], policy: Policy
) -> tuple[Catalog, list[LedgerEntry]]:
    """The catalog at the window's end and what is entered into the DDL ledger.

    Raises OrderError (UNSUPPORTED_DDL, DDL_REFUSED and what `apply` raises) that names the statement and what to do.
    """
    ledger: list[LedgerEntry] = []
    pending = sorted(sightings, key=lambda s: s.first_ts)
    for statement in sorted(statements, key=lambda s: s.commit_ts):
        while pending and pending[0].first_ts <= statement.commit_ts:
            catalog, seen = _see(catalog, pending.pop(0))
            ledger += seen
        catalog, entry = _execute(catalog, statement, policy)
        ledger.append(entry)
    for sighting in pending:
        catalog, seen = _see(catalog, sighting)
        ledger += seen
    return catalog, ledger


def sanitised(name: str) -> str:
    """A name as Avro schemas write it (protocols.md 4.2)."""
    safe = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{safe}" if safe[:1].isdigit() else safe


def same_name(sent: str, name: str) -> bool:
    """Whether a name in a message is this name: ignoring case, or sanitised."""
    return sent.lower() in (name.lower(), sanitised(name).lower())


def sent_type(column: ShapeColumn) -> MysqlType:
    """The type as far as a message tells it; text where it does not."""
    mysql = MysqlType.parse(column.full_type or column.type or "text")
    return replace(mysql, elements=column.elements) if column.elements else mysql


def _execute(catalog: Catalog, s: Statement, policy: Policy) -> tuple[Catalog, LedgerEntry]:
    if s.commit_ts in policy.ignore_ddl:
        return catalog, _entry(s, "ignored")
    try:
        changes = parse(s.query, s.database)
        if policy.ddl == "strict" and not all(isinstance(c, NoEffect) for c in changes):
            raise OrderError("the feed's policy is ddl = strict", code="DDL_REFUSED")
        after = _apply_all(catalog, s.commit_ts, changes)
    except (OrderError, ContractError) as e:
        if policy.ddl == "ignore":
            return catalog, _entry(s, "ignored")
        raise OrderError(f"{e.message}: {s.query!r} in {s.database!r} at TSO {show(s.commit_ts)}", code=e.code, remedy=_remedy(s)) from e
    return after, _entry(s, "applied" if after != catalog else "no effect")


def _apply_all(catalog: Catalog, ts: int, changes: list[Change]) -> Catalog:
    for change in changes:
        catalog = apply(catalog, ts, change)
    return catalog


def _entry(s: Statement, effect: str) -> LedgerEntry:
    return LedgerEntry(commit_ts=s.commit_ts, database=s.database, query=s.query, effect=effect)


def _remedy(s: Statement) -> str:
    return (
        "nothing is lost: the window waits. If the statement changed no row and no column, go on with "
        f"`ignore_ddl = [{s.commit_ts}]` under [policy] in feed.toml; else a version that supports it, or a new snapshot, is needed"
    )


def _see(catalog: Catalog, s: Sighting) -> tuple[Catalog, list[LedgerEntry]]:
    found = find_sent(catalog, s.database, s.table)
    if found is None:
        born = create(catalog, s.database, s.table, _guess(s.shape), s.first_ts - 1, guessed=True)
        return born, [_seen(s, f"table {s.database}.{s.table}")]
    known = found
    for c in s.shape.columns:
        if not any(same_name(c.name, k.name) for k in known.columns):
            column = ColumnDef(name=c.name, type=sent_type(c))
            known = add_column(known, column, s.first_ts - 1)
    new = [c.name for c in known.columns if c not in found.columns]
    return catalog.with_(known), [_seen(s, f"column {name} of {found.name}") for name in new]


def find_sent(catalog: Catalog, database: str, table: str) -> Incarnation | None:
    """The living table that a message's names mean; exact names go before sanitised ones."""
    exact = catalog.find(database, table)
    if exact is not None:
        return exact
    alike = [i for i in catalog.alive() if same_name(database, i.names[-1].database) and same_name(table, i.names[-1].table)]
    return alike[0] if alike else None


def _seen(s: Sighting, what: str) -> LedgerEntry:
    return LedgerEntry(commit_ts=s.first_ts, database=s.database, query="", effect=f"seen: {what}")


def _guess(shape: Shape) -> TableDef:
    columns = tuple(
        ColumnDef(name=c.name, type=MysqlType.parse(c.full_type or c.type or "text"), nullable=not c.key) for c in shape.columns
    )
    return TableDef(columns=columns, primary_key=tuple(c.name for c in shape.columns if c.key))
