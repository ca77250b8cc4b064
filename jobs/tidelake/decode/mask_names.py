"""Determine the masked columns, their names and the times of these names, from the tables' history (docs/masking.md).

A mask belongs to a column and its table, not to their names. The incarnations that the last cut knows, with the statements since then, give
the names of the masked columns in rows of any commit ts. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tidelake.config.feed import Feed
from tidelake.config.table_name import written
from tidelake.decode.masker import MaskedName, MaskNames
from tidelake.errors import ContractError, OrderError
from tidelake.history.ddl.changes import (
    Change,
    ColumnDef,
    CreateTable,
    ExchangePartition,
    ModifyColumn,
    RecoverDatabase,
    RecoverTable,
    RenameColumn,
    RenameTable,
    TableDef,
    Unsupported,
)
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.ddl.statement import parse
from tidelake.history.evolution import apply
from tidelake.history.incarnations import ALWAYS, Catalog, Incarnation, Segment, add_column, create, reshaped
from tidelake.history.names import sanitised
from tidelake.history.projection import lived
from tidelake.history.window import Statement
from tidelake.lake.tables import mask_of
from tidelake.tso import show
from tidelake.wire.masks import marks_of

UNKNOWN_COLUMN = "UNKNOWN_COLUMN"  # a statement about a column known only from rows: it is not masked
_MOVES = (RenameTable, RenameColumn, ModifyColumn, ExchangePartition, CreateTable, RecoverTable, RecoverDatabase, Unsupported)
_TEXT = MysqlType.parse("text")


@dataclass(frozen=True, slots=True)
class Lives:
    """The known incarnations. partial: ids of tables of which only masked columns are known."""

    catalog: Catalog
    partial: frozenset[str] = frozenset()


def mask_names(feed: Feed, opening: Catalog, statements: Iterable[Statement] = ()) -> MaskNames:
    """Return what decode masks, for the known tables with the statements since then.

    Raises OrderError for a statement about a masked table that cannot be followed, as order would.
    """
    marks = marks_of(feed)
    if not marks:
        return MaskNames()
    lives = Lives(opening)
    for statement in sorted({s.identity: s for s in statements}.values(), key=lambda s: s.commit_ts):
        lives = _after(feed, lives, statement)
    ruled = _ruled(marks)
    every = [(i, _named(feed, i, ruled, i.id not in lives.partial)) for i in lives.catalog.incarnations.values()]
    hidden = {i.id for i, _ in every if _has_masks(feed, i, ruled)}
    shared = {_key(n.database, n.table) for i, names in every if i.id in hidden for n in names}
    masked = [n for i, names in every for n in names if i.id in hidden or _key(n.database, n.table) in shared]
    others = {(n.database, n.table) for i, names in every if i.id not in hidden for n in names}
    return MaskNames(marks=marks, masked=masked, others=sorted(others), timed=not feed.by_offsets)


def _key(database: str, table: str) -> tuple[str, str]:
    """Return a key that is equal for names that messages may not distinguish."""
    return sanitised(database).lower(), sanitised(table).lower()


def _ruled(marks: Iterable[tuple[str, str, str]]) -> dict[str, dict[str, str]]:
    """Return the masks that the feed sets: table in lower case → column → mark."""
    out: dict[str, dict[str, str]] = {}
    for table, column, mark in marks:
        out.setdefault(table.lower(), {})[column] = mark
    return out


def _has_masks(feed: Feed, i: Incarnation, ruled: Mapping[str, object]) -> bool:
    """Whether any of a table's columns is masked, or may be."""
    return any(name in ruled for name in _own(i)) or any(mask_of(feed, i, c) for c in lived(i))


def _named(feed: Feed, i: Incarnation, ruled: Mapping[str, Mapping[str, str]], whole: bool) -> list[MaskedName]:
    """Return the names of a table with their times and columns."""
    rules = {c: m for name in reversed(_own(i)) for c, m in ruled.get(name, {}).items()}
    last = {c.id: mask_of(feed, i, c) for c in lived(i)}  # by all names that a column had
    segments = [(s, {c.name: last[c.id] for c in s.columns}) for s in i.segments]
    first = i.segments[0]
    parts = [(s.after_ts, s.until_ts, columns, False) for s, columns in segments]
    parts += [(ALWAYS - 1, first.after_ts, _with_former(segments[0][1], feed, i, first), True)]
    out = []
    for n in i.names:
        for after, until, columns, before in parts:
            start, end = max(n.after_ts, after), _least(n.until_ts, until)
            if end is None or start < end:
                found = MaskedName(database=n.database, table=n.table, after_ts=start, until_ts=end, columns=columns, rules=rules)
                out.append(found.model_copy(update={"whole": whole, "before": before}))
    return out


