"""Rows that are removed with a partition, and changes of partitions (docs/architecture.md 8.3). Pure.

A row's own columns determine its partition, exactly as the server places it. If they do not, the statement is refused.
"""

from __future__ import annotations

from dataclasses import replace

from tidelake.errors import OrderError
from tidelake.history.ddl.changes import Partition
from tidelake.history.ddl.partition_clauses import first_day
from tidelake.history.incarnations import Incarnation, Partitions, Removal

_NUMBERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_DATES = frozenset({"date", "datetime"})


def emptied(i: Incarnation, names: tuple[str, ...], ts: int) -> Incarnation:
    """Return the incarnation without the rows of these partitions up to ts. Raises OrderError (UNSUPPORTED_DDL)."""
    return i if i.empty else replace(i, removals=(*i.removals, *(members(i, name, ts) for name in names)))


def dropped(i: Incarnation, names: tuple[str, ...]) -> Incarnation:
    """Return the incarnation without these partitions. Later rows of a dropped range go to the next partition."""
    gone = {n.lower() for n in names}
    return _with(i, tuple(p for p in i.partitions.parts if p.name.lower() not in gone)) if i.partitions else i


def added(i: Incarnation, parts: tuple[Partition, ...]) -> Incarnation:
    """Return the incarnation with more partitions. With HASH rows move, so their partition is not known any more."""
    if i.partitions is None or not parts or i.partitions.kind == "hash":
        return replace(i, partitions=None)
    return _with(i, (*i.partitions.parts, *parts))


def reorganized(i: Incarnation, names: tuple[str, ...], parts: tuple[Partition, ...]) -> Incarnation:
    """Return the incarnation with new partitions in place of some."""
    if i.partitions is None or not names:
        return i
    old, gone = i.partitions.parts, {n.lower() for n in names}
    first = next((n for n, p in enumerate(old) if p.name.lower() in gone), None)
    if first is None:
        return replace(i, partitions=None)
    before, after = old[:first], tuple(p for p in old[first:] if p.name.lower() not in gone)
    return _with(i, (*before, *parts, *after))


def _with(i: Incarnation, parts: tuple[Partition, ...]) -> Incarnation:
    return replace(i, partitions=replace(i.partitions, parts=parts) if i.partitions else None)


def members(i: Incarnation, name: str, ts: int) -> Removal:
    """Return the rows of a partition at ts. Raises OrderError (UNSUPPORTED_DDL)."""
    by = i.partitions
    at = next((n for n, p in enumerate(by.parts) if p.name.lower() == name.lower()), None) if by else None
    column = next((c for c in i.columns if by and c.id == by.column), None)
    if by is None or at is None or column is None:
        raise _unknown(i, name, "its partitioning is unknown, or not by one plain column")
    if i.key and column.id not in i.key:
        raise _unknown(i, name, f"column {column.name!r}, the partitioning column, is not in its key")
    if column.type.word not in (_DATES if by.function else _NUMBERS | _DATES):
        raise _unknown(i, name, f"column {column.name!r} is {column.type.sql}")
    text = column.type.word in _DATES
    part = by.parts[at]
    if by.kind == "range":
        low = by.parts[at - 1].below if at else None
        known = part.known and (at == 0 or by.parts[at - 1].known)
        bounds = [_bound(by, b, text) if b is not None else None for b in (low, part.below)]
        if not known or any(b is not None and c is None for b, c in zip((low, part.below), bounds, strict=True)):
            raise _unknown(i, name, "its bounds are not plain values")
        return Removal(ts=ts, column=column.id, low=bounds[0], high=bounds[1], null=at == 0, text=text)
    if not part.known or (text and (by.kind == "hash" or column.type.word != "date")):
        raise _unknown(i, name, "its values are not plain values")
    if by.kind == "hash":
        return Removal(ts=ts, column=column.id, values=part.values, null=part.values == ("0",), modulus=len(by.parts))
    return Removal(ts=ts, column=column.id, values=part.values, null=part.null, text=text)


def _bound(by: Partitions, value: str, text: bool) -> str | None:
    if by.function:
        return first_day(by.function, value)
    return value if ("-" in value[1:]) == text else None


def _unknown(i: Incarnation, name: str, why: str) -> OrderError:
    return OrderError(f"the rows of partition {name!r} of {i.name} cannot be determined: {why}", code="UNSUPPORTED_DDL")
