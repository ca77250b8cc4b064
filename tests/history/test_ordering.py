"""The rules of order against naive ones written here: pairwise comparisons, a search per key, and an upstream that is a dict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelake.errors import Coordinates, OrderError
from tidelake.history.ordering import (
    RowCells,
    RowChange,
    check_progress,
    deduplicated,
    exchanged,
    fold,
    fold_multiset,
    in_window,
    ordered,
    resolved_ts,
)

OPS = ("delete", "update", "insert", "upsert")
FIRST, SECOND = Coordinates("shop", 0), Coordinates("shop", 1)


def change(op: str, ts: int, key: int | None, offset: int, *, value: str = "v", partition: int = 0, replay_epoch: int = 0) -> RowChange:
    """A change of row (key, value); of a table without a key where key is None."""
    row: RowCells = (value,) if key is None else (key, value)
    return RowChange(
        table="d.t",
        op=op,
        commit_ts=ts,
        at=("shop", partition, offset, 0),
        key=None if key is None else (key,),
        before=None if op in ("insert", "upsert") else row,
        after=None if op == "delete" else row,
        replay_epoch=replay_epoch,
    )


@st.composite
def deliveries(draw: st.DrawFn, keyed: bool = True) -> list[RowChange]:
    """Changes of few keys at few ts, so that copies are frequent, in any order and at coordinates of their own."""
    places = draw(
        st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 9), st.integers(0, 2)), unique=True, max_size=24)
    )
    out = []
    for at in places:
        op, ts, key = draw(st.sampled_from(OPS)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
        made = change(op, ts, key if keyed else None, 0, value=draw(st.sampled_from("xy")), replay_epoch=draw(st.integers(0, 2)))
        out.append(replace(made, at=at, table=draw(st.sampled_from(["d.t", "d.u"]))))
    return out


# copies


def naive_class(op: str) -> str:
    return "insert" if op == "upsert" else op


def same_change(a: RowChange, b: RowChange) -> bool:
    """Whatever their contents and wherever they came from."""
    return a.table == b.table and a.key == b.key and a.commit_ts == b.commit_ts and naive_class(a.op) == naive_class(b.op)


@given(deliveries())
def test_of_equal_changes_the_one_with_the_lowest_coordinates_stays(changes: list[RowChange]) -> None:
    lowest = [c for c in changes if not any(same_change(c, d) and d.at < c.at for d in changes)]
    assert sorted(deduplicated(changes), key=lambda c: c.at) == sorted(lowest, key=lambda c: c.at)


@given(deliveries(keyed=False))
def test_equal_rows_without_a_key_are_as_many_as_in_the_replay_epoch_that_has_most(changes: list[RowChange]) -> None:
    wanted = []
    for content in {(c.table, c.op, c.commit_ts, c.before, c.after) for c in changes}:
        alike = sorted((c for c in changes if (c.table, c.op, c.commit_ts, c.before, c.after) == content), key=lambda c: c.at)
        replay_epochs = [[c for c in alike if (*c.at[:2], c.replay_epoch) == s] for s in {(*c.at[:2], c.replay_epoch) for c in alike}]
        for n in range(max(map(len, replay_epochs))):
            wanted.append(min((s[n] for s in replay_epochs if len(s) > n), key=lambda c: c.at))
    assert sorted(deduplicated(changes), key=lambda c: c.at) == sorted(wanted, key=lambda c: c.at)


@given(deliveries() | deliveries(keyed=False), st.randoms())
def test_copies_are_found_whatever_order_they_arrive_in_and_only_once(changes: list[RowChange], chance: object) -> None:
    once = deduplicated(changes)
    shuffled = list(changes)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert deduplicated(shuffled) == once


@pytest.mark.parametrize("other", [{"table": "d.u"}, {"key": (8,)}, {"commit_ts": 9}, {"op": "update"}])
def test_what_differs_in_table_key_ts_or_class_is_another_change(other: dict[str, object]) -> None:
    first = change("insert", 5, 7, 1)
    second = replace(first, at=("shop", 0, 2, 0), **other)  # type: ignore[arg-type]
    assert deduplicated([first, second]) == [first, second]


def test_of_a_whole_and_a_partial_copy_the_whole_one_stays() -> None:
    whole = change("insert", 5, 7, 2)
    assert deduplicated([replace(whole, at=("shop", 0, 1, 0), after=(7, None), partial=True), whole]) == [whole]


def test_a_copy_with_other_contents_is_still_a_copy() -> None:
    assert deduplicated([change("insert", 5, 7, 2, value="late"), change("insert", 5, 7, 1)]) == [change("insert", 5, 7, 1)]


def test_an_insert_and_an_upsert_of_one_key_at_one_ts_are_one_change() -> None:
    assert [c.op for c in deduplicated([change("upsert", 5, 7, 2), change("insert", 5, 7, 1)])] == ["insert"]


def test_equal_rows_of_one_replay_epoch_are_all_kept_where_there_is_no_key() -> None:
    both = [change("insert", 5, None, 1), change("insert", 5, None, 2)]
    assert deduplicated(both) == both


def test_a_replay_epoch_that_a_crash_cut_short_is_filled_by_its_repeat() -> None:
    cut = [change("insert", 5, None, 1)]
    again = [change("insert", 5, None, 2, replay_epoch=1), change("insert", 5, None, 3, replay_epoch=1)]
    assert [c.at[2] for c in deduplicated(cut + again)] == [1, 3]


# order


def must_follow(a: RowChange, b: RowChange) -> bool:
    """Whether a comes after b, by every rule in turn."""
    if a.commit_ts != b.commit_ts:
        return a.commit_ts > b.commit_ts
    ranks = ["delete", "update", "insert"]
    if ranks.index(naive_class(a.op)) != ranks.index(naive_class(b.op)):
        return ranks.index(naive_class(a.op)) > ranks.index(naive_class(b.op))
    return a.at > b.at


@given(deliveries())
def test_no_change_stands_before_one_that_it_must_follow(changes: list[RowChange]) -> None:
    found = ordered(changes)
    assert sorted(found, key=lambda c: c.at) == sorted(changes, key=lambda c: c.at)
    assert not any(must_follow(earlier, later) for earlier, later in combinations(found, 2))


def test_at_one_ts_a_key_is_deleted_before_it_is_updated_and_inserted() -> None:
    changes = [change(op, 5, 7, offset) for offset, op in enumerate(["insert", "update", "delete"])]
    assert [c.op for c in ordered(changes)] == ["delete", "update", "insert"]


# folding


def last_word(base: dict[RowCells, RowCells], changes: list[RowChange], key: RowCells) -> RowCells | None:
    """A key's row: what the last change that speaks of the key leaves there."""
    for c in reversed(changes):
        if c.after is not None and c.after[:1] == key:
            return c.after
        if c.before is not None and c.before[:1] == key:
            return None
    return base.get(key)


