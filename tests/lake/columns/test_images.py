"""Old values that do not match: sums of hashes, and which changes they are, against counting and looking at rows in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake.columns.fold_tables import AFTER, KINDS, META, UNTIL, VALUES, Cells, Kind, histories, logged, table
from tests.searches import examples
from tidelake.history.ordering import in_window
from tidelake.lake.columns import survivors
from tidelake.lake.columns.fold import BucketFold, ImageResult
from tidelake.lake.columns.fold_rules import ComparedImages, FoldRules

STAMP = {"_commit_ts": META["_commit_ts"]}
NEW = ("INSERT", "UPDATE_AFTER")


def compared(
    kind: Kind, base: Sequence[Cells], log: Sequence[Cells], images: ComparedImages, step: int, merges: bool = False
) -> ImageResult:
    key = tuple(kind.columns)
    rules = FoldRules(columns=(*key, *VALUES), key=key, after_ts=AFTER, until_ts=UNTIL, images=images, merges=merges)
    fold = BucketFold(table(kind.columns | VALUES | STAMP, base, step), table(kind.columns | VALUES | META, log, step), rules)
    for _ in fold.rows():
        pass
    found = fold.images()
    assert found is not None
    return found


def counted(kind: Kind, base: dict[Cells, Cells], log: Sequence[Cells], thin: bool) -> tuple[int, set[Cells]]:
    """(keys compared, those that do not come out), by counting rows."""
    width, wide = len(kind.columns), len(kind.columns) + len(VALUES)
    many, suspects = 0, set[Cells]()
    for key in {r[:width] for r in log}:
        mine = [r for r in log if r[:width] == key]
        kinds = Counter(r[wide] for r in mine)
        news = [r for r in mine if r[wide] != "UPDATE_BEFORE"]
        if not news or kinds["UPDATE_AFTER"] != kinds["UPDATE_BEFORE"]:
            continue
        last = max(news, key=lambda r: r[wide + 1])
        left = Counter([base[key]] if key in base else [])
        for r in mine:
            left[r[:wide]] += 1 if r[wide] in NEW else -1
        left = Counter({row: n for row, n in left.items() if n})
        if last[wide] != "DELETE":
            left[last[:wide]] -= 1
        rows = (key in base) + kinds["INSERT"] - kinds["DELETE"]
        wrong = rows != (last[wide] != "DELETE") if thin and kinds["DELETE"] else any(left.values())
        suspects |= {key} if wrong else set()
        many += 1
    return many, suspects


def judged(kind: Kind, base: dict[Cells, Cells], log: Sequence[Cells], key: Cells, thin: bool) -> Iterator[tuple[Decimal, str, list[str]]]:
    """(number of a change, what is wrong with it, columns) of a key, commit by commit."""
    width, wide = len(kind.columns), len(kind.columns) + len(VALUES)
    names = [*kind.columns, *VALUES]
    mine = sorted((r for r in log if r[:width] == key), key=lambda r: r[wide + 1])
    was = base.get(key)
    for _, rows in groupby(mine, key=lambda r: r[wide + 2]):
        together = list(rows)
        made, freed = any(r[wide] == "INSERT" for r in together), any(r[wide] not in NEW for r in together)
        for r in together:
            if r[wide] == "INSERT" and was is not None and not freed:
                yield r[wide + 1], "duplicate_inserts", []
            if r[wide] in NEW:
                continue
            if was is None:
                yield from [] if made else [(r[wide + 1], "missing", [])]
            elif (
                r[:wide] != was and not any(x[wide] in NEW and x[:wide] == r[:wide] for x in together) and (r[wide] != "DELETE" or not thin)
            ):
                yield r[wide + 1], "differs", [n for n, a, b in zip(names, r, was, strict=False) if a != b]
        for r in together:
            if r[wide] != "UPDATE_BEFORE":
                was = None if r[wide] == "DELETE" else r[:wide]


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=examples(150), deadline=None)
@given(data=st.data(), thin=st.booleans(), step=st.integers(1, 40), taken=st.sampled_from([2, 1000]), merges=st.booleans())
def test_changes_that_do_not_match_the_row_before_them_are_found(
    name: str, data: st.DataObject, thin: bool, step: int, taken: int, merges: bool
) -> None:
    kind = KINDS[name]
    rows, history = data.draw(histories(kind))
    width, wide = len(kind.columns), len(kind.columns) + len(VALUES)
    log = [r for c in in_window(history, AFTER, UNTIL) for r in logged(c, width)]
    log = list({r[wide + 1]: r for r in log}.values())
    images = ComparedImages(columns=(*kind.columns, *VALUES), share=1, key_only_deletes=thin)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(survivors, "PASS_ROWS", taken)
        found = compared(kind, [(*r, AFTER) for r in rows.values()], log, images, step, merges)
    many, suspects = counted(kind, rows, log, thin)
    assert (found.compared, found.suspects) == (many, len(suspects))
    wanted = sorted(f for key in suspects for f in judged(kind, rows, log, key, thin))
    assert found.found.counts == dict(Counter(code for _, code, _ in wanted))
    assert found.found.columns == dict(Counter(c for _, _, columns in wanted for c in columns))
    assert [n for n, _ in found.found.examples] == [int(n) for n, _, _ in wanted[:5]]


def test_a_finding_says_where_it_is_and_both_values() -> None:
    kind = KINDS["text and decimal"]
    key = ("x", Decimal("1.50"))
    log = [
        (*key, "lost", 1, 0.5, "UPDATE_BEFORE", Decimal(120), 12, False, "t", 3, 17),
        (*key, "new", 2, 0.5, "UPDATE_AFTER", Decimal(121), 12, False, "t", 3, 17),
        ("y", None, "a", 1, None, "DELETE", Decimal(130), 13, False, None, None, None),
    ]
    images = ComparedImages(columns=("a", "b", "v", "n", "d"), share=1, key_only_deletes=False)
    found = compared(kind, [(*key, "a" * 99, None, 0.5, AFTER)], log, images, 2)
    assert found.found.examples == [
        (120, f"a=x, b=1.50 at t[3]@17: v was lost, here {'a' * 80}; n was 1, here NULL"),
        (130, "a=y, b=NULL at an exchange of partitions: delete of a row that does not exist in the lake"),
    ]


def test_a_sample_compares_about_its_share_of_the_keys() -> None:
    kind = KINDS["number"]
    base = [(n, "a", 1, 0.5, AFTER) for n in range(4000)]
    log = [(n, "x", 1, 0.5, "DELETE", Decimal(120 + n), 12, False, "t", 0, n) for n in range(4000)]
    images = ComparedImages(columns=("id", "v", "n", "d"), share=16, key_only_deletes=False)
    found = compared(kind, base, log, images, 1000)
    assert 180 < found.compared < 320
    assert found.suspects == found.compared == found.found.counts["differs"] == found.found.columns["v"]


def test_where_no_column_is_compared_rows_are() -> None:
    kind = KINDS["number"]
    images = ComparedImages(columns=(), share=1, key_only_deletes=False)
    log = [(n, "x", 1, 0.5, "DELETE", Decimal(120 + n), 12, False, "t", 0, n) for n in range(3)]
    found = compared(kind, [(n, "a", 1, 0.5, AFTER) for n in range(2)], log, images, 2)
    assert (found.compared, found.suspects, found.found.counts) == (3, 1, {"missing": 1})
