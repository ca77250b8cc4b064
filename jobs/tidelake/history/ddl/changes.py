"""Changes that a DDL statement makes to tables: the parser returns them, and evolution applies them to incarnations."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidelake.history.ddl.column_types import MysqlType

FIRST = ""  # value of `after`: before all other columns
PRIMARY = ""  # partitioning column of KEY (): the columns of the primary key


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDef:
    """A column as SQL defines it.

    Attributes:
        default: Value in rows from before the column, as canonical text (hex digits for binary types, names for ENUM and SET); None means
            NULL.
        default_known: False if the default depends on the time or on an expression, or if the server numbers the rows.
        inputs: Words in the expression of a generated column, in lower case; some are the names of its columns.
        of_bytes: The column if the table's charset is binary; None if that makes no difference.
    """

    name: str
    type: MysqlType
    nullable: bool = True
    default: str | None = None
    default_known: bool = True
    primary: bool = False
    unique: bool = False
    virtual: bool = False  # a generated column that is never sent
    stored: bool = False  # a generated column that is sent like others
    inputs: tuple[str, ...] = field(default=(), compare=False)
    of_bytes: ColumnDef | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A unique index: its name and columns."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition.

    RANGE: rows from the previous partition's bound up to `below`; None means MAXVALUE. LIST: rows with one of `values`. HASH and KEY:
    rows with that remainder. Bounds are canonical text: numbers, dates. known: whether they were written as plain values.

    RANGE COLUMNS of several columns: `below` is the first column's bound, `then` has those of the others before MAXVALUE. LIST COLUMNS of
    several columns: `tuples` instead of `values`; None in a tuple is NULL.
    """

    name: str
    below: str | None = None
    values: tuple[str, ...] = ()
    null: bool = False  # LIST: the partition has NULL
    known: bool = True
    then: tuple[str, ...] = ()
    tuples: tuple[tuple[str | None, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitioning:
    """How a table is partitioned: `range`, `list`, `hash` or `key` of plain columns. RANGE can use YEAR or TO_DAYS (`function`) of one.

    column: PRIMARY for KEY (); others: further columns of RANGE COLUMNS, LIST COLUMNS and KEY.
    """

    kind: str
    column: str
    function: str = ""
    partitions: tuple[Partition, ...]
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDef:
    """Content of a CREATE TABLE.

    partitioning: None if there is none, or if columns do not determine a row's partition; binary: whether its charset is.
    """

    columns: tuple[ColumnDef, ...]
    primary_key: tuple[str, ...] = ()
    unique: tuple[Index, ...] = ()
    partitioning: Partitioning | None = None
    binary: bool = False

    @property
    def visible(self) -> tuple[ColumnDef, ...]:
        """The columns that rows have in messages."""
        return tuple(c for c in self.columns if not c.virtual)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns, in lower case, that generated columns are computed from."""
        used = {name for c in self.columns for name in c.inputs}
        return tuple(n for c in self.columns if (n := c.name.lower()) in used)

    @property
    def handle(self) -> Index | None:
        """The handle index: the primary key, else the NOT NULL unique index with the fewest columns (docs/reference/protocols.md 1.2)."""
        if self.primary_key:
            return Index(name="PRIMARY", columns=self.primary_key)
        required = {c.name.lower() for c in self.visible if not c.nullable}
        fit = [i for i in self.unique if required.issuperset(c.lower() for c in i.columns)]
        return min(fit, key=lambda i: len(i.columns), default=None)


@dataclass(frozen=True, slots=True)
class Change:
    """One step of a statement, on one table."""

    database: str
    table: str


@dataclass(frozen=True, slots=True)
class CreateTable(Change):
    """Creates a table. like: (database, table) whose definition is copied; definition is then None.

    With neither (CREATE … SELECT) the first rows show the definition.
    """

    definition: TableDef | None
    like: tuple[str, str] | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTable(Change):
    """Ends the table's incarnation."""

    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropDatabase(Change):
    """Drops every table of the database; `table` is empty."""


@dataclass(frozen=True, slots=True)
class TruncateTable(Change):
    """Removes all rows up to the statement's commit ts."""


@dataclass(frozen=True, slots=True)
class RecoverTable(Change):
    """Restores a dropped table with its rows, under this name. of: its former name, if different."""

    of: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class RecoverDatabase(Change):
    """Restores the tables of a DROP DATABASE in `to_database`; `table` is empty."""

    to_database: str


@dataclass(frozen=True, slots=True)
class EmptyPartitions(Change):
    """Removes the rows of these partitions, or all rows if none is named. drop: also drops the partitions."""

    names: tuple[str, ...]
    drop: bool = False


@dataclass(frozen=True, slots=True)
class AddPartitions(Change):
    """Adds partitions after the last one. With HASH and KEY rows move.

    Attributes:
        partitions: The partitions; () if only their number is given.
        count: Their number, if it is given; they are then called p<n>, n being their place from 0 on.
    """

    partitions: tuple[Partition, ...]
    count: int = 0


@dataclass(frozen=True, slots=True)
class CoalescePartitions(Change):
    """Removes the last partitions of HASH or KEY. Rows move; none is removed."""

    count: int


@dataclass(frozen=True, slots=True)
class ReplacePartitions(Change):
    """REORGANIZE: the rows of partitions `names` are then in `partitions`. No row is removed."""

    names: tuple[str, ...]
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class Repartition(Change):
    """Partitions all rows in another way; no row is removed. None: not at all, or in a way that columns do not determine."""

    partitioning: Partitioning | None


@dataclass(frozen=True, slots=True)
class ExchangePartition(Change):
    """Exchanges the rows of a partition with those of another table."""

    partition: str
    with_database: str
    with_table: str


@dataclass(frozen=True, slots=True)
class RenameTable(Change):
    """Gives the table another name; the incarnation stays."""

    to_database: str
    to_table: str


@dataclass(frozen=True, slots=True)
class AddColumn(Change):
    """Adds a column. after: the column before it, FIRST, or None for the end."""

    column: ColumnDef
    after: str | None = None


@dataclass(frozen=True, slots=True)
class DropColumn(Change):
    """Drops a column."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ModifyColumn(Change):
    """Changes the column `name` to `column`, which can have another name."""

    name: str
    column: ColumnDef
    after: str | None = None


@dataclass(frozen=True, slots=True)
class RenameColumn(Change):
    """Gives the column another name."""

    name: str
    to: str


@dataclass(frozen=True, slots=True)
class AddPrimary(Change):
    """Adds a primary key, which becomes the handle. It can replace one that the same statement drops."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropPrimary(Change):
    """Drops the primary key. The statement does not state which index becomes the handle."""


@dataclass(frozen=True, slots=True)
class AddUnique(Change):
    """Adds a unique index. No effect unless the table takes it as its handle."""

    index: Index


@dataclass(frozen=True, slots=True)
class DropIndex(Change):
    """Drops an index. No effect unless it is the handle."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameIndex(Change):
    """Gives an index another name."""

    name: str
    to: str


@dataclass(frozen=True, slots=True)
class NoEffect(Change):
    """Changes neither rows nor columns; recorded only. what: kind of statement."""

    what: str


@dataclass(frozen=True, slots=True)
class TableCharset(NoEffect):
    """Gives text columns to come, which name no charset, that of the table. Messages have UTF-8 for every charset but binary.

    converts: existing text gets it, too.
    """

    binary: bool = False
    converts: bool = False


@dataclass(frozen=True, slots=True)
class Unsupported(Change):
    """Can change rows or columns in a way that this version cannot follow."""

    what: str