@given(deliveries(), st.dictionaries(st.integers(1, 3).map(lambda k: (k,)), st.just("base")))
def test_a_keyed_table_holds_what_the_last_change_of_every_key_left(changes: list[RowChange], base: dict[RowCells, str]) -> None:
    start: dict[RowCells, RowCells] = {key: (*key, value) for key, value in base.items()}
    line = ordered(deduplicated(changes))
    found = fold(start, line, (0,))
    every = {*start, *((n,) for n in range(1, 4))}
    assert found == {key: row for key in every if (row := last_word(start, line, key)) is not None}
    assert start == {key: (*key, value) for key, value in base.items()}


def test_an_update_that_moves_a_row_leaves_nothing_under_its_old_key() -> None:
    moved = RowChange(table="d.t", op="update", commit_ts=5, at=("shop", 0, 1, 0), key=(8,), before=(7, "a"), after=(8, "b"))
    assert fold({(7,): (7, "a"), (9,): (9, "c")}, [moved], (0,)) == {(8,): (8, "b"), (9,): (9, "c")}


def test_two_rows_may_exchange_their_keys_at_one_ts() -> None:
    there, back = change("update", 2, 2, 0), change("update", 2, 1, 1)
    moved = [replace(there, before=(1, "a"), after=(2, "a")), replace(back, before=(2, "b"), after=(1, "b"))]
    assert fold({(1,): (1, "a"), (2,): (2, "b")}, moved, (0,)) == {(1,): (1, "b"), (2,): (2, "a")}


def test_a_key_may_be_of_several_columns_in_another_order() -> None:
    insert = RowChange(table="d.t", op="insert", commit_ts=5, at=("shop", 0, 1, 0), key=("x", 1), after=(1, "v", "x"))
    assert fold({}, [insert], (2, 0)) == {("x", 1): (1, "v", "x")}


def partial(op: str, ts: int, key: int, offset: int) -> RowChange:
    """A change with only their key sent."""
    row: RowCells = (key, None)
    made = change(op, ts, key, offset)
    return replace(made, before=made.before and row, after=made.after and row, partial=True)


def test_a_partial_row_keeps_what_is_known_of_it_and_is_unknown_otherwise() -> None:
    base: dict[RowCells, RowCells] = {(7,): (7, "a"), (8,): (8, "b"), (9,): (9, "c")}
    sent = [partial("update", 5, 7, 1), partial("delete", 5, 8, 2), partial("insert", 6, 8, 3), partial("insert", 5, 4, 4)]
    assert fold(base, ordered(sent), (0,)) == {(7,): (7, "a"), (8,): (8, None), (9,): (9, "c"), (4,): (4, None)}


