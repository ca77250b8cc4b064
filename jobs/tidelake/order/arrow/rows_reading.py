"""Row events to typed rows per table and bucket, in Arrow (docs/architecture.md 8.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.lake.columns.cells import INVALID, LOSSES, Codes
from tidelake.lake.columns.repeated import as_dictionary
from tidelake.order.arrow.event_groups import any_of, coded, inside, numbers
from tidelake.order.arrow.invalid_examples import Examples, invalid_examples
from tidelake.order.arrow.keyless_rows import HASH, event_hashes
from tidelake.order.arrow.placed_deletes import PlacedDeletes
from tidelake.order.arrow.table_models import ArrowTable, names_of
from tidelake.order.arrow.typed_columns import RowImages, TypedColumn, hashed
from tidelake.order.repeated_offsets import Again
from tidelake.order.rows_aside import RowsAside
from tidelake.spark.buckets import buckets_of
from tidelake.wire.kernels.arrays import Flags, Longs
from tidelake.wire.masks import refuse_other_key
from tidelake.wire.row_hashes import row_hashes

AT = ("topic", "partition", "offset", "ordinal")
READ = (*AT, "op", "commit_ts", "database", "table", "row_schema", "before_schema", "after", "before", "handle_only", "checksum")
INSERT, UPSERT, DELETE, UPDATE_WITHOUT_BEFORE, UPDATE, MOVE = range(6)  # `kind` of typed rows; MOVE: an update of the key
KINDS = len(LOSSES) + 1  # of losses, with none
NO_BUCKET = -1  # the bucket of NULL
_KINDS = {"insert": INSERT, "upsert": UPSERT, "delete": DELETE, "update": UPDATE}


@dataclass(slots=True)
class Typed:
    """Rows of one table in one share of a bucket: AT, commit_ts, kind, partial, `a<id>` (values after), `b<id>` (values before), `l<id>`
    where something is lost (`losses_of`), and HASH of a table without key. A partial row was sent with its handle alone. Values that repeat
    (`ArrowTable.repeats`) are hashes as bytes, perhaps as a dictionary.
    """

    table: int
    share: int
    rows: pa.Table


@dataclass(slots=True)
class RowsReading:
    """Reads events in a worker.

    Attributes:
        tables: Tables to read.
        after_ts: Start of the window (TSO), exclusive.
        until_ts: End of the window (TSO), inclusive.
        again: Offsets that do not count, because an earlier hour has them.
        aside: Rows that fit no schema.
        deletes: Commit ts of deletes that were sent without one.
        mask_key: Key of the feed's hashes.
        seen: Table → row events by checksum word; '' counts all.
        examples: Table → invalid values, by column.
    """

    tables: Sequence[ArrowTable]
    after_ts: int
    until_ts: int
    again: Sequence[Again] = ()
    aside: Sequence[RowsAside] = ()
    deletes: PlacedDeletes | None = None
    mask_key: bytes = b""
    seen: dict[int, Counter[str]] = field(default_factory=dict)
    examples: dict[int, Examples] = field(default_factory=dict)

    def typed(self, events: pa.Table) -> Iterator[Typed]:
        """Yield the window's rows among these events."""
        unsettled = None
        if self.deletes is not None:
            events, unsettled = self.deletes.dated(events)
        ts = numbers(events.column("commit_ts").combine_chunks(), -1)
        held = (ts > self.after_ts) & (ts <= self.until_ts)
        if self.again:
            held &= ~any_of(self.again, events)
        for a in self.aside:
            held &= ~a.among(events, ts)
        for table, rows in self._by_table(events, ts, held):
            mine = events if len(rows) == events.num_rows else events.take(pa.array(rows))
            if unsettled is not None:
                self._count_deletes(table, unsettled[rows])
            yield from self._of_table(table, mine)

    def _by_table(self, events: pa.Table, ts: Longs, held: Flags) -> Iterator[tuple[int, Longs]]:
        """Yield (table, numbers of its rows)."""
        wanted, found = names_of(self.tables), dict[int, list[Longs]]()
        for name, rows in _by_name(events, held):
            for number in wanted.get(name, ()):
                terms = [inside(ts[rows], n) for n in self.tables[number].names if (n.database, n.table) == name]
                found.setdefault(number, []).append(rows[np.logical_or.reduce(terms)])
        for number, parts in found.items():
            if len(rows := np.sort(np.concatenate(parts))):
                yield number, rows

    def _of_table(self, number: int, events: pa.Table) -> Iterator[Typed]:
        table = self.tables[number]
        if table.clear:
            refuse_other_key(table.marks, self.mask_key)
            events = hashed(events, table, self.mask_key)
        rows, share = self._typed(number, table, events)
        self._count(number, events)
        rows = _short(rows, table)
        for n in np.unique(share).tolist():
            mine = share == n
            yield Typed(number, n, rows if mine.all() else _short(rows.filter(pa.array(mine)), table))

    def _count(self, number: int, events: pa.Table) -> None:
        seen = self.seen.setdefault(number, Counter())
        seen[""] += events.num_rows
        words = events.column("checksum").combine_chunks()
        if words.null_count < len(words):
            seen.update({c["values"]: c["counts"] for c in pc.value_counts(words.drop_null().cast(pa.string())).to_pylist()})

    def _count_deletes(self, number: int, unsettled: Longs) -> None:
        """Count deletes that got their commit ts here. unsettled: 1 for those that may be after the cut, -1 for rows that came with one."""
        seen = self.seen.setdefault(number, Counter())
        seen.update({"undated": int((unsettled >= 0).sum()), "unsettled": int((unsettled == 1).sum())})

    def _typed(self, number: int, table: ArrowTable, events: pa.Table) -> tuple[pa.Table, Longs]:
        """Return (rows in the form of Typed, the share of each)."""
        after, before = RowImages(events, "after"), RowImages(events, "before")
        kind = _kinds(events)
        updates = kind == UPDATE
        found, images = dict[str, pa.Array](), dict[int, tuple[TypedColumn, TypedColumn]]()
        for c in table.columns:
            new, old = (image.column(c, table.time_zone, as_sent=table.repeats(c)) for image in (after, before))
            old = old.or_else(new, updates & ~before.absent & ~old.sent)  # docs/reference/protocols.md 5.4
            found[f"a{c.id}"], found[f"b{c.id}"] = new.values, old.values
            images[c.id] = new, old
            if new.lost is not None or old.lost is not None:
                found[f"l{c.id}"] = pa.array(_both(new.lost, old.lost))
        kind[updates & before.absent] = UPDATE_WITHOUT_BEFORE
        kind[_moved(table, found, kind)] = MOVE
        gone = kind == DELETE
        if any(_has(side.lost, INVALID) for both in images.values() for side in both):
            invalid_examples(self.examples.setdefault(number, {}), table, events, images, gone)
        if not table.key:
            found |= event_hashes(events, kind, (self.until_ts, self.after_ts))
        columns = {name: events.column(name).combine_chunks() for name in (*AT, "commit_ts")}
        partial = events.column("handle_only").combine_chunks().fill_null(False)
        rows = pa.table(columns | {"kind": pa.array(kind.astype(np.int8)), "partial": partial} | found)
        return rows, self._shares(table, rows, gone)

    def _shares(self, table: ArrowTable, rows: pa.Table, gone: Flags) -> Longs:
        """The share of each row, NO_BUCKET for a bucket column that is NULL. Equal events have the same share."""
        bucket = np.zeros(len(gone), np.int64)
        if table.bucket is not None:
            bucket = bucket_numbers(_key_cells(rows, table.bucket, gone), table.buckets)
        if table.shares == 1:
            return bucket
        if table.key:
            hashes = row_hashes([_key_cells(rows, k, gone) for k in table.key], (self.until_ts, self.after_ts))[:, 0]
        else:
            hashes = np.asarray(rows.column(HASH[0])).view(np.uint64)
        inner = (hashes % np.uint64(table.shares)).astype(np.int64)
        return np.where(bucket == NO_BUCKET, NO_BUCKET, bucket * table.shares + inner)


