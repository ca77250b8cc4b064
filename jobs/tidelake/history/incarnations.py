"""The lives of tables: what every table was called and which columns it had at any TSO (docs/architecture.md 2, 8.3).

A Catalog is immutable; evolution.apply gives the next. A statement with commit ts T holds for rows after T: a row exactly at T is older.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

from tidelake.config.lake_paths import column_name
from tidelake.config.table_name import written
from tidelake.errors import OrderError
from tidelake.history.ddl.changes import FIRST, ColumnDef, Partition, Partitioning, TableDef
from tidelake.history.ddl.column_types import MysqlType

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

    @property
    def lake_name(self) -> str:
        """What it is called in lake tables; `name` is what the source calls it."""
        return column_name(self.name)


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
class Partitions:
    """How a table is partitioned, by a column's id: ddl.changes.Partitioning."""

    kind: str
    column: int
    function: str
    parts: tuple[Partition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Rows up to ts that left with their partition: those whose column is in [low, high), or one of `values`, or NULL where `null`.

    low, high: None = no bound; values are None for a range. text: bounds compare as text (dates), else as numbers.
    modulus: the values are remainders of the column, without their sign.
    """

    ts: int
    column: int
    low: str | None = None
    high: str | None = None
    values: tuple[str, ...] | None = None
    null: bool = False
    text: bool = False
    modulus: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """At ts rows of this table changed places with rows of another, `other` by its id: those of `part`, a partition of that name, or all
    where part is None. number: among the exchanges of this ts."""

    ts: int
    number: int
    other: str
    partition: str
    part: Removal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Incarnation:
    """One life of a table. key: ids of the handle's columns, () = no key. truncations: at each ts the rows up to it left.

    empty: no row of it was seen, and none was there before. virtual: names of generated columns that are never sent. removals: of the
    window; past_removals: of the windows before. like: names, as table_name writes them, of what it was made like.
    """

    id: str
    names: tuple[Name, ...]
    segments: tuple[Segment, ...]
    key: tuple[int, ...]
    key_index: str | None
    next_column: int
    truncations: tuple[int, ...] = ()
    dropped_ts: int | None = None
    guessed: bool = False  # no definition was given: columns come from the messages
    empty: bool = False
    virtual: tuple[str, ...] = ()
    partitions: Partitions | None = None
    removals: tuple[Removal, ...] = ()
    past_removals: tuple[Removal, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    like: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The last name, as table_name writes it."""
        return written(self.names[-1].database, self.names[-1].table)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns as they stand now (or stood at the drop)."""
        return self.segments[-1].columns

    @property
    def recovered(self) -> bool:
        """Whether it was dropped once and is there again."""
        return any(b.after_ts > a.until_ts for a, b in pairwise(self.names) if a.until_ts is not None)

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
        """As the next window starts from it: without the shapes and truncations that no later row meets. What left a dropped table
        counts again if it is recovered; rows that changed places stand in the changelogs."""
        return Catalog({k: _opened(i) for k, i in self.incarnations.items()})


def _opened(i: Incarnation) -> Incarnation:
    last = replace(i, segments=i.segments[-1:], exchanges=())
    return last if i.dropped_ts is not None else replace(last, truncations=(), removals=(), past_removals=i.past_removals + i.removals)


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
        empty=ts > ALWAYS and not guessed,
        virtual=tuple(c.name for c in definition.columns if c.virtual),
        partitions=partitioned(definition.partitioning, columns),
    )
    return catalog.with_(new)


def partitioned(by: Partitioning | None, columns: tuple[Column, ...]) -> Partitions | None:
    """Partitions by the column's id; None where no row's partition can be told."""
    column = next((c for c in columns if by and c.name.lower() == by.column.lower()), None)
    return Partitions(kind=by.kind, column=column.id, function=by.function, parts=by.partitions) if by and column else None


def add_column(i: Incarnation, column: ColumnDef, ts: int, after: str | None = None) -> Incarnation:
    """The incarnation with one more column after ts."""
    new = replace(_column(i.next_column, column, ts), default=column.default)
    columns = list(i.columns)
    columns.insert(position(i, after, len(columns)), new)
    return replace(reshaped(i, tuple(columns), ts), next_column=i.next_column + 1)


def _column(number: int, c: ColumnDef, since_ts: int) -> Column:
    return Column(id=number, name=c.name, type=c.type, nullable=c.nullable, since_ts=since_ts)


def position(i: Incarnation, after: str | None, end: int) -> int:
    """Where a column stands that is said to follow another."""
    if after is None:
        return end
    if after == FIRST:
        return 0
    before = next((n for n, c in enumerate(i.columns) if c.name.lower() == after.lower()), end - 1)  # a virtual column has no place
    return before + 1


def reshaped(i: Incarnation, columns: tuple[Column, ...], ts: int) -> Incarnation:
    """A new segment after ts; one that would be empty is replaced."""
    last = i.segments[-1]
    new = Segment(columns=columns, after_ts=max(ts, last.after_ts))
    kept = i.segments[:-1] if last.after_ts >= ts else (*i.segments[:-1], replace(last, until_ts=ts))
    return replace(i, segments=(*kept, new))
