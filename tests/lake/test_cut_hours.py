"""Which cut counts for an hour: the newest one that no rollback undid, and whether a redo replaced it."""

from __future__ import annotations

from pathlib import Path

from tests.lake import lakes
from tidelake.io.storage import open_store
from tidelake.lake.cut import Cut
from tidelake.lake.cut_hours import changed_hours, cuts_by_hour
from tidelake.lake.cuts import record

TEN, ELEVEN, TWELVE, ONE = (f"2026-01-05T{h}" for h in (10, 11, 12, 13))


class History:
    """Cuts that are published one after another. by_hour, changed: what the functions return after the last one."""

    def __init__(self, folder: Path) -> None:
        self._catalog, self._store, self._seq = lakes.catalog(folder), open_store(str(folder / "lake")), 0

    def publish(self, hour: str, parent: int | None = None, skipped: int = 0) -> None:
        """Publish the next cut. parent: of a redo or a rollback; skipped: number of attempts that were abandoned before."""
        self._seq += 1 + skipped
        cut = Cut(
            feed="shop",
            seq=self._seq,
            parent_seq=parent,
            hour=hour,
            applied_ts=0,
            resolved_ts=self._seq,
            run=f"run_{self._seq}_1",
            version="0",
        )
        record(self._catalog, self._store, cut)

    @property
    def by_hour(self) -> dict[str, tuple[int, int | None]]:
        """Number of each hour's cut, and of the cut that replaced it."""
        found = cuts_by_hour(self._catalog, "shop")
        return {hour: (cut.seq, cut.superseded_by[0] if cut.superseded_by else None) for hour, cut in found.items()}

    @property
    def changed(self) -> list[str]:
        return changed_hours(self._catalog, "shop")


def test_a_feed_without_a_cut_has_no_hours(tmp_path: Path) -> None:
    history = History(tmp_path)
    assert (history.by_hour, history.changed) == ({}, [])


def test_a_redo_keeps_the_hours_that_it_replaces_and_a_redo_of_the_redo_counts_for_all(tmp_path: Path) -> None:
    history = History(tmp_path)
    for hour in (TEN, ELEVEN, TWELVE):
        history.publish(hour)
    assert (history.by_hour, history.changed) == ({TEN: (1, None), ELEVEN: (2, None), TWELVE: (3, None)}, [TWELVE])
    history.publish(TWELVE, parent=1)
    assert (history.by_hour, history.changed) == ({TEN: (1, None), ELEVEN: (2, 4), TWELVE: (4, None)}, [ELEVEN, TWELVE])
    history.publish(ONE)
    assert history.changed == [ONE]
    history.publish(ONE, parent=0)
    assert history.by_hour == {TEN: (1, 6), ELEVEN: (2, 6), TWELVE: (4, 6), ONE: (6, None)}
    assert history.changed == [TEN, ELEVEN, TWELVE, ONE]


def test_a_rollback_takes_away_the_hours_that_it_undoes_and_gives_back_those_that_a_redo_replaced(tmp_path: Path) -> None:
    history = History(tmp_path)
    for hour in (TEN, ELEVEN, TWELVE):
        history.publish(hour)
    history.publish(TEN, parent=1)
    assert (history.by_hour, history.changed) == ({TEN: (4, None)}, [TEN, ELEVEN, TWELVE])
    history.publish(TWELVE, parent=3)
    assert history.by_hour == {TEN: (1, None), ELEVEN: (2, None), TWELVE: (5, None)}
    history.publish(TWELVE, parent=1)  # a redo from 11 on
    assert history.by_hour == {TEN: (1, None), ELEVEN: (2, 6), TWELVE: (6, None)}
    history.publish(TWELVE, parent=5)  # a rollback to the cut before it
    assert (history.by_hour, history.changed) == ({TEN: (1, None), ELEVEN: (2, None), TWELVE: (7, None)}, [ELEVEN, TWELVE])


def test_a_number_that_was_abandoned_is_no_redo(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.publish(TEN)
    history.publish(ELEVEN, skipped=1)
    assert (history.by_hour, history.changed) == ({TEN: (1, None), ELEVEN: (3, None)}, [ELEVEN])
