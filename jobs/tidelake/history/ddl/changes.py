"""What a DDL statement does to tables: the vocabulary between the parser and the incarnations it changes."""

from __future__ import annotations

from dataclasses import dataclass

from tidelake.history.ddl.column_types import MysqlType

FIRST = ""  # as `after`: before all other columns


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDef:
    """A column as SQL defines it.

    default: what rows from before the column take, as canonical text (hex digits for binary types, names for ENUM and SET), None for
    NULL. default_known is False where that depends on the moment or on an expression.
    """

    name: str
    type: MysqlType
    nullable: bool = True
    default: str | None = None
    default_known: bool = True
    primary: bool = False
    unique: bool = False
    virtual: bool = False  # a generated column that is never sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A unique index: its name and columns."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition. RANGE: rows from the bound of the one before it up to `below`, None = MAXVALUE. LIST: rows with one of `values`;
    HASH: rows whose remainder that is.

    Bounds are canonical text: numbers, dates. known: whether they were written as plain values.
    """

    name: str
    below: str | None = None
    values: tuple[str, ...] = ()
    null: bool = False  # a LIST that holds NULL
    known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitioning:
    """How a table is partitioned: by `range`, `list` or `hash` of one plain column; RANGE also of its YEAR or TO_DAYS (`function`)."""

    kind: str
    column: str
    function: str = ""
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDef:
    """A CREATE TABLE's content. partitioning: None for none, or one whose rows cannot be told by their columns."""

    columns: tuple[ColumnDef, ...]
    primary_key: tuple[str, ...] = ()
    unique: tuple[Index, ...] = ()
    partitioning: Partitioning | None = None

    @property
    def visible(self) -> tuple[ColumnDef, ...]:
        """The columns that rows carry."""
        return tuple(c for c in self.columns if not c.virtual)

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
    """like: (database, table) whose definition is taken; then definition is None. Neither (CREATE … SELECT): as its rows will show."""

    definition: TableDef | None
    like: tuple[str, str] | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTable(Change):
    """The table's life ends."""

    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropDatabase(Change):
    """Every table of the database ends; `table` is empty."""


@dataclass(frozen=True, slots=True)
class TruncateTable(Change):
    """All rows up to the statement's commit ts leave."""


@dataclass(frozen=True, slots=True)
class RecoverTable(Change):
    """A dropped table is there again with its rows, under this name; `of`: the name it bore, where that was another."""

    of: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class RecoverDatabase(Change):
    """The tables that left with a DROP DATABASE are there again, in `to_database`; `table` is empty."""

    to_database: str


@dataclass(frozen=True, slots=True)
class EmptyPartitions(Change):
    """The rows of these partitions leave; all of the table's where none is named. drop: the partitions leave too."""

    names: tuple[str, ...]
    drop: bool = False


@dataclass(frozen=True, slots=True)
class AddPartitions(Change):
    """More partitions after the last, () where their number alone is said: then rows move."""

    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class ReplacePartitions(Change):
    """REORGANIZE: no row leaves, the rows of `names` are those of `partitions` now."""

    names: tuple[str, ...]
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class Repartition(Change):
    """No row leaves, all are partitioned another way; None: not at all, or in a way that cannot be told."""

    partitioning: Partitioning | None


@dataclass(frozen=True, slots=True)
class ExchangePartition(Change):
    """The rows of a partition and those of another table change places."""

    partition: str
    with_database: str
    with_table: str


@dataclass(frozen=True, slots=True)
class RenameTable(Change):
    """The same life under another name."""

    to_database: str
    to_table: str


@dataclass(frozen=True, slots=True)
class AddColumn(Change):
    """after: the column it follows, FIRST, or None for the end."""

    column: ColumnDef
    after: str | None = None


@dataclass(frozen=True, slots=True)
class DropColumn(Change):
    """The column leaves the table."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ModifyColumn(Change):
    """The column `name` becomes `column`, which may have another name."""

    name: str
    column: ColumnDef
    after: str | None = None


@dataclass(frozen=True, slots=True)
class RenameColumn(Change):
    """The same column under another name."""

    name: str
    to: str


@dataclass(frozen=True, slots=True)
class AddPrimary(Change):
    """A primary key, which becomes the handle; in place of another where the same statement drops that."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropPrimary(Change):
    """The primary key goes; which index is the handle then is not told."""


@dataclass(frozen=True, slots=True)
class AddUnique(Change):
    """A unique index: without effect unless the table would take it as its handle."""

    index: Index


@dataclass(frozen=True, slots=True)
class DropIndex(Change):
    """An index goes: without effect unless it is the handle."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameIndex(Change):
    """An index under another name."""

    name: str
    to: str


@dataclass(frozen=True, slots=True)
class NoEffect(Change):
    """Recorded, changes neither rows nor columns: `what` says which kind of statement."""

    what: str


@dataclass(frozen=True, slots=True)
class Unsupported(Change):
    """May change rows or columns in a way this version cannot follow."""

    what: str
