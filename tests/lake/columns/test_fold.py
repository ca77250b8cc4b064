"""The fold in Arrow, against the rules of order in plain Python (history.ordering)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake.columns.fold_tables import AFTER, KINDS, META, UNTIL, VALUES, Cells, Kind, histories, logged, table, values
from tests.searches import examples
from tidelake.history.ordering import RowChange, deduplicated, in_window
from tidelake.history.ordering import fold as folded
from tidelake.history.ordering import fold_multiset as multiset
from tidelake.lake.columns import multisets, survivors
from tidelake.lake.columns.fold import BucketFold
from tidelake.lake.columns.fold_rules import FoldRules, Removed
from tidelake.lake.columns.survivors import KeyTwice

STAMP = {"_commit_ts": pa.int64()}
MANY = settings(max_examples=examples(150), deadline=None)


@contextmanager
def pass_of(rows: int, ahead: int = 1) -> Iterator[None]:
    """A pass takes so many rows, and without a key so many pieces of the snapshot ahead."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(survivors, "PASS_ROWS", rows)
        patch.setattr(multisets, "AHEAD", ahead)
        yield


def rules(kind: Kind | None, **more: Any) -> FoldRules:
    key = tuple(kind.columns) if kind else ()
    return FoldRules(columns=(*key, *VALUES), key=key, after_ts=AFTER, until_ts=UNTIL, **more)


def contents(fold: BucketFold) -> dict[Cells, int]:
    """The rows, each with its commit ts; every row once."""
    out = [tuple(r.values()) for batch in fold.rows() for r in batch.to_pylist()]
    assert len({r[:-1] for r in out}) == len(out)
    return {r[:-1]: r[-1] for r in out}


def window_of(changes: list[RowChange]) -> list[RowChange]:
    return deduplicated(in_window(changes, AFTER, UNTIL))


@pytest.mark.parametrize("name", KINDS)
@MANY
@given(data=st.data(), step=st.integers(1, 40), taken=st.sampled_from([2, 5, 1000]))
def test_what_stands_is_what_the_rules_of_order_say(name: str, data: st.DataObject, step: int, taken: int) -> None:
    kind = KINDS[name]
    rows, history = data.draw(histories(kind))
    width = len(kind.columns)
    gone = data.draw(st.sets(st.integers(0, max(len(rows) - 1, 0)))) if rows else set()
    base = table(kind.columns | VALUES | STAMP, [(*r, AFTER) for r in rows.values()], step, sorted(gone))
    rows = {k: r for n, (k, r) in enumerate(rows.items()) if n not in gone}
    log = [r for c in history for r in logged(c, width)]
    with pass_of(taken):
        found = contents(BucketFold(base, table(kind.columns | VALUES | META, log, step), rules(kind)))
    assert Counter(found.keys()) == Counter(folded(rows, in_window(history, AFTER, UNTIL), tuple(range(width))).values())
    newest = {r[:width]: r for r in sorted(log, key=lambda r: r[-6]) if AFTER < r[-5] <= UNTIL and r[-7] != "UPDATE_BEFORE"}
    assert found == {r: newest[r[:width]][-5] if r[:width] in newest else AFTER for r in found}