def _with_former(columns: Mapping[str, str | None], feed: Feed, i: Incarnation, segment: Segment) -> dict[str, str | None]:
    former = {name: mask_of(feed, i, c) for c in segment.columns for name in c.former}
    return {**former, **columns}


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _after(feed: Feed, lives: Lives, s: Statement) -> Lives:
    if s.commit_ts in feed.policy.ignore_ddl and not s.recorded:
        return lives
    try:
        changes = parse(s.query, s.database)
    except ContractError as e:
        raise _unfollowed(feed, s, e) from e
    for change in changes:
        lives = _met(feed, lives, change, s.commit_ts)
        try:
            lives = _applied(lives, s.commit_ts, change)
        except OrderError as e:
            if e.code != UNKNOWN_COLUMN and _concerns(feed, lives.catalog, change):
                raise _unfollowed(feed, s, e) from e
    return lives


def _applied(lives: Lives, ts: int, change: Change) -> Lives:
    after, partial = apply(lives.catalog, ts, change), lives.partial
    source = lives.catalog.find(*change.like) if isinstance(change, CreateTable) and change.like else None
    new = after.incarnations.keys() - lives.catalog.incarnations.keys()
    if source is not None and source.id in partial:
        partial |= new
    return Lives(after, partial | {k for k in new if after.incarnations[k].former in partial})


def _met(feed: Feed, lives: Lives, change: Change, ts: int) -> Lives:
    """Add tables and columns that a statement renames or copies and that are unknown: they may later get a name that the feed masks."""
    if not isinstance(change, RenameTable | RenameColumn | ModifyColumn | CreateTable):
        return lives
    if isinstance(change, CreateTable):
        return _with_table(feed, lives, [change.like]) if change.like else lives
    lives = _with_table(feed, lives, _tables(change))
    found = lives.catalog.find(change.database, change.table)
    if found is None or isinstance(change, RenameTable):
        return lives
    new = change.to if isinstance(change, RenameColumn) else change.column.name
    ruled = any(c.lower() in (change.name.lower(), new.lower()) for t, c, _ in marks_of(feed) if t.lower() in _own(found))
    if found.id in lives.partial and new.lower() != change.name.lower():  # the table no longer has such a column, if it ever had one
        found = reshaped(found, tuple(c for c in found.columns if c.name.lower() != new.lower()), ts)
    if not (ruled or found.id in lives.partial) or any(c.name.lower() == change.name.lower() for c in found.columns):
        return replace(lives, catalog=lives.catalog.with_(found))
    known = add_column(found, ColumnDef(name=change.name, type=_TEXT), found.segments[-1].after_ts)
    return replace(lives, catalog=lives.catalog.with_(known))


def _with_table(feed: Feed, lives: Lives, names: Sequence[tuple[str, str]]) -> Lives:
    """Add an unknown table. names: its name, then the name that it will take."""
    wanted = {c.lower(): c for name in names for t, c, _ in marks_of(feed) if t.lower() == written(*name).lower()}
    if lives.catalog.find(*names[0]) is not None:
        return lives
    definition = TableDef(columns=tuple(ColumnDef(name=c, type=_TEXT) for c in wanted.values()))
    after = create(lives.catalog, *names[0], definition, ALWAYS, guessed=True)
    return Lives(after, lives.partial | (after.incarnations.keys() - lives.catalog.incarnations.keys()))


def _own(i: Incarnation) -> list[str]:
    """Return the table names that masks may use: the table's own, then those of the tables that it was made like."""
    return [written(n.database, n.table).lower() for n in i.names] + [name.lower() for name in i.like]


def _concerns(feed: Feed, catalog: Catalog, change: Change) -> bool:
    """Whether a change may move what is masked: it names a table with masks, or no table at all."""
    if not isinstance(change, _MOVES):
        return False
    if not change.table:
        return True
    names, ruled = _tables(change), _ruled(marks_of(feed))
    known = [i for name in names if (i := catalog.find(*name)) is not None]
    return any(written(*n).lower() in ruled for n in names) or any(_has_masks(feed, i, ruled) for i in known)


def _tables(change: Change) -> list[tuple[str, str]]:
    """Return all tables that a change names."""
    names = [(change.database, change.table)]
    match change:
        case RenameTable():
            names.append((change.to_database, change.to_table))
        case ExchangePartition():
            names.append((change.with_database, change.with_table))
        case CreateTable(like=tuple() as like):
            names.append(like)
    return names


def _unfollowed(feed: Feed, s: Statement, e: OrderError | ContractError) -> OrderError:
    return OrderError(
        f"the masked columns of feed {feed.name} are unknown after a statement: {e.message}: {s.query!r} in {s.database!r} "
        f"at TSO {show(s.commit_ts)}",
        code=e.code,
        remedy=f"nothing was decoded. If the statement moves no masked column, continue with `ignore_ddl = [{s.commit_ts}]` under [policy] "
        "in feed.toml; if other statements have the same effect, write those into ddl.jsonl with its commit_ts as well (docs/masking.md)",
    )
