"""Row events to typed rows per table and bucket, in Arrow. Same result as order.sql.rows, for tables that arrow_plan accepts.

A table with rows that carry their key alone, or with a key that is NULL, is refused; order.arrow.arrow_staging then lets Spark stage it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.lake.columns.cells import Codes, values
from tidelake.order.arrow.arrow_tables import ArrowColumn, ArrowTable, CellPosition, SentName, names_of
from tidelake.order.arrow.keyless_rows import contents
from tidelake.order.repeated_offsets import Again
from tidelake.spark.buckets import buckets_of
from tidelake.spark.sql_casts import LOSSES
from tidelake.wire.kernels.arrays import Flags, Longs

AT = ("topic", "partition", "offset", "ordinal")
HOUR = "hour"  # read if some offsets do not count
REPEATED = (HOUR, "topic", "op", "database", "table", "checksum")  # columns to read as dictionaries
READ = (*AT, "op", "commit_ts", "database", "table", "row_schema", "before_schema", "after", "before", "handle_only", "checksum")
INSERT, UPSERT, DELETE, UPDATE_WITHOUT_BEFORE, UPDATE, MOVE = range(6)  # `kind` of typed rows; MOVE: an update of the key
KINDS = len(LOSSES) + 1  # of losses, with none
_KINDS = {"insert": INSERT, "upsert": UPSERT, "delete": DELETE, "update": UPDATE}


class LeftToSpark(Exception):
    """Raised for tables that Spark must order."""


@dataclass(slots=True)
class Typed:
    """Rows of one table in one bucket: AT, commit_ts, kind, `a<id>` (values after), `b<id>` (values before), `l<id>` where something is
    lost (`losses_of`), and `content` of a table without key.
    """

    table: int
    bucket: int
    rows: pa.Table


@dataclass(slots=True)
class RowsReading:
    """Reads events in a worker.

    Attributes:
        tables: Tables to read.
        after_ts: Start of the window (TSO), exclusive.
        until_ts: End of the window (TSO), inclusive.
        again: Offsets that do not count, because an earlier hour has them.
        refused: Table → why it was refused.
        seen: Table → row events by checksum word; '' counts all.
    """

    tables: Sequence[ArrowTable]
    after_ts: int
    until_ts: int
    again: Sequence[Again] = ()
    refused: dict[int, str] = field(default_factory=dict)
    seen: dict[int, Counter[str]] = field(default_factory=dict)

    def typed(self, events: pa.Table) -> Iterator[Typed]:
        """Yield the window's rows among these events, for tables that are not refused."""
        ts = _numbers(events, "commit_ts", -1)
        inside = (ts > self.after_ts) & (ts <= self.until_ts)
        if self.again:
            inside &= ~_any_of(self.again, events)
        for table, rows in self._by_table(events, ts, inside):
            try:
                yield from self._of_table(table, events if len(rows) == events.num_rows else events.take(pa.array(rows)))
            except LeftToSpark as e:
                self.refused[table] = str(e)

    def _by_table(self, events: pa.Table, ts: Longs, inside: Flags) -> Iterator[tuple[int, Longs]]:
        """Yield (table, numbers of its rows)."""
        wanted, found = names_of(self.tables), dict[int, list[Longs]]()
        for name, rows in _by_name(events, inside):
            for number in wanted.get(name, ()):
                terms = [_inside(ts[rows], n) for n in self.tables[number].names if (n.database, n.table) == name]
                found.setdefault(number, []).append(rows[np.logical_or.reduce(terms)])
        for number, parts in found.items():
            rows = np.sort(np.concatenate(parts))
            if len(rows) and number not in self.refused:
                yield number, rows

    def _of_table(self, number: int, events: pa.Table) -> Iterator[Typed]:
        table = self.tables[number]
        if pc.any(events.column("handle_only")).as_py():
            raise LeftToSpark("rows with only their key")
        rows, bucket = _typed(table, events)
        self._count(number, events)
        for b in np.unique(bucket).tolist():
            mine = bucket == b
            yield Typed(number, b, rows if mine.all() else rows.filter(pa.array(mine)))

    def _count(self, number: int, events: pa.Table) -> None:
        seen = self.seen.setdefault(number, Counter())
        seen[""] += events.num_rows
        words = events.column("checksum").combine_chunks()
        if words.null_count < len(words):
            seen.update({c["values"]: c["counts"] for c in pc.value_counts(words.drop_null().cast(pa.string())).to_pylist()})


def _any_of(again: Sequence[Again], events: pa.Table) -> Flags:
    """Whether events have one of these offsets."""
    found = np.zeros(events.num_rows, np.bool_)
    partition, offset = _numbers(events, "partition", -1), _numbers(events, "offset", -1)
    (hour, hours), (topic, topics) = _coded(events, HOUR), _coded(events, "topic")
    for a in again:
        if a.hour in hours and a.topic in topics:
            mine = (hour == hours.index(a.hour)) & (topic == topics.index(a.topic)) & (partition == a.partition)
            for first, last in a.offsets:
                found |= mine & (offset >= first) & (offset <= last)
    return found