@pytest.mark.parametrize("keyed", [True, False])
@MANY
@given(data=st.data(), step=st.integers(1, 40), coded=st.tuples(st.booleans(), st.booleans()))
def test_values_may_come_as_dictionaries(keyed: bool, data: st.DataObject, step: int, coded: tuple[bool, bool]) -> None:
    kind = KINDS["number"]
    rows, history = data.draw(histories(kind))
    sides = [(kind.columns | VALUES | STAMP, [(*r, AFTER) for r in rows.values()])]
    sides.append((kind.columns | VALUES | META, [r for c in history for r in logged(c, len(kind.columns))]))
    how = rules(kind) if keyed else FoldRules(columns=(*kind.columns, *VALUES), key=(), after_ts=AFTER, until_ts=UNTIL)
    found = list[Counter[Cells]]()
    for chosen in ((False, False), coded):
        base, changes = (
            table(*side, step, coded=("v",) if as_dictionary else ()) for side, as_dictionary in zip(sides, chosen, strict=True)
        )
        found.append(Counter(tuple(r.values()) for batch in BucketFold(base, changes, how).rows() for r in batch.to_pylist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", KINDS)
@MANY
@given(data=st.data(), step=st.integers(1, 40), taken=st.sampled_from([2, 1000]))
def test_what_is_known_of_rows_that_came_with_their_key_alone(name: str, data: st.DataObject, step: int, taken: int) -> None:
    kind = KINDS[name]
    rows, history = data.draw(histories(kind, partial=True))
    inside, width = window_of(history), len(kind.columns)
    base = table(kind.columns | VALUES | STAMP, [(*r, AFTER) for r in rows.values()], step)
    log = [r for c in inside for r in logged(c, width)]
    with pass_of(taken):
        found = contents(BucketFold(base, table(kind.columns | VALUES | META, log, step), rules(kind, partial=True)))
    assert Counter(found.keys()) == Counter(folded(rows, inside, tuple(range(width))).values())
    newest = {r[:width]: r for r in sorted(log, key=lambda r: r[-6]) if r[-7] != "UPDATE_BEFORE"}
    assert found == {r: newest[r[:width]][-5] if r[:width] in newest else AFTER for r in found}


@MANY
@given(
    base=st.lists(values, max_size=12),
    told=st.lists(st.tuples(values, st.sampled_from(["insert", "delete", "update"]), values, st.integers(AFTER, UNTIL + 1)), max_size=30),
    step=st.integers(1, 40),
    taken=st.sampled_from([2, 1000]),
    ahead=st.sampled_from([0, 1, 12]),
)
def test_equal_rows_without_a_key_count_as_often_as_they_stand(
    base: list[Cells], told: list[tuple[Cells, str, Cells, int]], step: int, taken: int, ahead: int
) -> None:
    changes = [
        RowChange(
            table="t",
            op=op,
            commit_ts=ts,
            at=("t", 0, n, 0),
            before=None if op == "insert" else was,
            after=None if op == "delete" else now,
        )
        for n, (was, op, now, ts) in enumerate(told)
    ]
    log = [
        (*cells, kind, Decimal(c.commit_ts * 100 + 2 * n + late), c.commit_ts, False, *c.at[:3])
        for n, c in enumerate(changes)
        for cells, kind, late in ((c.before, "DELETE" if c.op == "delete" else "UPDATE_BEFORE", 0), (c.after, "INSERT", 1))
        if cells is not None
    ]
    stands = table(VALUES | STAMP, [(*r, AFTER) for r in base], step)
    with pass_of(taken, ahead):
        fold = BucketFold(stands, table(VALUES | META, log, step), rules(None))
        found = Counter(tuple(r.values())[:-1] for batch in fold.rows() for r in batch.to_pylist())
    net = Counter(base)
    for c in in_window(changes, AFTER, UNTIL):
        net[c.before] -= c.before is not None
        net[c.after] += c.after is not None
    assert fold.missing == -sum(n for row, n in net.items() if row is not None and n < 0)
    if not fold.missing:
        assert found == multiset(Counter(base), in_window(changes, AFTER, UNTIL))
    assert found == Counter({row: n for row, n in net.items() if row is not None and n > 0})


CHANGES = st.tuples(
    st.integers(0, 2), st.sampled_from(["DELETE", "UPDATE_AFTER", "INSERT"]), st.integers(AFTER, UNTIL + 1), st.integers(0, 10**19 - 1)
)


@settings(max_examples=examples(200), deadline=None)
@given(log=st.lists(CHANGES, unique_by=lambda x: x[2:]), step=st.integers(1, 9))
def test_the_change_with_the_greatest_number_is_the_newest(log: list[tuple[int, str, int, int]], step: int) -> None:
    kind = KINDS["number"]
    rows = [
        (k, f"{n}", n, None, change, Decimal(ts * 10**19 + place), ts, False, "t", 0, n) for n, (k, change, ts, place) in enumerate(log)
    ]
    newest = {r[0]: r for r in sorted(rows, key=lambda r: r[5]) if AFTER < r[6] <= UNTIL}
    fold = BucketFold(table(kind.columns | VALUES | STAMP, []), table(kind.columns | VALUES | META, rows, step), rules(kind))
    assert set(contents(fold)) == {r[:4] for r in newest.values() if r[4] != "DELETE"}


PARTS = {
    "a range": Removed(ts=12, column="id", low="1", high="4"),
    "the first range": Removed(ts=12, column="id", high="1", null=True),
    "the last range": Removed(ts=12, column="id", low="3"),
    "a list": Removed(ts=12, column="id", values=("1", "4"), null=True),
    "an empty list": Removed(ts=12, column="id", values=()),
    "a remainder": Removed(ts=12, column="id", values=("1",), modulus=3),
}


@pytest.mark.parametrize("name", PARTS)
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), keyed=st.booleans())
def test_rows_that_left_with_their_partition_do_not_stand(name: str, data: st.DataObject, keyed: bool) -> None:
    part, kind = PARTS[name], KINDS["number or NULL"]
    ids = [None, -4, -1, 0, 1, 2, 3, 4, 5]
    inside = {
        "a range": {1, 2, 3},
        "the first range": {None, -4, -1, 0},
        "the last range": {3, 4, 5},
        "a list": {None, 1, 4},
        "an empty list": set[int](),
        "a remainder": {-4, -1, 1, 4},
    }[name]
    base = [(i, "a", 1, 0.5) for i in data.draw(st.sets(st.sampled_from(ids)))]
    told = data.draw(st.lists(st.tuples(st.sampled_from(ids), st.integers(AFTER + 1, UNTIL)), unique=True, max_size=12))
    log = [(i, "b", n, None, "INSERT", Decimal(ts * 1000 + n), ts, False, "t", 0, n) for n, (i, ts) in enumerate(told)]
    by = rules(kind, removed=(part,))
    if not keyed:
        by = by.model_copy(update={"key": ()})
    found = contents(
        BucketFold(table(kind.columns | VALUES | STAMP, [(*r, AFTER) for r in base]), table(kind.columns | VALUES | META, log), by)
    )
    wanted = {r[0]: r for r in base if r[0] not in inside}
    rest: list[Cells] = [] if keyed else list(wanted.values())
    for r in sorted(log, key=lambda r: r[5]):
        if r[6] <= 12 and r[0] in inside:
            wanted.pop(r[0], None)
        else:
            wanted[r[0]] = r[:4]
            rest.append(r[:4])
    assert set(found) == set(wanted.values() if keyed else rest)