def test_a_split_update_of_which_the_key_was_sent_keeps_what_is_known() -> None:
    split = [partial("insert", 5, 7, 1), partial("delete", 5, 7, 2)]
    assert fold({(7,): (7, "a")}, ordered(split), (0,)) == {(7,): (7, "a")}


def test_an_update_and_its_split_into_delete_and_insert_end_in_the_same_row() -> None:
    update = RowChange(table="d.t", op="update", commit_ts=5, at=("shop", 0, 1, 0), key=(7,), before=(7, "a"), after=(7, "b"))
    split = [
        replace(update, op="insert", before=None, at=("shop", 0, 2, 0)),
        replace(update, op="delete", after=None, at=("shop", 0, 3, 0)),
    ]
    for sent in ([update], split, [*split, update], [update, *split]):
        assert fold({(7,): (7, "a")}, ordered(deduplicated(sent)), (0,)) == {(7,): (7, "b")}


def test_a_multiset_counts_and_never_goes_below_nothing() -> None:
    changes = [
        change("insert", 1, None, 1),
        change("insert", 1, None, 2),
        change("delete", 2, None, 3),
        change("delete", 2, None, 4, value="w"),
    ]
    assert fold_multiset(Counter({("v",): 1}), changes) == Counter({("v",): 2})


# an upstream, and a changefeed that crashes and repeats


@st.composite
def upstreams(draw: st.DrawFn, keyed: bool) -> tuple[list[RowChange], dict[int, Counter[RowCells]]]:
    """What one partition got, in order, repeats included; and the table's rows after every commit ts."""
    rows: Counter[RowCells] = Counter()
    truth: dict[int, Counter[RowCells]] = {0: Counter()}
    sent: list[list[RowChange]] = []
    for ts in range(1, draw(st.integers(1, 8)) + 1):
        transaction: list[RowChange] = []
        touched: set[RowCells] = set()
        for _ in range(draw(st.integers(1, 3))):
            key, value = draw(st.integers(1, 3)), draw(st.sampled_from("xyz"))
            new: RowCells = (key, value) if keyed else (value,)
            old = next((row for row in rows if row[0] == new[0]), None)
            if keyed and (new[:1] in touched or old == new):
                continue  # a transaction changes a row once
            delete = old is not None and draw(st.booleans())
            op = "delete" if delete else "update" if keyed and old else "insert"
            rows.subtract([old] if old and op != "insert" else [])
            rows.update([] if delete else [new])
            rows = +rows
            touched.add(new[:1])
            before, after = (None if op == "insert" else old), (None if delete else new)
            transaction.append(
                RowChange(table="d.t", op=op, commit_ts=ts, at=("", 0, 0, 0), key=new[:1] if keyed else None, before=before, after=after)
            )
        sent.append(sorted(transaction, key=lambda c: OPS.index(c.op)))
        truth[ts] = Counter(rows)
    return draw(crashing(sent)), truth


@st.composite
def crashing(draw: st.DrawFn, sent: list[list[RowChange]]) -> list[RowChange]:
    """The transactions as delivered by a changefeed that stops anywhere, and goes on from the start of an earlier transaction."""
    out: list[RowChange] = []
    start = 0
    for replay_epoch in range(draw(st.integers(0, 2))):
        flat = [c for transaction in sent[start:] for c in transaction]
        out += [replace(c, replay_epoch=replay_epoch) for c in flat[: draw(st.integers(0, len(flat)))]]
        reached = {c.commit_ts for c in out}
        start = draw(st.integers(0, max(0, len(reached) - 1)))
    out += [replace(c, replay_epoch=9) for transaction in sent[start:] for c in transaction]
    return [replace(c, at=("shop", 0, offset, 0)) for offset, c in enumerate(out)]


def windows(delivered: list[RowChange], ends: set[int]) -> Iterator[tuple[int, list[RowChange]]]:
    """The changes of window after window, each given everything that was ever delivered."""
    applied = 0
    for end in sorted(ends):
        yield end, ordered(deduplicated(in_window(delivered, applied, end)))
        applied = end


@settings(max_examples=200)
@given(upstreams(keyed=True), st.sets(st.integers(1, 8)))
def test_a_keyed_table_equals_the_upstream_at_every_cut(made: tuple[list[RowChange], dict[int, Counter[RowCells]]], cuts: set[int]) -> None:
    delivered, truth = made
    table: dict[RowCells, RowCells] = {}
    for end, line in windows(delivered, cuts & truth.keys()):
        table = fold(table, line, (0,))
        assert Counter(table.values()) == truth[end]


