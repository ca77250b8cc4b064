"""Applies DDL changes to the catalog (docs/architecture.md 8.3). Pure.

A statement about an unknown table has no effect: the table's columns are taken from its first row. A change whose result would have to be
guessed is refused, unless no row of the table was ever seen: then no guess can be wrong.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

from tidelake.errors import OrderError
from tidelake.history.charsets import in_table
from tidelake.history.ddl.changes import (
    AddColumn,
    AddPartitions,
    AddPrimary,
    AddUnique,
    Change,
    CoalescePartitions,
    CreateTable,
    DropColumn,
    DropDatabase,
    DropIndex,
    DropPrimary,
    DropTable,
    EmptyPartitions,
    ExchangePartition,
    ModifyColumn,
    NoEffect,
    RecoverDatabase,
    RecoverTable,
    RenameColumn,
    RenameIndex,
    RenameTable,
    Repartition,
    ReplacePartitions,
    TableCharset,
    TableDef,
    TruncateTable,
    Unsupported,
)
from tidelake.history.ddl.column_types import converts
from tidelake.history.generated import renamed_input, with_inputs
from tidelake.history.incarnations import (
    ALWAYS,
    Catalog,
    Column,
    Incarnation,
    Name,
    Segment,
    add_column,
    create,
    ended,
    partitioned,
    position,
    reshaped,
)
from tidelake.history.keys import add_primary, add_unique, drop_index, drop_primary, rename_index, without_column
from tidelake.history.liked import created_like
from tidelake.history.partition_exchange import exchanged
from tidelake.history.partitions import added, coalesced, dropped, emptied, reorganized
from tidelake.tso import show


def apply(catalog: Catalog, ts: int, change: Change) -> Catalog:
    """Return the catalog after a statement's change at commit ts.

    Raises:
        OrderError: UNSUPPORTED_DDL, TABLE_EXISTS, UNKNOWN_COLUMN.
    """
    return _apply(in_table(catalog, change), catalog, ts)


def _refused(message: str) -> OrderError:
    return OrderError(message, code="UNSUPPORTED_DDL")


def _renamed(i: Incarnation, database: str, table: str, ts: int) -> Incarnation:
    new = Name(database=database, table=table, after_ts=ts)
    return replace(i, names=(*i.names[:-1], replace(i.names[-1], until_ts=ts), new))


@singledispatch
def _apply(change: Change, catalog: Catalog, ts: int) -> Catalog:
    raise AssertionError(f"no rule for {change!r}")


@_apply.register
def _(change: NoEffect, catalog: Catalog, ts: int) -> Catalog:
    return catalog


@_apply.register
def _(change: TableCharset, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    return catalog if found is None else catalog.with_(replace(found, binary=change.binary))


@_apply.register
def _(change: Unsupported, catalog: Catalog, ts: int) -> Catalog:
    raise _refused(f"this version cannot follow {change.what}")


@_apply.register
def _(change: CreateTable, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    if found is not None:
        if change.if_not_exists or found.guessed or _is(found, change.definition):
            return catalog
        since = "as tables.sql defines it" if found.from_ts == ALWAYS else f"since TSO {found.from_ts}"
        raise OrderError(f"{found.name} already exists, {since}, with other columns or another key", code="TABLE_EXISTS")
    if change.definition is not None:
        return create(catalog, change.database, change.table, change.definition, ts)
    like = catalog.find(*change.like) if change.like else None
    if like is None:
        return catalog  # the columns are taken from the first row
    return created_like(catalog, like, change.database, change.table, ts)


def _is(i: Incarnation, definition: TableDef | None) -> bool:
    """Whether tables.sql defined the table before its CREATE arrived."""
    if definition is None:
        return False
    names = {c.id: c.name.lower() for c in i.columns}
    key = tuple(c.lower() for c in definition.handle.columns) if definition.handle else ()
    same_columns = [(c.name.lower(), c.type) for c in definition.visible] == [(c.name.lower(), c.type) for c in i.columns]
    return same_columns and key == tuple(names[k] for k in i.key)


@_apply.register
def _(change: DropTable, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    if found is None:
        return catalog  # an unknown table, or a view
    return catalog.with_(ended(found, ts))


@_apply.register
def _(change: DropDatabase, catalog: Catalog, ts: int) -> Catalog:
    for i in catalog.alive():
        if i.names[-1].database.lower() == change.database.lower():
            catalog = catalog.with_(ended(i, ts))
    return catalog


@_apply.register
def _(change: RecoverTable, catalog: Catalog, ts: int) -> Catalog:
    of = change.of or (change.database, change.table)
    if (alive := catalog.find(*of)) is not None:
        raise _refused(f"{alive.name} exists; rows that TRUNCATE removed from it are not kept and cannot be recovered")
    found = _newest([i for i in _lost(catalog) if i.names[-1].is_(*of)])
    _refuse_outdated(catalog, found, "table")
    return catalog if found is None else _recovered(catalog, found, change.database, change.table, ts)


@_apply.register
def _(change: RecoverDatabase, catalog: Catalog, ts: int) -> Catalog:
    lost = [i for i in _lost(catalog) if i.names[-1].database.lower() == change.database.lower()]
    last = _newest(lost)
    _refuse_outdated(catalog, last, "database")
    for i in lost:
        if last is not None and i.dropped_ts == last.dropped_ts:
            catalog = _recovered(catalog, i, change.to_database, i.names[-1].table, ts)
    return catalog


def _lost(catalog: Catalog) -> list[Incarnation]:
    """The lives that a DROP ended: not those whose rows live on under another key."""
    lives = catalog.incarnations.values()
    former = {i.former for i in lives}
    return [i for i in lives if i.dropped_ts is not None and i.id not in former]


def _newest(lost: list[Incarnation]) -> Incarnation | None:
    return max(lost, key=lambda i: i.dropped_ts or 0, default=None)


def _refuse_outdated(catalog: Catalog, lost: Incarnation | None, what: str) -> None:
    """Raise OrderError if a recovered table may be one whose changes are not kept."""
    ts = catalog.dropped_retained_after
    if ts and (lost is None or (lost.dropped_ts or 0) <= ts):
        raise _refused(f"no {what} of that name was dropped after {show(ts)}; tables dropped before are not kept (keep_changelog)")


def _recovered(catalog: Catalog, i: Incarnation, database: str, table: str, ts: int) -> Catalog:
    """Continue an incarnation. Between its drop and now it had no name."""
    taken = catalog.find(database, table)
    if taken is not None:
        raise OrderError(f"{taken.name} already exists, the dropped table cannot take its name", code="TABLE_EXISTS")
    name, segment = Name(database=database, table=table, after_ts=ts), Segment(columns=i.columns, after_ts=ts)
    return catalog.with_(replace(i, names=(*i.names, name), segments=(*i.segments, segment), dropped_ts=None))


@_apply.register
def _(change: TruncateTable, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    return catalog if found is None else catalog.with_(replace(found, truncations=(*found.truncations, ts)))


@_apply.register
def _(change: EmptyPartitions, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    if found is None:
        return catalog
    if not change.names:
        return catalog.with_(replace(found, truncations=(*found.truncations, ts)))
    left = emptied(found, change.names, ts)
    return catalog.with_(dropped(left, change.names) if change.drop else left)


@_apply.register
def _(change: AddPartitions, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    return catalog if found is None else catalog.with_(added(found, change.partitions, change.count))


@_apply.register
def _(change: CoalescePartitions, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    return catalog if found is None else catalog.with_(coalesced(found, change.count))


@_apply.register
def _(change: ReplacePartitions, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    return catalog if found is None else catalog.with_(reorganized(found, change.names, change.partitions))


@_apply.register
def _(change: Repartition, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    if found is None:
        return catalog
    certain = found.key_index == "PRIMARY" and not found.guessed and len(found.key) == 1  # of several, the order is not
    primary = tuple(c.name for c in found.columns if c.id in found.key) if certain else ()
    return catalog.with_(replace(found, partitions=partitioned(change.partitioning, found.columns, primary)))


@_apply.register
def _(change: ExchangePartition, catalog: Catalog, ts: int) -> Catalog:
    p, t = catalog.find(change.database, change.table), catalog.find(change.with_database, change.with_table)
    if p is None or t is None:
        known = p or t
        if known is None or known.empty:
            return catalog
        raise _refused(f"{known.name} exchanges rows with a table that is unknown")
    return exchanged(catalog, p, change.partition, t, ts)


@_apply.register
def _(change: RenameTable, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    if found is None:
        return catalog
    taken = catalog.find(change.to_database, change.to_table)
    if taken is not None and taken.id != found.id:
        raise OrderError(f"{taken.name} already exists, {found.name} cannot take its name", code="TABLE_EXISTS")
    return catalog.with_(_renamed(found, change.to_database, change.to_table, ts))


@_apply.register
def _(change: AddColumn, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    if found is None or any(c.name.lower() == change.column.name.lower() for c in found.columns):
        return catalog  # or the column was seen in earlier rows (a guessed table)
    found = with_inputs(found, change.column)
    if change.column.virtual:
        return catalog.with_(replace(found, virtual=(*found.virtual, change.column.name)))
    if not change.column.default_known and not found.empty:
        raise _refused(
            f"the statement does not determine the value of the new column {change.column.name!r} in existing rows of {found.name}"
        )
    return catalog.with_(add_column(found, change.column, ts, change.after))


@_apply.register
def _(change: DropColumn, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    if found is None:
        return catalog
    left = tuple(c for c in found.columns if c.name.lower() != change.name.lower())
    if len(left) < len(found.columns):
        _not_in_key(found, change.name)
        return catalog.with_(reshaped(without_column(found, change.name), left, ts))
    return catalog.with_(replace(found, virtual=_unnamed(found, change.name)))  # a virtual column, or IF EXISTS


@_apply.register
def _(change: ModifyColumn, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    if found is None:
        return catalog
    found = renamed_input(with_inputs(found, change.column), change.name, change.column.name)
    if change.column.virtual:
        return catalog.with_(replace(found, virtual=(*_unnamed(found, change.name), change.column.name)))
    if _is_virtual(found, change.name):
        raise _refused(f"the generated column {change.name!r} of {found.name} is stored from now on")
    old = found.column(change.name)
    if not (found.empty or found.guessed) and not converts(old.type, change.column.type):
        raise _refused(
            f"the result of converting {found.name}.{old.name} from {old.type.sql} to {change.column.type.sql} depends on the server"
        )
    nullable = change.column.nullable and not (old.id in found.key and found.key_index == "PRIMARY")
    if nullable and old.id in found.key:
        raise _refused(f"column {old.name!r} of the key of {found.name} becomes nullable")
    new = replace(_called(found, old, change.column.name), type=change.column.type, nullable=nullable, stored=change.column.stored)
    columns = [new if c.id == old.id else c for c in found.columns]
    if change.after is not None:
        columns.remove(new)
        before = replace(found, segments=(replace(found.segments[-1], columns=tuple(columns)),))
        columns.insert(position(before, change.after, len(columns)), new)
    return catalog.with_(reshaped(found, tuple(columns), ts))


@_apply.register
def _(change: RenameColumn, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    if found is None:
        return catalog
    found = renamed_input(found, change.name, change.to)
    if _is_virtual(found, change.name):
        return catalog.with_(replace(found, virtual=(*_unnamed(found, change.name), change.to)))
    old = found.column(change.name)
    columns = tuple(_called(found, c, change.to) if c.id == old.id else c for c in found.columns)
    return catalog.with_(reshaped(found, columns, ts))


@_apply.register
def _(change: AddPrimary, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    return catalog if found is None else add_primary(catalog, found, change.columns, ts)


@_apply.register
def _(change: DropPrimary, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    return catalog if found is None else drop_primary(catalog, found, ts)


@_apply.register
def _(change: AddUnique, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    return catalog if found is None else add_unique(catalog, found, change.index, ts)


@_apply.register
def _(change: DropIndex, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    return catalog if found is None else drop_index(catalog, found, change.name, ts)


@_apply.register
def _(change: RenameIndex, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    return catalog if found is None else rename_index(catalog, found, change.name, change.to)


def _called(i: Incarnation, c: Column, name: str) -> Column:
    taken = next((o for o in i.columns if o.id != c.id and o.name.lower() == name.lower()), None)
    if taken is not None:
        raise OrderError(f"{i.name} already has a column {taken.name!r}, {c.name!r} cannot take its name", code="COLUMN_EXISTS")
    return c if c.name == name else replace(c, name=name, former=(*c.former, c.name))


def _not_in_key(i: Incarnation, name: str) -> None:
    if i.column(name).id in i.key:
        raise _refused(f"column {name!r} is part of the key of {i.name}")


def _is_virtual(i: Incarnation, name: str) -> bool:
    return any(v.lower() == name.lower() for v in i.virtual)


def _unnamed(i: Incarnation, name: str) -> tuple[str, ...]:
    """The virtual columns except this one."""
    return tuple(v for v in i.virtual if v.lower() != name.lower())
