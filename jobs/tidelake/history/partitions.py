"""Rows that are removed with a partition, and changes of partitions (docs/architecture.md 8.3). Pure.

A row's own columns determine its partition, exactly as the server places it. If they do not, the statement is refused.

HASH: the absolute remainder of the column, taken as 64 bits with a sign, by the number of partitions; 0 for NULL. So BIGINT UNSIGNED
counts as negative from 2^63 on, in TiDB (locateHashPartition in pkg/table/tables/partition.go) and in MySQL (get_part_id_hash in
sql/sql_partition.cc).

KEY: TiDB takes the CRC-32 (IEEE) of the texts of the columns one behind the other, of a byte 0 for NULL, modulo the number of partitions
(ForKeyPruning.LocateKeyPartition in pkg/table/tables/partition.go; Datum.ToHashKey in pkg/types/datum.go). The text of a whole number has
its digits alone, that of BINARY and VARBINARY is its bytes. Other types are refused:

* DECIMAL: the text has as many digits as the statement that wrote the row computed (10/4 in a DECIMAL(20,9) is `2.5000`).
* CHAR, VARCHAR, ENUM, SET: the bytes are the collation's, which the statement may leave out, and which a cluster may ignore.
* TIMESTAMP: the text is in the time zone of the session that wrote the row.
* DATE, DATETIME: the lake may have NULL for a zero date, which TiDB does not place as it places NULL.
* FLOAT, DOUBLE, TIME, BIT: no texts in the lake are known to be the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tidelake.errors import OrderError
from tidelake.history.ddl.changes import Partition
from tidelake.history.ddl.partition_clauses import first_day, numbered
from tidelake.history.incarnations import Column, Incarnation, Partitions, Removal
from tidelake.history.partition_boxes import Bound, Interval, between

_NUMBERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_DATES = frozenset({"date", "datetime"})
HASHED = _NUMBERS | {"year", "binary", "varbinary"}  # types whose text in TiDB's KEY is certain
_ANY_SERVER = "it is partitioned by KEY, whose hash is known for TiDB only, and the messages do not say that TiDB sent them"


def emptied(i: Incarnation, names: tuple[str, ...], ts: int) -> Incarnation:
    """Return the incarnation without the rows of these partitions up to ts. Raises OrderError (UNSUPPORTED_DDL)."""
    return i if i.empty else replace(i, removals=(*i.removals, *(r for name in names for r in members(i, name, ts))))


def dropped(i: Incarnation, names: tuple[str, ...]) -> Incarnation:
    """Return the incarnation without these partitions. Later rows of a dropped range go to the next partition.

    Raises OrderError (UNSUPPORTED_DDL) for KEY, of which no server drops one.
    """
    gone = {n.lower() for n in names}
    if i.partitions is not None and i.partitions.kind == "key":
        raise _unknown(i, names[0], "it is one of KEY, of which none can be dropped")
    return _with(i, tuple(p for p in i.partitions.parts if p.name.lower() not in gone)) if i.partitions else i


def added(i: Incarnation, parts: tuple[Partition, ...], count: int = 0) -> Incarnation:
    """Return the incarnation with more partitions: these, or so many of HASH or KEY, in which each row then has another remainder."""
    if i.partitions is None:
        return i
    have = i.partitions.parts
    if i.partitions.kind in ("hash", "key"):
        names = [p.name for p in parts] or [f"p{n}" for n in range(len(have), len(have) + count)]
        parts = numbered(names, len(have))
    return _with(i, (*have, *parts)) if parts else replace(i, partitions=None)


def coalesced(i: Incarnation, count: int) -> Incarnation:
    """Return the incarnation without its last partitions of HASH or KEY. They are not known any more if it has no more than so many."""
    parts = i.partitions.parts if i.partitions is not None and i.partitions.kind in ("hash", "key") else ()
    return _with(i, parts[:-count]) if 0 < count < len(parts) else replace(i, partitions=None)


def reorganized(i: Incarnation, names: tuple[str, ...], parts: tuple[Partition, ...]) -> Incarnation:
    """Return the incarnation with new partitions in place of some. Those of KEY are not known any more, as no server replaces some."""
    if i.partitions is None or not names:
        return i
    if i.partitions.kind == "key":
        return replace(i, partitions=None)
    old, gone = i.partitions.parts, {n.lower() for n in names}
    first = next((n for n, p in enumerate(old) if p.name.lower() in gone), None)
    if first is None:
        return replace(i, partitions=None)
    before, after = old[:first], tuple(p for p in old[first:] if p.name.lower() not in gone)
    return _with(i, (*before, *parts, *after))


def _with(i: Incarnation, parts: tuple[Partition, ...]) -> Incarnation:
    return replace(i, partitions=replace(i.partitions, parts=parts) if i.partitions else None)


def members(i: Incarnation, name: str, ts: int) -> tuple[Removal, ...]:
    """Return the rows of a partition at ts: those of any of the removals. Raises OrderError (UNSUPPORTED_DDL)."""
    by = i.partitions
    at = next((n for n, p in enumerate(by.parts) if p.name.lower() == name.lower()), None) if by else None
    known = {c.id: c for c in i.columns}
    columns = [known[n] for n in (by.column, *by.others) if n in known] if by else []
    if by is None or at is None or len(columns) != 1 + len(by.others):
        raise _unknown(i, name, "its partitioning is unknown, or not by plain columns")
    for column in columns:
        if i.key and column.id not in i.key:
            raise _unknown(i, name, f"column {column.name!r}, the partitioning column, is not in its key")
        if column.type.word not in (HASHED if by.kind == "key" else _DATES if by.function else _NUMBERS | _DATES):
            raise _unknown(i, name, f"column {column.name!r} is {column.type.sql}")
    if by.kind == "range":
        return _of_range(i, by, at, columns, ts)
    part, column = by.parts[at], columns[0]
    text = column.type.word in _DATES
    if by.kind == "key":
        return (Removal(ts=ts, column=column.id, values=part.values, modulus=len(by.parts), hashed=tuple(c.id for c in columns)),)
    fits = all(len(row) == len(columns) > 1 for row in part.tuples)
    if not part.known or not fits or any(c.type.word == "datetime" for c in columns) or (text and by.kind == "hash"):
        raise _unknown(i, name, "its values are not plain values")
    if by.kind == "hash":
        null = part.values == ("0",)
        return (Removal(ts=ts, column=column.id, values=part.values, null=null, modulus=len(by.parts)),)
    if not by.others:
        return (Removal(ts=ts, column=column.id, values=part.values, null=part.null, text=text),)
    return tuple(_all([_equal(c, v, ts) for c, v in zip(columns, row, strict=True)]) for row in part.tuples)


def check_source(changed: Iterable[Incarnation]) -> None:
    """Check that a statement, which changed these tables, emptied no partition of KEY, for a source that may be another server than TiDB.

    MySQL and MariaDB have hashes of their own there. Raises OrderError (UNSUPPORTED_DDL).
    """
    for i in changed:
        if any(r is not None and r.hashed for r in (*i.removals, *(e.part for e in i.exchanges))):
            raise OrderError(f"the rows of a partition of {i.name} cannot be determined: {_ANY_SERVER}", code="UNSUPPORTED_DDL")


def _of_range(i: Incarnation, by: Partitions, at: int, columns: Sequence[Column], ts: int) -> tuple[Removal, ...]:
    if any(c.type.word == "datetime" for c in columns[:-1]):
        raise _unknown(i, by.parts[at].name, "DATETIME may only be the last of its columns")
    low = _bounds(by, by.parts[at - 1], columns) if at else ()
    high = _bounds(by, by.parts[at], columns)
    if low is None or high is None:
        raise _unknown(i, by.parts[at].name, "its bounds are not plain values")
    return tuple(_all([_inside(c, x, ts) for c, x in zip(columns, box, strict=False)]) for box in between(low, high, len(columns)))


def _bounds(by: Partitions, part: Partition, columns: Sequence[Column]) -> Bound | None:
    """The upper bound of a partition; () for MAXVALUE, None if it is unknown."""
    written = (*([] if part.below is None else [part.below]), *part.then)
    if not part.known or len(written) > len(columns):
        return None
    found = [_bound(by, v, c.type.word in _DATES) for v, c in zip(written, columns, strict=False)]
    return tuple(b for b in found if b is not None) if None not in found else None


def _all(conditions: Sequence[Removal]) -> Removal:
    """Rows for which all of these hold. The first column always has a condition."""
    first, *others = conditions
    return replace(first, also=tuple(r for r in others if not (r.values is None and r.low is None and r.high is None and r.null)))


def _inside(column: Column, interval: Interval, ts: int) -> Removal:
    text = column.type.word in _DATES
    return Removal(ts=ts, column=column.id, low=interval.low, high=interval.high, null=interval.null, text=text)


def _equal(column: Column, value: str | None, ts: int) -> Removal:
    values = () if value is None else (value,)
    return Removal(ts=ts, column=column.id, values=values, null=value is None, text=column.type.word in _DATES)


def _bound(by: Partitions, value: str, text: bool) -> str | None:
    if by.function:
        return first_day(by.function, value)
    return value if ("-" in value[1:]) == text else None


def _unknown(i: Incarnation, name: str, why: str) -> OrderError:
    return OrderError(f"the rows of partition {name!r} of {i.name} cannot be determined: {why}", code="UNSUPPORTED_DDL")
