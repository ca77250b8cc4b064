"""CREATE TABLE … LIKE: a table with another table's definition as it stands. Pure."""

from __future__ import annotations

from dataclasses import replace

from tidelake.config.table_name import written
from tidelake.history.ddl.changes import ColumnDef, Index, TableDef
from tidelake.history.incarnations import Catalog, Incarnation, create, named_partitions, reshaped, uniques_of


def created_like(catalog: Catalog, like: Incarnation, database: str, table: str, ts: int) -> Catalog:
    """Return the catalog with a new table after ts that has the columns, key and partitions of another."""
    made = create(catalog, database, table, _definition(like), ts, guessed=like.guessed)
    new = made.find(database, table)
    assert new is not None
    former = {c.name: c.former for c in like.columns}
    columns = tuple(replace(c, former=former[c.name]) for c in new.columns)
    names = tuple(written(n.database, n.table) for n in like.names)
    uniques = None if like.uniques is None else uniques_of(_uniques(like), columns)
    made_so = replace(reshaped(new, columns, ts), virtual=like.virtual, inputs=like.inputs, uniques=uniques)
    return made.with_(replace(made_so, like=(*names, *like.like)))


def _definition(i: Incarnation) -> TableDef:
    """The definition that is copied."""
    columns = tuple(ColumnDef(name=c.name, type=c.type, nullable=c.nullable, stored=c.stored) for c in i.columns)
    names = {c.id: c.name for c in i.columns}
    key = tuple(names[k] for k in i.key)
    primary = i.key_index in (None, "PRIMARY")
    unique = () if primary else (Index(name=i.key_index or "", columns=key),)
    by = named_partitions(i)
    return TableDef(columns=columns, primary_key=key if primary else (), unique=unique, partitioning=by, binary=i.binary)


def _uniques(i: Incarnation) -> list[Index]:
    """The unique indexes that are known, with the names of their columns."""
    names = {c.id: c.name for c in i.columns}
    return [Index(name=u.name, columns=tuple(names[k] for k in u.columns)) for u in i.uniques or ()]
