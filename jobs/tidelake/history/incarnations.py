"""Incarnations of tables: the name and the columns of every table at any TSO (docs/architecture.md 2, 8.3).

A Catalog is immutable; evolution.apply returns the next one. A statement with commit ts T applies to rows after T: a row at exactly T is
older.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, compress, count, pairwise, repeat
from operator import is_not

from tidelake.config.lake_paths import column_name
from tidelake.config.table_name import written
from tidelake.errors import OrderError
from tidelake.history.ddl.changes import FIRST, PRIMARY, ColumnDef, Index, Partition, Partitioning, TableDef
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.names import KnownNames, Named

ALWAYS = -1  # a ts before every row


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column. Its id stays through renames and type changes and is never reused.

    since_ts: rows up to it are older than the column and get `default` (canonical text; hex digits for binary types).
    """

    id: int
    name: str
    type: MysqlType
    nullable: bool = True
    default: str | None = None
    since_ts: int = ALWAYS
    former: tuple[str, ...] = ()  # former names
    stored: bool = False  # a generated column

    @property
    def lake_name(self) -> str:
        """The name in lake tables; `name` is the source's name."""
        return column_name(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A name of a table for rows in (after_ts, until_ts]. until_ts None: still valid."""

    database: str
    table: str
    after_ts: int
    until_ts: int | None = None

    def is_(self, database: str, table: str) -> bool:
        """Whether it is this name, ignoring case like TiDB."""
        return (self.database.lower(), self.table.lower()) == (database.lower(), table.lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The columns of one incarnation for rows in (after_ts, until_ts]. until_ts None: still valid."""

    columns: tuple[Column, ...]
    after_ts: int
    until_ts: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """How a table is partitioned, with the columns' ids: see ddl.changes.Partitioning."""

    kind: str
    column: int
    function: str
    parts: tuple[Partition, ...]
    others: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Rows up to ts that were removed with their partition.

    Attributes:
        ts: The TSO.
        column: Id of the partition column.
        low: Lower bound, inclusive; None if there is none.
        high: Upper bound, exclusive; None if there is none.
        values: Values of the partition; None for a range.
        null: Rows with NULL belong to it.
        text: Bounds compare as text (dates), else as numbers.
        modulus: If set, the values are absolute remainders of the column by this number; the column is taken as 64 bits with a sign.
        hashed: Ids of the columns of a KEY, the first one included. If set, the values are remainders of their CRC-32, by TiDB's rule.
        also: The same for further columns. A row was removed if all say so.
    """

    ts: int
    column: int
    low: str | None = None
    high: str | None = None
    values: tuple[str, ...] | None = None
    null: bool = False
    text: bool = False
    modulus: int | None = None
    hashed: tuple[int, ...] = ()
    also: tuple[Removal, ...] = ()

    @property
    def conditions(self) -> tuple[Removal, ...]:
        """One for each column."""
        return (replace(self, also=()), *self.also)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Rows of this table were exchanged with rows of another at ts.

    Attributes:
        ts: The TSO.
        number: Number among the exchanges of this ts.
        other: Id of the other table.
        partition: Name of the partition.
        part: The rows of that partition; None means all rows.
    """

    ts: int
    number: int
    other: str
    partition: str
    part: Removal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UniqueIndex:
    """A unique index: its name, and the ids of its columns in order."""

    name: str
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rekey:
    """A statement that changed the key of a table with rows, so that all of them moved into another life.

    Attributes:
        ts: The TSO.
        number: Number among the statements of this ts that move rows.
    """

    ts: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Incarnation:
    """One life of a table, from its creation to its drop, or to a statement that changes its key.

    Attributes:
        key: Ids of the handle's columns; () if there is no key.
        truncations: At each ts the rows up to it were removed.
        guessed: The columns come from the messages.
        empty: No row was seen, and none existed before.
        virtual: Names of generated columns that are never sent.
        inputs: Names, in lower case, of columns that generated columns are computed from.
        binary: Whether text columns without a charset are bytes.
        removals: Removals of the window.
        past_removals: Removals of earlier windows.
        like: Names, in the spelling of table_name, of the tables that it was created like.
        uniques: Unique indexes except the primary key, in order of creation, whose columns are all sent. None if not all are known.
        former: Id of the life whose rows it began with, if a new key made it; else empty.
        rekey: That statement, if it is one of the window.
    """

    id: str
    names: tuple[Name, ...]
    segments: tuple[Segment, ...]
    key: tuple[int, ...]
    key_index: str | None
    next_column: int
    truncations: tuple[int, ...] = ()
    dropped_ts: int | None = None
    guessed: bool = False  # no definition: the columns come from the messages
    empty: bool = False
    virtual: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    binary: bool = False
    partitions: Partitions | None = None
    removals: tuple[Removal, ...] = ()
    past_removals: tuple[Removal, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    like: tuple[str, ...] = ()
    uniques: tuple[UniqueIndex, ...] | None = field(default=None, compare=False)  # an index that is no handle has no effect
    former: str = ""
    rekey: Rekey | None = None

    @property
    def name(self) -> str:
        """The last name, in the spelling of table_name."""
        return written(self.names[-1].database, self.names[-1].table)

    @property
    def lasting_names(self) -> tuple[Name, ...]:
        """Its names in rows: without those that only its former life had."""
        return tuple(n for n in self.names if n.after_ts != n.until_ts)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The present columns, or those at the drop."""
        return self.segments[-1].columns

    @property
    def recovered(self) -> bool:
        """Whether it was dropped and recovered."""
        return any(b.after_ts > a.until_ts for a, b in pairwise(self.names) if a.until_ts is not None)

    @property
    def from_ts(self) -> int:
        """The TSO after which its rows begin."""
        return self.names[0].after_ts

    @property
    def changes_after(self) -> int:
        """The TSO after which its changes begin: the rows that a new key brings have the statement's."""
        return self.from_ts - 1 if self.former else self.from_ts

    def columns_at(self, ts: int) -> tuple[Column, ...]:
        """Return the columns at ts, including statements at ts."""
        return next((s.columns for s in self.segments if s.until_ts is None or ts < s.until_ts), self.columns)

    def truncated(self, ts: int) -> int:
        """Return the TSO up to which rows were removed by ts; ALWAYS if none."""
        return max((t for t in self.truncations if t <= ts), default=ALWAYS)

    def column(self, name: str) -> Column:
        """Return the column with this name, ignoring case like MySQL. Raises OrderError."""
        for c in self.columns:
            if c.name.lower() == name.lower():
                return c
        raise OrderError(f"{self.name} has no column {name!r}: {', '.join(c.name for c in self.columns)}", code="UNKNOWN_COLUMN")


@dataclass(frozen=True)
class Catalog:
    """The incarnations of a feed, in order of creation. Of those dropped up to dropped_retained_after (TSO) some may be missing."""

    incarnations: dict[str, Incarnation] = field(default_factory=dict)
    dropped_retained_after: int = 0

    def alive(self) -> list[Incarnation]:
        """Return the incarnations that are not dropped."""
        return [i for i in self.incarnations.values() if i.dropped_ts is None]

    def find(self, database: str, table: str) -> Incarnation | None:
        """Return the present table with this name."""
        return next((i for i in self.present.meant(database, table) if i.names[-1].is_(database, table)), None)

    @cached_property
    def present(self) -> KnownNames[Incarnation]:
        """The incarnations that are not dropped, by their present names."""
        return KnownNames(named for i in self.incarnations.values() if (named := _present(i)) is not None)

    def at(self, database: str, table: str, ts: int) -> Incarnation | None:
        """Return the table that had the name for a row at ts."""
        for i in self.incarnations.values():
            for n in i.names:
                if n.is_(database, table) and n.after_ts < ts and (n.until_ts is None or ts <= n.until_ts):
                    return i
        return None

    def asof(self, database: str, table: str, ts: int) -> Incarnation | None:
        """Return the table that has the name at ts, including statements at ts."""
        return self.at(database, table, ts + 1)

    def with_(self, incarnation: Incarnation) -> Catalog:
        """Return the catalog with this incarnation added or replaced."""
        out, before = replace(self, incarnations=self.incarnations | {incarnation.id: incarnation}), self.incarnations.get(incarnation.id)
        if "present" in self.__dict__ and (before is None or before.dropped_ts is None):
            present = self.present.moved(_present(before), _present(incarnation))
            out.__dict__.update({"present": present} if present is not None else {})  # otherwise it is found out again
        return out

    def changed_since(self, before: Catalog) -> list[Incarnation]:
        """Return the incarnations that are new or different. before: this catalog, or one that it was made from."""
        now, was = self.incarnations.values(), before.incarnations
        others = compress(now, map(is_not, now, chain(was.values(), repeat(None))))  # both are in order of creation
        return [i for i in others if i != was.get(i.id)]

    def opened(self) -> Catalog:
        """Return the catalog with which the next window starts: without segments and truncations that no later row needs.

        Rows that were removed from a dropped table count again if it is recovered. Rows that moved are in the changelogs.
        """
        return replace(self, incarnations={k: _opened(i) for k, i in self.incarnations.items()})


def _present(i: Incarnation | None) -> Named[Incarnation] | None:
    """The incarnation by its name, if it has one now."""
    return None if i is None or i.dropped_ts is not None else (i.names[-1].database, i.names[-1].table, i)


def _opened(i: Incarnation) -> Incarnation:
    last = replace(i, segments=i.segments[-1:], exchanges=(), rekey=None)
    return last if i.dropped_ts is not None else replace(last, truncations=(), removals=(), past_removals=i.past_removals + i.removals)


def create(catalog: Catalog, database: str, table: str, definition: TableDef, ts: int, *, guessed: bool = False) -> Catalog:
    """Return the catalog with a new incarnation after ts."""
    columns = tuple(_column(i, c, ALWAYS) for i, c in enumerate(definition.visible, 1))
    ids = {c.name.lower(): c.id for c in columns}
    handle = definition.handle
    new = Incarnation(
        id=new_id(catalog, database, table, ts),
        names=(Name(database=database, table=table, after_ts=ts),),
        segments=(Segment(columns=columns, after_ts=ts),),
        key=tuple(ids[name.lower()] for name in handle.columns) if handle else (),
        key_index=handle.name if handle else None,
        next_column=len(columns) + 1,
        guessed=guessed,
        empty=ts > ALWAYS and not guessed,
        virtual=tuple(c.name for c in definition.columns if c.virtual),
        inputs=definition.inputs,
        binary=definition.binary,
        partitions=partitioned(definition.partitioning, columns, definition.primary_key),
        uniques=None if guessed else uniques_of(definition.unique, columns),
    )
    return catalog.with_(new)


def new_id(catalog: Catalog, database: str, table: str, ts: int) -> str:
    """Return the id of a life that begins under this name after ts."""
    first = f"{database}.{table}@{ts}"
    return first if first not in catalog.incarnations else next(i for n in count(1) if (i := f"{first}#{n}") not in catalog.incarnations)


def ended(i: Incarnation, ts: int) -> Incarnation:
    """Return the incarnation without a name after ts."""
    names = (*i.names[:-1], replace(i.names[-1], until_ts=ts))
    segments = (*i.segments[:-1], replace(i.segments[-1], until_ts=ts))
    return replace(i, names=names, segments=segments, dropped_ts=ts)


def uniques_of(indexes: Iterable[Index], columns: Sequence[Column]) -> tuple[UniqueIndex, ...]:
    """Return unique indexes with the columns' ids, without those that have a column that is never sent: they are never the handle."""
    ids = {c.name.lower(): c.id for c in columns}
    known = (x for x in indexes if all(name.lower() in ids for name in x.columns))
    return tuple(UniqueIndex(name=x.name, columns=tuple(ids[name.lower()] for name in x.columns)) for x in known)


def partitioned(by: Partitioning | None, columns: tuple[Column, ...], primary: tuple[str, ...]) -> Partitions | None:
    """Return the partitions with the columns' ids; None if columns do not determine a row's partition. primary: the primary key's."""
    ids = {c.name.lower(): c.id for c in columns}
    names = () if by is None else (primary or ("",)) if by.column == PRIMARY else (by.column, *by.others)
    told = [ids.get(name.lower()) for name in names]
    column, *others = [i for i in told if i is not None] or [0]
    if by is None or None in told:
        return None
    return Partitions(kind=by.kind, column=column, function=by.function, parts=by.partitions, others=tuple(others))


def named_partitions(i: Incarnation) -> Partitioning | None:
    """Return the partitions of a table with the present names of its columns."""
    by, names = i.partitions, {c.id: c.name for c in i.columns}
    told = [names[n] for n in (by.column, *by.others) if n in names] if by else []
    if by is None or len(told) != 1 + len(by.others):
        return None
    return Partitioning(kind=by.kind, column=told[0], function=by.function, partitions=by.parts, others=tuple(told[1:]))


def add_column(i: Incarnation, column: ColumnDef, ts: int, after: str | None = None) -> Incarnation:
    """Return the incarnation with an additional column after ts."""
    new = replace(_column(i.next_column, column, ts), default=column.default)
    columns = list(i.columns)
    columns.insert(position(i, after, len(columns)), new)
    return replace(reshaped(i, tuple(columns), ts), next_column=i.next_column + 1)


def _column(number: int, c: ColumnDef, since_ts: int) -> Column:
    return Column(id=number, name=c.name, type=c.type, nullable=c.nullable, since_ts=since_ts, stored=c.stored)


def position(i: Incarnation, after: str | None, end: int) -> int:
    """Return the index for a column that follows another."""
    if after is None:
        return end
    if after == FIRST:
        return 0
    before = next((n for n, c in enumerate(i.columns) if c.name.lower() == after.lower()), end - 1)  # a virtual column has no position
    return before + 1


def reshaped(i: Incarnation, columns: tuple[Column, ...], ts: int) -> Incarnation:
    """Add a segment after ts. If the last segment would be empty, replace it."""
    last = i.segments[-1]
    new = Segment(columns=columns, after_ts=max(ts, last.after_ts))
    kept = i.segments[:-1] if last.after_ts >= ts else (*i.segments[:-1], replace(last, until_ts=ts))
    return replace(i, segments=(*kept, new))