def _by_name(events: pa.Table, inside: Flags) -> Iterator[tuple[tuple[str, str], Longs]]:
    """Yield rows by (database, table) as sent."""
    (one, ones), (two, twos) = (_coded(events, c) for c in ("database", "table"))
    code = one * max(len(twos), 1) + two
    code[~inside] = -1
    order = np.argsort(code, kind="stable")
    codes, begins = np.unique(code[order], return_index=True)
    for c, rows in zip(codes.tolist(), np.split(order, begins[1:]), strict=True):
        if c >= 0:
            yield (ones[c // len(twos)], twos[c % len(twos)]), rows


def _coded(events: pa.Table, name: str) -> tuple[Longs, list[str]]:
    """Codes of a dictionary column (-1 for NULL, which no row event has) and its words."""
    column = events.column(name).combine_chunks()
    return _filled(column.indices, -1), column.dictionary.to_pylist()


def _inside(ts: Longs, name: SentName | CellPosition) -> Flags:
    held = ts > name.after_ts
    return held if name.until_ts is None else held & (ts <= name.until_ts)


def _numbers(events: pa.Table, name: str, null: int) -> Longs:
    return _filled(events.column(name).combine_chunks(), null)


def _filled(column: pa.Array, null: int) -> Longs:
    return np.asarray(column.cast(pa.int64()).fill_null(null))


def _typed(table: ArrowTable, events: pa.Table) -> tuple[pa.Table, Longs]:
    """Return (rows in the form of Typed, the bucket of each)."""
    after, before = _Images(events, "after", "row_schema"), _Images(events, "before", "before_schema")
    kind = _kinds(events)
    updates = kind == UPDATE
    found = dict[str, pa.Array]()
    for c in table.columns:
        (new, _), (old, sent) = after.cells(c), before.cells(c)
        if (unsent := updates & ~sent).any():  # an old value that was not sent equals the new one (docs/reference/protocols.md 5.4)
            old = pc.if_else(pa.array(unsent), new, old)
        (found[f"a{c.id}"], of_new), (found[f"b{c.id}"], of_old) = values(new, c.type), values(old, c.type)
        if of_new is not None or of_old is not None:
            found[f"l{c.id}"] = pa.array(_both(of_new, of_old))
    if not table.key and not table.every:
        found["content"] = contents(events)
    kind[updates & before.absent] = UPDATE_WITHOUT_BEFORE
    deleted = pa.array(kind == DELETE)
    key = {k: pc.if_else(deleted, found[f"b{k}"], found[f"a{k}"]) for k in table.key}
    both = (kind == UPDATE).nonzero()[0]
    if any(k.null_count for k in key.values()) or any(found[f"b{k}"].take(pa.array(both)).null_count for k in table.key):
        raise LeftToSpark("a key that is NULL")
    kind[_moved(table, found, kind)] = MOVE
    bucket = np.zeros(len(kind), np.int64) if table.bucket is None else buckets_of(key[table.bucket], table.buckets)
    columns = {name: events.column(name).combine_chunks() for name in (*AT, "commit_ts")}
    return pa.table(columns | {"kind": pa.array(kind.astype(np.int8))} | found), bucket


def _both(of_new: Codes | None, of_old: Codes | None) -> Codes:
    """The losses of the values after and before as one code."""
    if of_new is None or of_old is None:
        return of_new * np.int8(KINDS) if of_new is not None else of_old  # type: ignore[return-value] # one of them is not None
    return of_new * np.int8(KINDS) + of_old


def losses_of(column: pa.ChunkedArray) -> dict[str, int]:
    """Count the losses in a column `l<id>`, by name."""
    codes = np.asarray(column.fill_null(0)).astype(np.int64)
    counts = np.bincount(codes // KINDS, minlength=KINDS) + np.bincount(codes % KINDS, minlength=KINDS)
    return {name: int(n) for name, n in zip(LOSSES, counts[1:], strict=True) if n}


def _kinds(events: pa.Table) -> Longs:
    codes, words = _coded(events, "op")
    return np.array([_KINDS[w] for w in words], np.int64)[codes]


def _moved(table: ArrowTable, found: dict[str, pa.Array], kind: Longs) -> Flags:
    """Updates of the key."""
    other: Flags = kind < 0
    for k in table.key:
        other |= np.asarray(pc.fill_null(pc.not_equal(found[f"a{k}"], found[f"b{k}"]), False))
    other &= kind == UPDATE
    return other


class _Images:
    """One image (before or after) of the rows."""

    def __init__(self, events: pa.Table, side: str, row_schema: str) -> None:
        lists = events.column(side).combine_chunks()
        self.absent = np.asarray(pc.is_null(events.column(row_schema).combine_chunks()))
        self._row_schemas = _numbers(events, row_schema, 0)
        self._ts = _numbers(events, "commit_ts", -1)
        offsets = np.asarray(lists.offsets).astype(np.int64)
        self._first, self._end = offsets[:-1], offsets[1:]
        self._cells = lists.values
        self._none = np.asarray(pc.is_null(lists))

    def cells(self, column: ArrowColumn) -> tuple[pa.Array, Flags]:
        """Return (a column's cells, whether the row's schema has the column)."""
        position = np.full(len(self._ts), -1, np.int64)
        for p in column.positions:
            position[(self._row_schemas == p.row_schema) & _inside(self._ts, p)] = p.position
        at = self._first + position
        sent = position >= 0
        missing = ~sent | self.absent | self._none | (at >= self._end)
        return self._cells.take(pa.array(np.where(missing, 0, at), mask=missing)), sent & ~self.absent
