"""Merge-on-read: which windows take it, and that nothing but files tells it from rewriting."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compact.large_tables import AFTER, CHANGES, ROWS, first, window
from tests.lake.histories import row, rows_of
from tests.lake.windows import KV, opened, table
from tidelake.compact.merge import LARGE, MOST_KEYS, MergeChoice, choose
from tidelake.config.feed import TablePolicy
from tidelake.config.policy import Policy
from tidelake.lake.cut import TableCounts


class _Table:
    """As much of a table as the choice looks at."""

    def __init__(self, rows: int, deleted: int = 0) -> None:
        self._summary = {"total-records": str(rows + deleted), "total-position-deletes": str(deleted)}

    def summary(self, snapshot_id: int) -> dict[str, str]:
        return self._summary


@pytest.mark.parametrize(
    ("rows", "deleted", "share", "counts", "merges", "why"),
    [
        (LARGE, 0, 1, {"updates": 3}, True, "merge-on-read: 3 keys change in 2,000,000 rows"),
        (LARGE - 1, 0, 1, {"updates": 3}, False, "1,999,999 rows are few enough to rewrite"),
        (LARGE, 0, 0.5, {"updates": 3}, False, "1,000,000 rows are few enough to rewrite"),
        (9_999, 0, 1, {"updates": 3}, False, ""),
        (LARGE, 0, 1, {"deletes": LARGE // 20, "inserts": 9}, True, "merge-on-read: 100,009 keys change in 2,000,000 rows"),
        (LARGE, 0, 1, {"upserts": LARGE // 20 + 1}, False, "100,001 keys change in 2,000,000 rows, too many to merge on read"),
        (LARGE, 99_998, 1, {"updates": 3}, False, "3 keys change in 2,000,000 rows of which 99,998 are deleted by position, too many to"),
        (LARGE, 0, 1, {"inserts": MOST_KEYS}, True, "merge-on-read: 500,000 keys change in 2,000,000 rows"),
        (LARGE, 0, 1, {"updates": 1, "key_changes": 1, "inserts": MOST_KEYS}, False, "500,002 keys change in 2,000,000 rows, too many"),
        (LARGE, 0, 1, {"exchanged_out": LARGE // 20, "exchanged_in": 9}, True, "merge-on-read: 100,009 keys change in 2,000,000 rows"),
        (LARGE, 0, 1, {"exchanged_out": LARGE // 20 + 1}, False, "100,001 keys change in 2,000,000 rows, too many to merge on read"),
        (LARGE, 0, 1, {"updates": 3, "partial": 1}, False, ""),
        (LARGE, 0, 1, None, False, ""),
    ],
)
def test_the_choice_follows_from_counts(
    rows: int, deleted: int, share: float, counts: dict[str, int] | None, merges: bool, why: str
) -> None:
    made: MergeChoice = choose(_Table(rows, deleted), 1, TableCounts(**counts) if counts is not None else None, share)  # type: ignore[arg-type]
    assert made.merges == merges
    assert made.why.startswith(why) if why else made.why == ""


@pytest.mark.usefixtures("small_hours", "forced")
@pytest.mark.parametrize("buckets", [1, 8])
def test_rows_are_deleted_by_position_until_there_are_many(buckets: int, tmp_path: Path) -> None:
    with opened(tmp_path, tables={"d.k": TablePolicy(buckets=buckets)}, policy=Policy(before_images="all")) as (made, lake):
        first(made, lake)
        cut, summary, proof = window(made, lake, CHANGES, 30)
        assert rows_of(lake, "d.k") == AFTER
        assert cut.snapshots["d.k@-1"].rows == AFTER.total() == proof["rows"]["d.k"]["rows_after"]
        assert proof["rows"]["d.k"]["written"].startswith("merge-on-read: 9 keys change in ")
        assert (summary["total-records"], summary["total-position-deletes"]) == ("44", "5")  # 5, 6, 7, 8 and 9 stood here
        assert proof["rows"]["d.k"]["before_images"] == {
            "compared": 7,
            "duplicate_inserts": 1,
            "examples": ["id=9 at t[0]@47: insert of a row that already exists"],
        }
        assert rows_of(lake, "d.k", 15) == table(*ROWS)
        assert rows_of(lake, "d.k", 22)[(("id", "7"), ("v", "a"))] == 1
        many = [row(0, "update", 40, KV, (str(n), "c"), (str(n), "a")) for n in range(10, 40)]
        cut, summary, proof = window(made, lake, many, 50)
        assert "are deleted by position, too many to merge on read" in proof["rows"]["d.k"]["written"]
        assert (cut.snapshots["d.k@-1"].rows, summary["total-records"], summary["total-position-deletes"]) == (39, "39", "0")
        assert rows_of(lake, "d.k", 30) == AFTER