def test_a_row_leaves_with_a_partition_of_several_columns_if_all_of_them_say_so() -> None:
    kind = KINDS["number or NULL"]
    part = Removed(ts=12, column="id", low="1", high="3", also=(Removed(ts=12, column="n", values=("1",), null=True),))
    assert part.columns == ("id", "n")
    base = [(n, "a", v, 0.5, AFTER) for n, v in ((0, 1), (1, 1), (2, 2), (3, 1), (4, None))]
    log = [(2, "b", None, None, "INSERT", Decimal(12_000), 12, False, "t", 0, 1)]
    log += [(1, "c", 1, None, "INSERT", Decimal(13_000), 13, False, "t", 0, 2)]
    by = rules(kind, removed=(part,))
    found = contents(BucketFold(table(kind.columns | VALUES | STAMP, base), table(kind.columns | VALUES | META, log), by))
    assert {r[:3] for r in found} == {(0, "a", 1), (1, "c", 1), (3, "a", 1), (4, "a", None)}


def test_dates_of_a_partition_are_compared_as_text() -> None:
    days = pa.array(["2026-01-01", "2026-01-31", "2026-02-01", None]).cast(pa.date32())
    january = Removed(ts=1, column="day", low="2026-01-01", high="2026-02-01", text=True)
    assert january.has(days).tolist() == [True, True, False, False]
    moments = pa.array(["2026-01-01 00:00:00", "2026-01-31 23:59:59.999999", "2026-02-01 00:00:00", None]).cast(pa.timestamp("us"))
    assert january.has(moments).tolist() == [True, True, False, False]
    assert Removed(ts=1, column="day", values=("2026-01-31",), text=True).has(days).tolist() == [False, True, False, False]


def test_a_remainder_is_that_of_64_bits_with_a_sign() -> None:
    """HASH of TiDB and MySQL."""
    large = pa.array([Decimal(n) for n in (2**63 - 1, 2**63, 2**64 - 7, 2**64 - 1, 3)] + [None], pa.decimal128(20, 0))
    by_five = [Removed(ts=1, column="id", values=(str(n),), null=not n, modulus=5).has(large).tolist() for n in range(5)]
    assert [[n for n in range(5) if by_five[n][row]] for row in range(6)] == [[2], [3], [2], [1], [3], [0]]
    small = pa.array([-(2**63), -7, 7], pa.int64())
    assert Removed(ts=1, column="id", values=("2",), modulus=5).has(small).tolist() == [False, True, True]


