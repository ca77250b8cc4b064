"""The fold of a bucket in Arrow, against the rules of order in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelake.compact.arrow_fold import FoldedBucket, FoldRules, KeyTwice, LeftToSpark, fold
from tidelake.compact.arrow_images import ComparedImages
from tidelake.history.ordering import RowChange, in_window
from tidelake.history.ordering import fold as folded
from tidelake.wire.kernels.arrays import Longs

AFTER, UNTIL = 10, 14
CLASS = {"DELETE": 0, "UPDATE_AFTER": 1}
Cells = tuple[Any, ...]


@dataclass(frozen=True)
class Kind:
    """A key's columns, and a key of them for a small number."""

    columns: dict[str, pa.DataType]
    of: Callable[[int], Cells]


KINDS = {
    "number": Kind({"id": pa.int64()}, lambda n: (n - 2,)),
    "text and decimal": Kind({"a": pa.string(), "b": pa.decimal128(12, 2)}, lambda n: ("xyz"[n % 3], Decimal(n // 3) / 4)),
    "times, bytes and a number": Kind(
        {"t": pa.timestamp("us"), "b": pa.binary(), "id": pa.int32()},
        lambda n: (datetime(2026, 1, 1 + n % 2), b"\xff" * (n // 2 % 2), n // 4),  # noqa: DTZ001 - a DATETIME
    ),
}
VALUES = {"v": pa.string(), "n": pa.int32(), "d": pa.float64()}
META = {
    "_change_type": pa.string(),
    "_change_seq": pa.decimal128(38, 0),
    "_commit_ts": pa.int64(),
}


class TableRows:
    """Rows of a table in memory."""

    def __init__(self, table: pa.Table) -> None:
        self._table, self.count = table, table.num_rows

    def whole(self, column: str) -> pa.Array:
        return self._table.column(column).combine_chunks()

    def cells(self, column: str, *rows: Longs) -> list[pa.Array]:
        assert all((np.diff(r) > 0).all() for r in rows), "they ascend"
        return [self.whole(column).take(pa.array(r)) for r in rows]


def table(columns: dict[str, pa.DataType], rows: Sequence[Cells]) -> TableRows:
    arrays = [pa.array([r[n] for r in rows], kind) for n, kind in enumerate(columns.values())]
    return TableRows(pa.table(arrays, names=list(columns)))


def logged(change: RowChange, width: int) -> list[Cells]:
    """What a changelog has of a change, as order.sql.rows.changes makes it."""

    def rows(kind: str, cells: Cells | None) -> list[Cells]:
        seq = (change.commit_ts * 10 + CLASS.get(kind, 2)) * 10**20 + change.at[1] * 10**9 + change.at[2] * 10 + change.at[3]
        return [] if cells is None else [(*cells, kind, Decimal(seq), change.commit_ts)]

    if change.op == "update" and change.before is not None and change.after is not None:
        if change.before[:width] != change.after[:width]:
            return rows("DELETE", change.before) + rows("INSERT", change.after)
        return rows("UPDATE_BEFORE", change.before) + rows("UPDATE_AFTER", change.after)
    kinds = {"delete": "DELETE", "insert": "INSERT", "update": "UPDATE_AFTER"}
    return rows(kinds[change.op], change.before if change.op == "delete" else change.after)


def fold_all(kind: Kind, base: TableRows, changes: TableRows, by: FoldRules, most_bytes: int = 1 << 20) -> FoldedBucket:
    return fold(base, changes, by, [*kind.columns, *VALUES, "_commit_ts"], most_bytes)


def contents(found: FoldedBucket) -> tuple[list[Cells], list[int]]:
    """(rows, in order; their commit ts)."""
    *columns, stamps = (c.to_pylist() for c in found.rows.columns)
    return list(zip(*columns, strict=True)), stamps


def rules(kind: Kind, images: ComparedImages | None = None) -> FoldRules:
    return FoldRules(key=list(kind.columns), after_ts=AFTER, until_ts=UNTIL, images=images)


values = st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([1, 2, None]), st.sampled_from([0.5, -0.0, 0.0, None]))


@st.composite
def histories(draw: st.DrawFn, kind: Kind) -> tuple[dict[Cells, Cells], list[RowChange]]:
    """(rows of a snapshot by key, changes that come in any order): mostly true ones, some that lie about what stood before."""
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
        before = None if op in ("insert", "bare") else was
        after = None if op == "delete" else row
        changes.append(RowChange(table="t", op=op.replace("bare", "update"), commit_ts=ts, at=at, key=key, before=before, after=after))
        now = folded(rows, sorted(changes, key=lambda c: c.commit_ts), tuple(range(len(key))))
    return rows, draw(st.permutations(changes))


def expected_images(kind: Kind, base: dict[Cells, Cells], log: Sequence[Cells], thin: bool) -> tuple[int, int]:
    """(keys compared, those that do not come out), by counting rows."""
    width, wide = len(kind.columns), len(kind.columns) + len(VALUES)
    compared = suspects = 0
    for key in {r[:width] for r in log}:
        mine = [r for r in log if r[:width] == key]
        kinds = Counter(r[wide] for r in mine)
        news = [r for r in mine if r[wide] != "UPDATE_BEFORE"]
        if not news or kinds["UPDATE_AFTER"] != kinds["UPDATE_BEFORE"]:
            continue
        last = max(news, key=lambda r: r[wide + 1])
        left = Counter([base[key]] if key in base else [])
        for r in mine:
            left[r[:wide]] += 1 if r[wide] in ("INSERT", "UPDATE_AFTER") else -1
        left = Counter({row: n for row, n in left.items() if n})
        if last[wide] != "DELETE":
            left[last[:wide]] -= 1
        if thin and kinds["DELETE"]:
            rows = (key in base) + kinds["INSERT"] - kinds["DELETE"]
            suspects += rows != (last[wide] != "DELETE")
        else:
            suspects += any(left.values())
        compared += 1
    return compared, suspects


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=150, deadline=None)
@given(data=st.data(), thin=st.booleans())
def test_what_stands_is_what_the_rules_of_order_say(name: str, data: st.DataObject, thin: bool) -> None:
    kind = KINDS[name]
    rows, history = data.draw(histories(kind))
    inside, width = in_window(history, AFTER, UNTIL), len(kind.columns)
    base = table(kind.columns | VALUES | {"_commit_ts": pa.int64()}, [(*r, AFTER) for r in rows.values()])
    log = [r for c in history for r in logged(c, width)]
    changes = table(kind.columns | VALUES | META, log)
    images = ComparedImages(columns=[*kind.columns, *VALUES], sampled=[], share=1, key_only_deletes=thin)
    standing = fold_all(kind, base, changes, rules(kind, images))
    found, stamps = contents(standing)
    wanted = folded(rows, inside, tuple(range(width)))
    assert found == sorted(wanted.values(), key=lambda r: r[:width])
    window = [r for r in log if AFTER < r[-1] <= UNTIL]
    newest = {r[:width]: r[-1] for r in sorted(window, key=lambda r: r[-2]) if r[-3] != "UPDATE_BEFORE"}
    assert stamps == [newest.get(r[:width], AFTER) for r in found]
    assert (standing.compared, standing.suspects) == expected_images(kind, rows, window, thin)


CHANGES = st.tuples(
    st.integers(0, 2), st.sampled_from(["DELETE", "UPDATE_AFTER", "INSERT"]), st.integers(AFTER, UNTIL + 1), st.integers(0, 10**19 - 1)
)


@settings(max_examples=200, deadline=None)
@given(log=st.lists(CHANGES, unique_by=lambda x: x[2:]))
def test_the_change_with_the_greatest_number_is_the_newest(log: list[tuple[int, str, int, int]]) -> None:
    kind = KINDS["number"]
    rows = [(k, f"{n}", n, None, change, Decimal(ts * 10**19 + place), ts) for n, (k, change, ts, place) in enumerate(log)]
    base = table(kind.columns | VALUES | {"_commit_ts": pa.int64()}, [])
    changes = table(kind.columns | VALUES | META, rows)
    newest = {r[0]: r for r in sorted(rows, key=lambda r: r[5]) if AFTER < r[6] <= UNTIL}
    standing = fold_all(kind, base, changes, rules(kind))
    assert contents(standing)[0] == [r[:4] for _, r in sorted(newest.items()) if r[4] != "DELETE"]


def test_a_key_that_stands_twice_is_shown_and_what_is_null_or_large_is_refused() -> None:
    kind = KINDS["text and decimal"]
    columns = kind.columns | VALUES | {"_commit_ts": pa.int64()}
    twice = [("x", Decimal("1.50"), "a", 1, 0.5, 1)] * 2
    other = [("x", Decimal("2.50"), "a", 1, 0.5, 1), ("x", None, "a", 1, 0.5, 1)]
    none = table(kind.columns | VALUES | META, [])
    with pytest.raises(KeyTwice) as found:
        fold_all(kind, table(columns, [*other[:1], *twice]), none, rules(kind))
    assert found.value.keys == ["{'a': 'x', 'b': Decimal('1.50')}"]
    with pytest.raises(LeftToSpark, match="b, of the key, is NULL somewhere"):
        fold_all(kind, table(columns, other), none, rules(kind))
    with pytest.raises(LeftToSpark, match="too large"):
        fold_all(kind, table(columns, other[:1]), none, rules(kind), 30)
    assert fold_all(kind, table(columns, [*other[:1], *twice[:1]]), none, rules(kind)).rows.num_rows == 2