@settings(max_examples=300)
@given(upstreams(keyed=True), st.sets(st.integers(1, 8)), st.sets(st.tuples(st.integers(1, 3), st.integers(1, 8))), st.booleans())
def test_a_table_with_partial_rows_holds_the_last_cells_that_were_sent(
    made: tuple[list[RowChange], dict[int, Counter[RowCells]]], cuts: set[int], unsent: set[tuple[int, int]], split: bool
) -> None:
    """unsent: (key, commit ts) of changes of which only the key is sent."""
    delivered, truth = made
    sent = [c if (c.key[0], c.commit_ts) not in unsent else _unsent(c) for c in delivered if c.key is not None]
    if split:
        sent = [replace(h, at=(*h.at[:3], n)) for c in sent for n, h in enumerate(_halves(c))]
    table: dict[RowCells, RowCells] = {}
    for end, line in windows(sent, cuts & truth.keys()):
        table = fold(table, line, (0,))
        assert table == _known(truth, unsent, end)


def _unsent(c: RowChange) -> RowChange:
    return replace(c, before=c.before and (c.before[0], None), after=c.after and (c.after[0], None), partial=True)


def _halves(c: RowChange) -> list[RowChange]:
    return [replace(c, op="insert", before=None), replace(c, op="delete", after=None)] if c.op == "update" else [c]


def _known(truth: dict[int, Counter[RowCells]], unsent: set[tuple[int, int]], end: int) -> dict[RowCells, RowCells]:
    """What can be known of the upstream's rows: of a row that changed unsent, what was known of it before."""
    known: dict[RowCells, RowCells] = {}
    rows: dict[RowCells, RowCells] = {}
    for ts in range(1, end + 1):
        now = {row[:1]: row for row in truth[ts]}
        for key in {*rows, *now}:
            if key not in now:
                known.pop(key, None)
            elif rows.get(key) != now[key]:
                known[key] = known.get(key, (*key, None)) if (*key, ts) in unsent else now[key]
        rows = now
    return known


@settings(max_examples=200)
@given(upstreams(keyed=False), st.sets(st.integers(1, 8)))
def test_a_multiset_equals_the_upstream_at_every_cut(made: tuple[list[RowChange], dict[int, Counter[RowCells]]], cuts: set[int]) -> None:
    delivered, truth = made
    table: Counter[RowCells] = Counter()
    for end, line in windows(delivered, cuts & truth.keys()):
        table = fold_multiset(table, line)
        assert table == truth[end]


def test_an_exchange_swaps_a_partition_with_a_whole_table() -> None:
    partitioned, other = {(1,): (1, "p"), (11,): (11, "p")}, {(1,): (1, "t"), (2,): (2, "t")}
    found = exchanged(partitioned, other, lambda row: int(str(row[0])) < 10)
    assert found == ({(11,): (11, "p"), (1,): (1, "t"), (2,): (2, "t")}, {(1,): (1, "p")})
    with pytest.raises(OrderError, match=r"rows that do not belong to the partition: 1, the first: \(11, 'p'\)"):
        exchanged({}, partitioned, lambda row: row[0] == 1)


# windows


def test_a_window_takes_rows_after_what_was_applied_up_to_and_including_the_resolved_ts() -> None:
    changes = [change("insert", ts, ts, ts) for ts in range(1, 7)]
    assert [c.commit_ts for c in in_window(changes, 2, 5)] == [3, 4, 5]
    assert in_window(changes, 5, 5) == []


@given(st.dictionaries(st.builds(Coordinates, st.sampled_from("ab"), st.integers(0, 3)), st.integers(0, 1 << 62), min_size=1))
def test_the_resolved_ts_is_the_lowest_of_all_partitions(watermarks: dict[Coordinates, int]) -> None:
    found = resolved_ts(watermarks)
    assert found in watermarks.values()
    assert not any(ts < found for ts in watermarks.values())


def test_a_partition_that_never_spoke_is_named() -> None:
    with pytest.raises(OrderError) as error:
        resolved_ts({FIRST: 5, SECOND: None, Coordinates("b", 2): None})
    assert (error.value.code, error.value.exit_code) == ("NO_WATERMARK", 3)
    assert error.value.message == "no resolved ts was ever seen in shop[1], b[2]"


def test_a_feed_without_partitions_has_no_resolved_ts() -> None:
    with pytest.raises(OrderError, match="no resolved ts was ever seen in any partition"):
        resolved_ts({})


def test_a_resolved_ts_of_0_counts() -> None:
    assert resolved_ts({FIRST: 0, SECOND: 5}) == 0


def test_a_resolved_ts_behind_what_is_published_is_refused_and_an_equal_one_is_not() -> None:
    check_progress(5, 5)
    check_progress(5, 6)
    with pytest.raises(OrderError) as error:
        check_progress(6 << 18, 5 << 18)
    assert (error.value.code, error.value.exit_code) == ("WENT_BACK", 3)
    assert "is before" in error.value.message