def test_a_truncated_snapshot_keeps_only_later_rows() -> None:
    kind = KINDS["number"]
    base = table(kind.columns | VALUES | STAMP, [(1, "a", 1, 0.5, 5), (2, "b", 1, 0.5, 6), (3, "c", 1, 0.5, 7)])
    log = table(kind.columns | VALUES | META, [(3, "d", 1, 0.5, "UPDATE_AFTER", Decimal(11), 11, False, "t", 0, 0)])
    assert contents(BucketFold(base, log, rules(kind, emptied_ts=5))) == {(2, "b", 1, 0.5): 6, (3, "d", 1, 0.5): 11}
    assert contents(BucketFold(base, log, rules(None, emptied_ts=5).model_copy(update={"columns": ("id", *VALUES)}))) == {
        (2, "b", 1, 0.5): 6,
        (3, "c", 1, 0.5): 7,
        (3, "d", 1, 0.5): 11,
    }


@pytest.mark.parametrize("taken", [1, 1000])
def test_a_key_that_stands_twice_is_shown(taken: int) -> None:
    kind = KINDS["text and decimal"]
    columns = kind.columns | VALUES | STAMP
    twice, other = ("x", Decimal("1.50"), "a", 1, 0.5, 1), ("x", Decimal("2.50"), "a", 1, 0.5, 1)
    none = table(kind.columns | VALUES | META, [])
    for step in (1, 9):
        with pass_of(taken), pytest.raises(KeyTwice) as found:
            BucketFold(table(columns, [twice, other, twice], step), none, rules(kind))
        assert found.value.keys == ["{'a': 'x', 'b': Decimal('1.50')}"]
        assert len(contents(BucketFold(table(columns, [twice, other, twice], step, [2]), none, rules(kind)))) == 2


@MANY
@given(data=st.data(), step=st.integers(1, 40))
def test_merge_on_read_deletes_the_rows_of_changed_keys_and_reads_no_other_columns(data: st.DataObject, step: int) -> None:
    kind = KINDS["text and decimal"]
    rows, history = data.draw(histories(kind))
    width = len(kind.columns)
    base = table(kind.columns | VALUES | STAMP, [(*r, AFTER) for r in rows.values()], step)
    log = table(kind.columns | VALUES | META, [r for c in history for r in logged(c, width)], step)
    fold = BucketFold(base, log, rules(kind, merges=True))
    new = contents(fold)
    stays = [r for n, r in enumerate(rows.values()) if not fold.gone[n]]
    assert Counter([*stays, *new]) == Counter(folded(rows, in_window(history, AFTER, UNTIL), tuple(range(width))).values())
    assert {columns for _, columns in base.reads} <= {tuple(kind.columns)}
    changed = {r[:width] for c in in_window(history, AFTER, UNTIL) for r in (c.before, c.after) if r is not None}
    assert {k for n, k in enumerate(rows) if fold.gone[n]} <= changed


def test_pieces_that_hold_no_changed_key_are_not_read_for_a_merge() -> None:
    kind = KINDS["number"]
    base = table(kind.columns | VALUES | STAMP, [(n, "a", 1, 0.5, 1) for n in range(30)], 10)
    log = table(kind.columns | VALUES | META, [(n, "b", 1, 0.5, "UPDATE_AFTER", Decimal(11), 11, False, "t", 0, n) for n in (12, 40)])
    fold = BucketFold(base, log, rules(kind, merges=True))
    assert [first for first, _ in base.reads] == [10]
    assert np.flatnonzero(fold.gone).tolist() == [12]


def test_a_delete_beside_a_row_that_came_with_its_key_alone_is_the_other_half_of_an_update() -> None:
    kind = KINDS["number"]
    base = table(kind.columns | VALUES | STAMP, [(n, "a", n, 0.5, AFTER) for n in range(3)])

    def logs(*changes: tuple[int, str, int]) -> list[Cells]:
        return [
            (key, None, None, None, op, Decimal(100 * ts + n), ts, op != "DELETE", "t", 0, n) for n, (key, op, ts) in enumerate(changes)
        ]

    log = logs((0, "DELETE", 12), (0, "INSERT", 12), (1, "DELETE", 12), (1, "INSERT", 13), (2, "UPDATE_AFTER", 13))
    fold = BucketFold(base, table(kind.columns | VALUES | META, log), rules(kind, partial=True))
    assert contents(fold) == {(0, "a", 0, 0.5): 12, (1, None, None, None): 13, (2, "a", 2, 0.5): 13}
