"""Tables in memory for tests of the fold: keys, values, changelog rows, and both sides as pieces of a few rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from tidelake.history.ordering import RowChange
from tidelake.history.ordering import fold as folded
from tidelake.lake.columns.pieces import Piece
from tidelake.wire.kernels.arrays import Flags

AFTER, UNTIL = 10, 14
CLASS = {"DELETE": 0, "UPDATE_AFTER": 1}
Cells = tuple[Any, ...]
VALUES = {"v": pa.string(), "n": pa.int32(), "d": pa.float64()}
META = {"_change_type": pa.string(), "_change_seq": pa.decimal128(38, 0), "_commit_ts": pa.int64(), "_partial": pa.bool_()}
META |= {"_topic": pa.string(), "_kafka_partition": pa.int32(), "_offset": pa.int64()}


@dataclass(frozen=True)
class Kind:
    """A key's columns, and a key of them for a small number."""

    columns: dict[str, pa.DataType]
    of: Callable[[int], Cells]


KINDS = {
    "number": Kind({"id": pa.int64()}, lambda n: (n - 2,)),
    "number or NULL": Kind({"id": pa.int32()}, lambda n: (n or None,)),
    "text and decimal": Kind({"a": pa.string(), "b": pa.decimal128(12, 2)}, lambda n: ("xyz"[n % 3], Decimal(n // 3) / 4)),
    "NULL beside text": Kind({"a": pa.string(), "b": pa.string()}, lambda n: ((None, "", "x")[n % 3], (None, "x", "")[n // 3])),
    "times, bytes and a number": Kind(
        {"t": pa.timestamp("us"), "b": pa.binary(), "id": pa.int32()},
        lambda n: (datetime(2026, 1, 1 + n % 2), b"\xff" * (n // 2 % 2), n // 4),  # noqa: DTZ001 - a DATETIME
    ),
    "what Iceberg cannot bucket": Kind({"f": pa.float64(), "day": pa.date32()}, lambda n: (n / 4, date(2026, 1, 1 + n % 2))),
}


class TableRows:
    """A table in memory that is read in pieces. deleted: rows that are deleted by position."""

    def __init__(self, table: pa.Table, step: int = 3, deleted: Sequence[int] = ()) -> None:
        self.table, self.step, self.count, self.reached = table, step, table.num_rows, table.num_rows
        self.alive = np.ones(self.count, np.bool_)
        self.alive[list(deleted)] = False
        self.reads: list[tuple[int, tuple[str, ...]]] = []

    def pieces(self, columns: Sequence[str], wanted: Flags | None = None) -> Iterator[Piece]:
        assert len(set(columns)) == len(columns), "a column is read once"
        for first in range(0, self.count, self.step):
            rows = slice(first, first + self.step)
            if wanted is None or wanted[rows].any():
                self.reads.append((first, tuple(columns)))
                part = self.table.select(list(columns)).slice(first, self.step).combine_chunks()
                alive = None if self.alive[rows].all() else self.alive[rows]
                yield Piece(first, part.to_batches()[0], alive)

    def may_hold(self, column: str, values: pa.Array) -> Flags:
        """Pieces with such a value, as statistics would tell it."""
        out, known = np.zeros(self.count, np.bool_), set(values.to_pylist())
        for first in range(0, self.count, self.step):
            out[first : first + self.step] = bool(known & set(self.table[column].slice(first, self.step).to_pylist()))
        return out


def table(
    columns: dict[str, pa.DataType], rows: Sequence[Cells], step: int = 3, deleted: Sequence[int] = (), coded: Sequence[str] = ()
) -> TableRows:
    """Rows as a side of a fold. coded: columns that are dictionaries."""
    arrays = [pa.array([r[n] for r in rows], kind) for n, kind in enumerate(columns.values())]
    arrays = [cells.dictionary_encode() if name in coded else cells for name, cells in zip(columns, arrays, strict=True)]
    return TableRows(pa.table(arrays, names=list(columns)), step, deleted)


def logged(change: RowChange, width: int) -> list[Cells]:
    """What a changelog has of a change, as order writes it."""

    def rows(kind: str, cells: Cells | None) -> list[Cells]:
        late = kind in ("INSERT", "UPDATE_AFTER")
        seq = (change.commit_ts * 10 + CLASS.get(kind, 2)) * 10**20 + change.at[1] * 10**9 + change.at[2] * 10 + change.at[3] * 2 + late
        mark = change.partial and kind != "DELETE"
        return [] if cells is None else [(*cells, kind, Decimal(seq), change.commit_ts, mark, *change.at[:3])]

    if change.op == "update" and change.before is not None and change.after is not None:
        if change.before[:width] != change.after[:width]:
            return rows("DELETE", change.before) + rows("INSERT", change.after)
        return rows("UPDATE_BEFORE", change.before) + rows("UPDATE_AFTER", change.after)
    kinds = {"delete": "DELETE", "insert": "INSERT", "update": "UPDATE_AFTER"}
    return rows(kinds[change.op], change.before if change.op == "delete" else change.after)


values = st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([1, 2, None]), st.sampled_from([0.5, -0.0, 0.0, None]))


@st.composite
def histories(draw: st.DrawFn, kind: Kind, partial: bool = False) -> tuple[dict[Cells, Cells], list[RowChange]]:
    """(rows of a snapshot by key, changes that come in any order): mostly true ones, some that lie about what stood before.

    partial: some changes carry their key alone.
    """
    rows = {kind.of(n): (*kind.of(n), *draw(values)) for n in draw(st.sets(st.integers(0, 7)))}
    now, changes = dict(rows), []
    for offset, n in enumerate(draw(st.lists(st.integers(0, 7), max_size=30))):
        key, row = kind.of(n), (*kind.of(n), *draw(values))
        was = now.get(key)
        if draw(st.integers(0, 9)) == 0:
            was = (*key, *draw(values))
        ops = ["insert", "bare"] if was is None else ["update", "update", "delete", "move", "bare"]
        op = draw(st.sampled_from(ops))
        at = ("t", draw(st.integers(0, 1)), offset, draw(st.integers(0, 1)))
        ts = draw(st.integers(AFTER, UNTIL + 1))
        if op == "move":
            other = kind.of(draw(st.integers(0, 7)))
            row, op = (*other, *row[len(other) :]), "update"
        thin = partial and op != "delete" and draw(st.booleans())
        if thin:
            row = (*row[: len(key)], *(None,) * len(VALUES))
            was = None if was is None else (*was[: len(key)], *(None,) * len(VALUES))
        before = None if op in ("insert", "bare") else was
        after = None if op == "delete" else row
        op = op.replace("bare", "update")
        changes.append(RowChange(table="t", op=op, commit_ts=ts, at=at, key=key, before=before, after=after, partial=thin))
        now = folded(rows, sorted(changes, key=lambda c: c.commit_ts), tuple(range(len(key))))
    return rows, draw(st.permutations(changes))
