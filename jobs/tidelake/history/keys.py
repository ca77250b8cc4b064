"""Statements that change the handle of a table: which columns tell its rows apart then (docs/reference/protocols.md 1.2). Pure.

One life of a table has one key. A table without rows takes another key; one with rows begins another life with it, whose first rows are all
rows as of the statement (order/rekeyed_rows.py). A statement is refused if it is not certain which key follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidelake.errors import OrderError
from tidelake.history.ddl.changes import Index
from tidelake.history.incarnations import (
    ALWAYS,
    Catalog,
    Column,
    Incarnation,
    Rekey,
    Segment,
    UniqueIndex,
    ended,
    new_id,
    reshaped,
    uniques_of,
)
from tidelake.history.partition_exchange import moves_at

PRIMARY_KEY = "PRIMARY"  # name of the primary key as an index


def add_primary(catalog: Catalog, i: Incarnation, names: Sequence[str], ts: int) -> Catalog:
    """Return the catalog in which these columns are the table's primary key. Raises OrderError (UNKNOWN_COLUMN)."""
    ids = tuple(i.column(name).id for name in names)
    columns = tuple(replace(c, nullable=False) if c.id in ids else c for c in i.columns)
    if set(ids) == set(i.key):
        return catalog.with_(replace(reshaped(i, columns, ts), key_index=PRIMARY_KEY))
    return _with_key(catalog, i, columns, ids, PRIMARY_KEY, ts)


def drop_primary(catalog: Catalog, i: Incarnation, ts: int) -> Catalog:
    """Return the catalog in which the table has no primary key. Raises OrderError (UNSUPPORTED_DDL)."""
    return _remaining(catalog, i, ts, f"the statement drops the primary key of {i.name}")


def add_unique(catalog: Catalog, i: Incarnation, index: Index, ts: int) -> Catalog:
    """Return the catalog in which the table has another unique index, which is the handle if it has fewer columns, none of them NULL."""
    found = uniques_of([index], i.columns)
    if not found:
        return catalog
    (new,) = found
    known = i if i.uniques is None else replace(i, uniques=(*_others(i.uniques, index.name), new))
    shorter = not i.key or len(new.columns) < len(i.key)
    if i.key_index == PRIMARY_KEY or i.guessed or not shorter or not _required(new, i.columns):
        return catalog.with_(known)
    return _with_key(catalog, known, i.columns, new.columns, index.name, ts)


def drop_index(catalog: Catalog, i: Incarnation, name: str, ts: int) -> Catalog:
    """Return the catalog in which the table lacks an index. Raises OrderError (UNSUPPORTED_DDL)."""
    left = i if i.uniques is None else replace(i, uniques=_others(i.uniques, name))
    if (i.key_index or "").lower() != name.lower():
        return catalog.with_(left)
    return _remaining(catalog, left, ts, f"the index {name!r} is the handle of {i.name}")


def rename_index(catalog: Catalog, i: Incarnation, name: str, to: str) -> Catalog:
    """Return the catalog in which an index of the table has another name."""
    uniques = i.uniques and tuple(replace(u, name=to) if u.name.lower() == name.lower() else u for u in i.uniques)
    handle = to if (i.key_index or "").lower() == name.lower() else i.key_index
    return catalog.with_(replace(i, uniques=uniques, key_index=handle))


def without_column(i: Incarnation, name: str) -> Incarnation:
    """Return the table with unique indexes that lack a column; one without any column is gone."""
    gone = i.column(name).id
    shorter = (replace(u, columns=tuple(k for k in u.columns if k != gone)) for u in i.uniques or ())
    return i if i.uniques is None else replace(i, uniques=tuple(u for u in shorter if u.columns))


def _remaining(catalog: Catalog, i: Incarnation, ts: int, what: str) -> Catalog:
    """Return the catalog in which the smallest unique index that is left is the handle."""
    fit = [u for u in i.uniques or () if _required(u, i.columns)]
    if not fit:
        unknown = "its other unique indexes are unknown" if i.uniques is None else "no other unique index without NULL is left"
        raise OrderError(f"{what}: {unknown}", code="UNSUPPORTED_DDL")
    handle = min(fit, key=lambda u: len(u.columns))
    if set(handle.columns) == set(i.key):
        return catalog.with_(replace(i, key_index=handle.name))
    return _with_key(catalog, i, i.columns, handle.columns, handle.name, ts)


def _with_key(catalog: Catalog, i: Incarnation, columns: tuple[Column, ...], key: tuple[int, ...], index: str, ts: int) -> Catalog:
    if i.empty:
        return catalog.with_(replace(reshaped(i, columns, ts), key=key, key_index=index))
    return _rekeyed(catalog, i, columns, key, index, ts)


def _rekeyed(catalog: Catalog, i: Incarnation, columns: tuple[Column, ...], key: tuple[int, ...], index: str, ts: int) -> Catalog:
    """End a life with rows, and begin another one with them.

    The new life has the names, columns and partitions of the former one, so that rules and masks of any of its names hold.
    """
    if i.rekey is not None and i.rekey.ts == ts and not i.exchanges:
        return catalog.with_(replace(reshaped(i, columns, ts), key=key, key_index=index))  # the statement says more of the same life
    now = i.names[-1]
    new = replace(
        i,
        id=new_id(catalog, now.database, now.table, ts),
        names=(*(replace(n, after_ts=ts, until_ts=ts) for n in i.names[:-1]), replace(now, after_ts=ts)),
        segments=(Segment(columns=tuple(replace(c, since_ts=ALWAYS, default=None) for c in columns), after_ts=ts),),
        key=key,
        key_index=index,
        truncations=(),
        removals=(),
        past_removals=(),
        exchanges=(),
        former=i.id,
        rekey=Rekey(ts=ts, number=moves_at(catalog, ts)),
    )
    return catalog.with_(ended(i, ts)).with_(new)


def _required(u: UniqueIndex, columns: Sequence[Column]) -> bool:
    """Whether no column of the index can be NULL."""
    return {c.id for c in columns if not c.nullable}.issuperset(u.columns)


def _others(uniques: Sequence[UniqueIndex], name: str) -> tuple[UniqueIndex, ...]:
    return tuple(u for u in uniques if u.name.lower() != name.lower())
