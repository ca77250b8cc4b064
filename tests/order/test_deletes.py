"""Deletes without commit ts get the ts of the row before them, in the first delivery of a partition's rows (docs/architecture.md 8.2)."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.searches import examples
from tidelake.order.arrow.deletes import MARKS, DeleteRules, births, place
from tidelake.order.arrow.table_models import SentName


class Mark(NamedTuple):
    """A row of one partition. ts: None for a delete; content: 0 for a delete."""

    ts: int | None
    content: int = 0
    sent_ms: int = 1
    table: str = "k"


def rules(
    after: int = 10, until: int = 20, applied_ms: int | None = None, resolved_ms: int = 100, born: tuple[SentName, ...] = ()
) -> DeleteRules:
    return DeleteRules(after_ts=after, until_ts=until, applied_at_ms=applied_ms, resolved_at_ms=resolved_ms, born=born)


def placed(rows: list[Mark], r: DeleteRules) -> list[tuple[int, int, bool]]:
    """(offset, commit ts, unsettled) of each delete of the window; offsets count the rows."""
    born = births(pa.table({"database": ["d"] * len(rows), "table": pa.array([m.table for m in rows], pa.string())}), r)
    cells = [
        {
            "offset": n,
            "ordinal": 0,
            "commit_ts": m.ts,
            "timestamp_ms": m.sent_ms,
            "born": int(born[n]),
            "content": m.content,
            "deletes": m.ts is None,
        }
        for n, m in enumerate(rows)
    ]
    found = place(pa.Table.from_pylist(cells[::-1], schema=MARKS), r)
    return sorted((x["offset"], x["commit_ts"], x["unsettled"]) for x in found.to_pylist())


def specified(rows: list[Mark], r: DeleteRules) -> list[tuple[int, int, bool]]:
    """What `placed` returns, row by row."""
    epochs, epoch, last, seen = [], 0, -1, set[int]()
    for m in rows:
        if m.ts is not None:
            if m.ts < last or (m.ts == last and m.content in seen):
                epoch += 1
            seen = (seen if m.ts == last else set()) | {m.content}
            last = m.ts
        epochs.append(epoch)
    out = []
    for n, m in enumerate(rows):
        if m.ts is not None:
            continue
        before = next(((x.ts, epochs[i]) for i, x in reversed([*enumerate(rows[:n])]) if x.ts is not None), None)
        after = next(((x.ts, epochs[i]) for i, x in enumerate(rows) if i > n and x.ts is not None), None)
        lower = (before[0] if before else 0) or 0
        if before and after and before[1] != after[1]:
            continue  # between two deliveries
        if after and (after[0] or 0) <= r.after_ts:
            continue  # an earlier window has it
        if r.applied_at_ms is not None and m.sent_ms <= r.applied_at_ms and lower <= r.after_ts:
            continue  # the checkpoint of an earlier cut covers it
        if m.sent_ms > r.resolved_at_ms or lower > r.until_ts:
            continue  # a later window has it
        late = after is None or (after[0] or 0) > r.until_ts
        out.append((n, max(lower, r.after_ts + 1), late and m.sent_ms > r.until_ts >> 18))
    return out


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([Mark(12, 1), Mark(None), Mark(15, 2)], [(1, 12, False)]),
        ([Mark(None), Mark(15, 2)], [(0, 11, False)]),
        ([Mark(12, 1), Mark(None)], [(1, 12, True)]),
        ([Mark(5, 1), Mark(None), Mark(9, 2)], []),
        ([Mark(12, 1), Mark(15, 2), Mark(None), Mark(12, 1), Mark(15, 2)], []),
        ([Mark(12, 1), Mark(None), Mark(12, 1), Mark(None), Mark(15, 2)], [(3, 12, False)]),
        ([Mark(25, 1), Mark(None)], []),
        ([Mark(12, 1), Mark(None, sent_ms=101)], []),
    ],
    ids=[
        "between",
        "first",
        "last",
        "before the window",
        "between deliveries",
        "after a repeat",
        "after the window",
        "after the checkpoint",
    ],
)
def test_a_delete_lies_between_its_neighbours(rows: list[Mark], said: list[tuple[int, int, bool]]) -> None:
    assert placed(rows, rules()) == said


def test_a_checkpoint_of_the_last_cut_covers_what_was_sent_before_it() -> None:
    rows = [Mark(9, 1), Mark(None, sent_ms=50), Mark(None, sent_ms=60)]
    assert placed(rows, rules(applied_ms=50)) == [(2, 11, True)]


def test_a_delete_of_a_young_name_comes_after_its_statement() -> None:
    born = tuple(SentName(database="d", table=t, after_ts=ts, until_ts=None) for t, ts in (("k", 14), ("k", 12), ("other", 17), ("k", 30)))
    assert placed([Mark(None), Mark(None, table="m")], rules(born=born)) == [(0, 15, True), (1, 11, True)]


MARK = st.builds(Mark, st.one_of(st.none(), st.integers(5, 30)), st.integers(1, 3), st.integers(1, 120))


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(MARK, max_size=14), st.one_of(st.none(), st.integers(1, 120)))
def test_places_are_those_of_the_rule_row_by_row(rows: list[Mark], applied: int | None) -> None:
    assert placed(rows, rules(applied_ms=applied)) == specified(rows, rules(applied_ms=applied))


def test_of_many_rows_none_is_looked_at_alone() -> None:
    rows = [Mark(12 + n // 3 if n % 3 else None, n) for n in range(30)]
    assert placed(rows, rules(until=40)) == specified(rows, rules(until=40))