def _short(rows: pa.Table, table: ArrowTable) -> pa.Table:
    """The rows with dictionaries of values that repeat."""
    for name in (f"{side}{c.id}" for c in table.columns if table.repeats(c) for side in "ab"):
        rows = rows.set_column(rows.schema.get_field_index(name), name, as_dictionary(rows.column(name).combine_chunks()))
    return rows


def _key_cells(rows: pa.Table, column: int, gone: Flags) -> pa.Array:
    """The values of a key column: of deletes those before, of other rows those after."""
    return pc.if_else(pa.array(gone), rows.column(f"b{column}"), rows.column(f"a{column}")).combine_chunks()


def bucket_numbers(cells: pa.Array, buckets: int) -> Longs:
    """Return the bucket of each value, NO_BUCKET for NULL."""
    if not cells.null_count:
        return buckets_of(cells, buckets)
    out, there = np.full(len(cells), NO_BUCKET, np.int64), np.asarray(cells.is_valid())
    if there.any():
        out[there] = buckets_of(cells.drop_null(), buckets)
    return out


def _by_name(events: pa.Table, held: Flags) -> Iterator[tuple[tuple[str, str], Longs]]:
    """Yield rows by (database, table) as sent."""
    (one, ones), (two, twos) = (coded(events, c) for c in ("database", "table"))
    code = one * max(len(twos), 1) + two
    code[~held] = -1
    order = np.argsort(code, kind="stable")
    codes, begins = np.unique(code[order], return_index=True)
    for c, rows in zip(codes.tolist(), np.split(order, begins[1:]), strict=True):
        if c >= 0:
            yield (ones[c // len(twos)], twos[c % len(twos)]), rows


def _both(of_new: Codes | None, of_old: Codes | None) -> Codes:
    """The losses of the values after and before as one code."""
    if of_new is None or of_old is None:
        return of_new * np.int8(KINDS) if of_new is not None else of_old  # type: ignore[return-value] # one of them is not None
    return of_new * np.int8(KINDS) + of_old


def _has(lost: Codes | None, loss: int) -> bool:
    return lost is not None and bool((lost == loss).any())


def losses_of(column: pa.ChunkedArray) -> dict[str, int]:
    """Count the losses in a column `l<id>`, by name."""
    codes = np.asarray(column.fill_null(0)).astype(np.int64)
    counts = np.bincount(codes // KINDS, minlength=KINDS) + np.bincount(codes % KINDS, minlength=KINDS)
    return {name: int(n) for name, n in zip(LOSSES, counts[1:], strict=True) if n}


def _kinds(events: pa.Table) -> Longs:
    codes, words = coded(events, "op")
    return np.array([_KINDS[w] for w in words], np.int64)[codes]


def _moved(table: ArrowTable, found: dict[str, pa.Array], kind: Longs) -> Flags:
    """Updates of the key. NULL is a value of its own."""
    other: Flags = kind < 0
    for k in table.key:
        other |= ~same_values(found[f"a{k}"], found[f"b{k}"])
    other &= kind == UPDATE
    return other


def same_values(one: pa.Array | pa.ChunkedArray, other: pa.Array | pa.ChunkedArray) -> Flags:
    """Return which values are equal, or both NULL."""
    same: Flags = np.asarray(pc.fill_null(pc.equal(one, other), False))
    if one.null_count and other.null_count:
        same = same | np.asarray(pc.and_(one.is_null(), other.is_null()))
    return same
