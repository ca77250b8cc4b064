"""The lives of tables: what every table was called and which columns it had at any TSO (design section 2, 8).

A Catalog is immutable; `apply` gives the next. A statement with commit ts T holds for rows after T: a row exactly at T is older.
A statement about a table of which nothing is known yet has no effect: its columns will be taken from its first row.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import singledispatch

from tidelake.ddl.changes import (
    FIRST,
    AddColumn,
    AddUnique,
    Change,
    ColumnDef,
    CreateTable,
    DropColumn,
    DropDatabase,
    DropIndex,
    DropTable,
    Index,
    ModifyColumn,
    NoEffect,
    RenameColumn,
    RenameIndex,
    RenameTable,
    TableDef,
    TruncateTable,
    Unsupported,
)
from tidelake.errors import OrderError
from tidelake.values import MysqlType

ALWAYS = -1  # a ts before every row


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column's life: its id stays through renames and type changes and is never given again.

    since_ts: rows up to it are from before the column and take `default` (canonical text; hex digits for binary types).
    """

    id: int
    name: str
    type: MysqlType
    nullable: bool = True
    default: str | None = None
    since_ts: int = ALWAYS
    former: tuple[str, ...] = ()  # names it bore before


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A name a table bore for rows in (after_ts, until_ts]; until_ts None = still."""

    database: str
    table: str
    after_ts: int
    until_ts: int | None = None

    def is_(self, database: str, table: str) -> bool:
        """Whether it is this name (names ignore case, as TiDB's do)."""
        return (self.database.lower(), self.table.lower()) == (database.lower(), table.lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The columns of one incarnation for rows in (after_ts, until_ts]; until_ts None = still."""

    columns: tuple[Column, ...]
    after_ts: int
    until_ts: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Incarnation:
    """One life of a table. key: ids of the handle's columns, () = no key. truncations: at each ts the rows up to it left."""

    id: str
    names: tuple[Name, ...]
    segments: tuple[Segment, ...]
    key: tuple[int, ...]
    key_index: str | None
    next_column: int
    truncations: tuple[int, ...] = ()
    dropped_ts: int | None = None
    guessed: bool = False  # no definition was given: columns come from the messages

    @property
    def name(self) -> str:
        """The last name, as `db.table`."""
        return f"{self.names[-1].database}.{self.names[-1].table}"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns as they stand now (or stood at the drop)."""
        return self.segments[-1].columns

    @property
    def from_ts(self) -> int:
        """The life holds rows after this ts."""
        return self.names[0].after_ts

    def columns_at(self, ts: int) -> tuple[Column, ...]:
        """The columns at ts, statements at ts included."""
        return next((s.columns for s in self.segments if s.until_ts is None or ts < s.until_ts), self.columns)

    def truncated(self, ts: int) -> int:
        """Rows up to this ts have left by ts; ALWAYS if none."""
        return max((t for t in self.truncations if t <= ts), default=ALWAYS)

    def column(self, name: str) -> Column:
        """The column of that name (MySQL's names ignore case). Raises OrderError."""
        for c in self.columns:
            if c.name.lower() == name.lower():
                return c
        raise OrderError(f"{self.name} has no column {name!r}: {', '.join(c.name for c in self.columns)}", code="UNKNOWN_COLUMN")


@dataclass(frozen=True, slots=True)
class Catalog:
    """All incarnations of a feed, in order of their birth."""

    incarnations: dict[str, Incarnation] = field(default_factory=dict)

    def alive(self) -> list[Incarnation]:
        """Those not dropped."""
        return [i for i in self.incarnations.values() if i.dropped_ts is None]

    def find(self, database: str, table: str) -> Incarnation | None:
        """The living table of that name."""
        return next((i for i in self.alive() if i.names[-1].is_(database, table)), None)

    def at(self, database: str, table: str, ts: int) -> Incarnation | None:
        """The table that bore the name for a row at ts."""
        for i in self.incarnations.values():
            for n in i.names:
                if n.is_(database, table) and n.after_ts < ts and (n.until_ts is None or ts <= n.until_ts):
                    return i
        return None

    def asof(self, database: str, table: str, ts: int) -> Incarnation | None:
        """The table that bears the name at ts, statements at ts included."""
        return self.at(database, table, ts + 1)

    def with_(self, incarnation: Incarnation) -> Catalog:
        """The catalog with this incarnation added or replaced."""
        return Catalog(self.incarnations | {incarnation.id: incarnation})

    def opened(self) -> Catalog:
        """As the next window starts from it: without the shapes and truncations that no later row meets."""
        return Catalog({k: replace(i, segments=i.segments[-1:], truncations=()) for k, i in self.incarnations.items()})


def apply(catalog: Catalog, ts: int, change: Change) -> Catalog:
    """The catalog after a statement's change at commit ts. Raises OrderError (UNSUPPORTED_DDL, TABLE_EXISTS, UNKNOWN_COLUMN)."""
    return _apply(change, catalog, ts)


def create(catalog: Catalog, database: str, table: str, definition: TableDef, ts: int, *, guessed: bool = False) -> Catalog:
    """A new life after ts."""
    columns = tuple(_column(i, c, ALWAYS) for i, c in enumerate(definition.visible, 1))
    ids = {c.name.lower(): c.id for c in columns}
    handle = definition.handle
    count = sum(i.id.startswith(f"{database}.{table}@{ts}") for i in catalog.incarnations.values())
    new = Incarnation(
        id=f"{database}.{table}@{ts}" + (f"#{count}" if count else ""),
        names=(Name(database=database, table=table, after_ts=ts),),
        segments=(Segment(columns=columns, after_ts=ts),),
        key=tuple(ids[name.lower()] for name in handle.columns) if handle else (),
        key_index=handle.name if handle else None,
        next_column=len(columns) + 1,
        guessed=guessed,
    )
    return catalog.with_(new)


def add_column(i: Incarnation, column: ColumnDef, ts: int, after: str | None = None) -> Incarnation:
    """The incarnation with one more column after ts."""
    new = replace(_column(i.next_column, column, ts), default=column.default)
    columns = list(i.columns)
    columns.insert(_position(i, after, len(columns)), new)
    return replace(_reshaped(i, tuple(columns), ts), next_column=i.next_column + 1)


def _column(number: int, c: ColumnDef, since_ts: int) -> Column:
    return Column(id=number, name=c.name, type=c.type, nullable=c.nullable, since_ts=since_ts)


def _position(i: Incarnation, after: str | None, end: int) -> int:
    if after is None:
        return end
    if after == FIRST:
        return 0
    before = next((n for n, c in enumerate(i.columns) if c.name.lower() == after.lower()), end - 1)  # a virtual column has no place
    return before + 1


def _reshaped(i: Incarnation, columns: tuple[Column, ...], ts: int) -> Incarnation:
    """A new segment after ts; one that would be empty is replaced."""
    last = i.segments[-1]
    new = Segment(columns=columns, after_ts=max(ts, last.after_ts))
    kept = i.segments[:-1] if last.after_ts >= ts else (*i.segments[:-1], replace(last, until_ts=ts))
    return replace(i, segments=(*kept, new))


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
def _(change: Unsupported, catalog: Catalog, ts: int) -> Catalog:
    raise OrderError(f"this version cannot follow {change.what}", code="UNSUPPORTED_DDL")


@_apply.register
def _(change: CreateTable, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    if found is not None:
        if change.if_not_exists or found.guessed or _is(found, change.definition):
            return catalog
        since = "as tables.sql defines it" if found.from_ts == ALWAYS else f"since TSO {found.from_ts}"
        raise OrderError(f"{found.name} is there already, {since}, with other columns or another key", code="TABLE_EXISTS")
    if change.definition is not None:
        return create(catalog, change.database, change.table, change.definition, ts)
    assert change.like is not None
    like = catalog.find(*change.like)
    if like is None:
        return catalog  # its columns will be taken from the first row
    return create(catalog, change.database, change.table, _definition(like), ts, guessed=like.guessed)


def _definition(i: Incarnation) -> TableDef:
    """As a CREATE TABLE … LIKE takes it over."""
    columns = tuple(ColumnDef(name=c.name, type=c.type, nullable=c.nullable) for c in i.columns)
    names = {c.id: c.name for c in i.columns}
    key = tuple(names[k] for k in i.key)
    if i.key_index in (None, "PRIMARY"):
        return TableDef(columns=columns, primary_key=key)
    return TableDef(columns=columns, unique=(Index(name=i.key_index or "", columns=key),))


def _is(i: Incarnation, definition: TableDef | None) -> bool:
    """Whether tables.sql told of the table before its CREATE came."""
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
        return catalog  # a table of which nothing was ever seen, or a view
    return catalog.with_(_ended(found, ts))


@_apply.register
def _(change: DropDatabase, catalog: Catalog, ts: int) -> Catalog:
    for i in catalog.alive():
        if i.names[-1].database.lower() == change.database.lower():
            catalog = catalog.with_(_ended(i, ts))
    return catalog


def _ended(i: Incarnation, ts: int) -> Incarnation:
    names = (*i.names[:-1], replace(i.names[-1], until_ts=ts))
    segments = (*i.segments[:-1], replace(i.segments[-1], until_ts=ts))
    return replace(i, names=names, segments=segments, dropped_ts=ts)


@_apply.register
def _(change: TruncateTable, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    return catalog if found is None else catalog.with_(replace(found, truncations=(*found.truncations, ts)))


@_apply.register
def _(change: RenameTable, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    if found is None:
        return catalog
    taken = catalog.find(change.to_database, change.to_table)
    if taken is not None and taken.id != found.id:
        raise OrderError(f"{taken.name} is there already, {found.name} cannot take its name", code="TABLE_EXISTS")
    return catalog.with_(_renamed(found, change.to_database, change.to_table, ts))


@_apply.register
def _(change: AddColumn, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    if found is None or change.column.virtual or any(c.name.lower() == change.column.name.lower() for c in found.columns):
        return catalog  # never sent; or seen in the rows before (a guessed table)
    if not change.column.default_known:
        raise OrderError(
            f"what older rows of {found.name} hold in the new column {change.column.name!r} depends on more than the statement",
            code="UNSUPPORTED_DDL",
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
        return catalog.with_(_reshaped(found, left, ts))
    return catalog  # a virtual column, or IF EXISTS


@_apply.register
def _(change: ModifyColumn, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    if found is None or change.column.virtual:
        return catalog
    old = found.column(change.name)
    nullable = change.column.nullable and not (old.id in found.key and found.key_index == "PRIMARY")
    if nullable and old.id in found.key:
        raise OrderError(f"column {old.name!r} of the key of {found.name} becomes nullable", code="UNSUPPORTED_DDL")
    new = replace(_called(found, old, change.column.name), type=change.column.type, nullable=nullable)
    columns = [new if c.id == old.id else c for c in found.columns]
    if change.after is not None:
        columns.remove(new)
        before = replace(found, segments=(replace(found.segments[-1], columns=tuple(columns)),))
        columns.insert(_position(before, change.after, len(columns)), new)
    return catalog.with_(_reshaped(found, tuple(columns), ts))


@_apply.register
def _(change: RenameColumn, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    if found is None:
        return catalog
    old = found.column(change.name)
    columns = tuple(_called(found, c, change.to) if c.id == old.id else c for c in found.columns)
    return catalog.with_(_reshaped(found, columns, ts))


@_apply.register
def _(change: AddUnique, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    if found is None or found.key_index == "PRIMARY" or found.guessed:
        return catalog
    required = {c.name.lower() for c in found.columns if not c.nullable}
    shorter = not found.key or len(change.index.columns) < len(found.key)
    if shorter and required.issuperset(name.lower() for name in change.index.columns):
        raise OrderError(f"the unique index {change.index.name!r} becomes the handle of {found.name}", code="UNSUPPORTED_DDL")
    return catalog


@_apply.register
def _(change: DropIndex, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    if found is not None and (found.key_index or "").lower() == change.name.lower():
        raise OrderError(f"the index {change.name!r} is the handle of {found.name}", code="UNSUPPORTED_DDL")
    return catalog


@_apply.register
def _(change: RenameIndex, catalog: Catalog, ts: int) -> Catalog:
    found = catalog.find(change.database, change.table)
    if found is not None and (found.key_index or "").lower() == change.name.lower():
        return catalog.with_(replace(found, key_index=change.to))
    return catalog


def _called(i: Incarnation, c: Column, name: str) -> Column:
    taken = next((o for o in i.columns if o.id != c.id and o.name.lower() == name.lower()), None)
    if taken is not None:
        raise OrderError(f"{i.name} has a column {taken.name!r} already, {c.name!r} cannot take its name", code="COLUMN_EXISTS")
    return c if c.name == name else replace(c, name=name, former=(*c.former, c.name))


def _not_in_key(i: Incarnation, name: str) -> None:
    if i.column(name).id in i.key:
        raise OrderError(f"column {name!r} is part of the key of {i.name}", code="UNSUPPORTED_DDL")
