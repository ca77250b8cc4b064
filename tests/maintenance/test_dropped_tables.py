"""Dropped tables: they leave the cut with their changes, and nobody who reads a retained cut can tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.audit import stranger
from tests.audit.certified import audited, forged
from tests.lake.cheap import newest
from tests.lake.histories import Feeder, Message, ddl, publish, resolved, row, rows_of
from tests.lake.windows import KV, SQL, opened, table
from tidelake.config.retention import Maintenance
from tidelake.errors import ConfigError, OrderError
from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import read_certificate, read_cut
from tidelake.lake.cuts import changelog_retained_after
from tidelake.lake.opened import Lake
from tidelake.maintenance.maintain import Maintained, maintain
from tidelake.maintenance.maintenance_plan import MaintenancePlan
from tidelake.publish.rollback import rollback
from tidelake.query.changes import changes_of
from tidelake.tso import begin_ts, physical_ms

pytestmark = pytest.mark.usefixtures("small_hours")
KEEP = {"keep_cuts": "1d", "keep_daily": "4d", "keep_changelog": "2d", "small_files": 50}


BEGIN = datetime(2026, 1, 5, tzinfo=UTC)


def ts(day: float) -> int:
    """A TSO so many days after the beginning."""
    return begin_ts(BEGIN + timedelta(days=day))


class Days:
    """A feed with a cut a day: a row more in d.k each, and what is said beside it."""

    def __init__(self, made: Feeder, lake: Lake) -> None:
        self.made, self.lake, self.day = made, lake, 0

    def run(self, *messages: Message) -> Cut:
        """The next day."""
        self.day += 1
        self.made.stamp = physical_ms(ts(self.day))
        one = row(0, "insert", ts(self.day - 0.1), KV, (str(self.day), "x"))
        cut = publish(self.lake, self.made.add(self.lake, [*messages, one, *resolved(ts(self.day - 0.05))]))
        assert cut is not None
        return cut

    def maintained(self) -> Maintained:
        return maintain(self.lake, young=timedelta(days=-1))


@contextmanager
def days(folder: Path, sql: str = SQL, **settings: Any) -> Iterator[Days]:
    with opened(folder, sql, maintenance=Maintenance.model_validate(KEEP | settings)) as (made, lake):
        yield Days(made, lake)


def planned(d: Days) -> MaintenancePlan:
    """The plan of a maintenance that is carried out."""
    plan = d.maintained().plan
    assert plan is not None
    return plan


def created(day: float) -> list[Message]:
    """Table d.once, and a row in it."""
    at = ts(day)
    return [
        *ddl(at, "CREATE TABLE once (id BIGINT PRIMARY KEY, v VARCHAR(20))", table="once"),
        row(0, "insert", at + 1, KV, ("7", "o"), table="once"),
    ]


def dropped(day: float) -> list[Message]:
    return ddl(ts(day), "DROP TABLE once", table="once")


def five_days(d: Days) -> None:
    """Table d.once is created on the first and dropped on the second."""
    d.run(*created(0.2))
    d.run(*dropped(1.5))
    for _ in range(3):
        d.run()


def test_a_dropped_table_leaves_with_its_last_change_and_no_reader_of_a_retained_cut_can_tell(tmp_path: Path) -> None:
    with days(tmp_path) as d:
        lake = d.lake
        d.run(*created(0.2))
        d.run(*dropped(1.5))
        first = read_cut(lake.store, "shop", 1)
        (once,) = (i for i in first.catalog.incarnations if i.startswith("d.once@"))
        log, snapshot = first.changelogs[once].uuid, first.snapshots[once].uuid
        d.run()
        d.run()
        kept = planned(d)
        assert (kept.dropped, kept.leaving) == (1, {}), "day 2 is kept: a retained cut is in it"
        assert once in newest(lake).changelogs
        d.run()
        plan = maintain(lake, dry_run=True, young=timedelta(days=-1)).plan
        assert plan is not None
        assert (plan.dropped, plan.leaving) == (1, {once: "d.once"})
        assert once in newest(lake).catalog.incarnations, "a dry run changes nothing"
        d.maintained()
        cut = newest(lake)
        assert (once in cut.catalog.incarnations, once in cut.changelogs, log in cut.past) == (False, False, True)
        assert cut.catalog.dropped_retained_after == changelog_retained_after(lake.catalog, "shop") == ts(2) - 1
        proof = read_certificate(lake.store, "shop", cut.seq)
        assert (proof["kind"], proof["let_go"]["dropped"]) == ("rewrite", {once: "d.once"})
        assert (audited(lake).wrong, stranger.audited(lake)[0]) == ([], 0)
        with forged(lake, cut.seq, lambda said: said["predicate"]["let_go"].update(dropped={}), cut.seq):
            assert f"{cut.past[log]}: it is missing, cut 6 has it" in [w.what for w in audited(lake).wrong]
            assert "and those let go of: (0, False), expected (0, True)" in stranger.first_wrong(lake)[2]
        assert rows_of(lake, "d.once", first.resolved_ts) == table(("7", "o"))
        assert rows_of(lake, "d.k") == table(*((str(n), "x") for n in range(1, 6)))
        with pytest.raises(ConfigError, match=r"no table that was dropped after .* or is there now had that name"):
            list(changes_of(lake, "d.once", 0, None))
        d.run()
        assert rows_of(lake, "d.k") == table(*((str(n), "x") for n in range(1, 7)))
        assert planned(d).leaving == {}
        assert snapshot in newest(lake).past, "the first cut still reads it"
        for _ in range(3):
            d.run()
            d.maintained()
        assert newest(lake).past.keys() == set(), "no retained cut reads them any more"
        assert [lake.catalog.find(name) for name in cut.past.values()] == [None, None]
        assert (audited(lake).wrong, stranger.audited(lake)[0]) == ([], 0)


@pytest.mark.long
def test_a_rollback_brings_it_back_and_it_leaves_again(tmp_path: Path) -> None:
    with days(tmp_path) as d:
        five_days(d)
        d.maintained()
        left = rows_of(d.lake, "d.k")
        rollback(d.lake, "cut 1")
        (once,) = (i for i in newest(d.lake).catalog.incarnations if i.startswith("d.once@"))
        assert (rows_of(d.lake, "d.once"), rows_of(d.lake, "d.k")) == (table(("7", "o")), table(("1", "x")))
        assert newest(d.lake).changelogs == {}, "changes of that time are not kept"
        rollback(d.lake, "cut 6")
        assert (rows_of(d.lake, "d.k"), once in newest(d.lake).catalog.incarnations) == (left, False)
        rollback(d.lake, "cut 4")
        assert (rows_of(d.lake, "d.k"), once in newest(d.lake).changelogs) == (left - table(("5", "x")), True)
        feed = d.lake.feed
        d.lake.feed = feed.model_copy(update={"maintenance": Maintenance.model_validate(KEEP | {"keep_changelog": "forever"})})
        assert planned(d).leaving == {}, "its change is there again, and nothing says that it goes"
        d.lake.feed = feed
        assert (planned(d).leaving, once in newest(d.lake).catalog.incarnations) == ({once: "d.once"}, False)
        d.run()
        assert rows_of(d.lake, "d.k") == left + table(("6", "x"))
        assert (audited(d.lake).wrong, stranger.audited(d.lake)[0]) == ([], 0)


def test_a_table_that_left_is_not_recovered_without_its_rows(tmp_path: Path) -> None:
    with days(tmp_path) as d:
        five_days(d)
        d.maintained()
        with pytest.raises(OrderError, match=r"no table of that name was dropped after .*'RECOVER TABLE once'") as refused:
            d.run(*ddl(ts(5.5), "RECOVER TABLE once", table="once"))
        assert refused.value.code == "UNSUPPORTED_DDL"


@pytest.mark.long
def test_the_definition_of_a_table_that_left_makes_no_new_one(tmp_path: Path) -> None:
    defined = f"{SQL} CREATE TABLE d.once (id BIGINT PRIMARY KEY, v VARCHAR(20));"
    with days(tmp_path, defined) as d:
        d.run(row(0, "insert", ts(0.2), KV, ("7", "o"), table="once"))
        d.run(*dropped(1.5))
        for _ in range(3):
            d.run()
        assert planned(d).leaving == {}
        d.run()
        lives = newest(d.lake).catalog.incarnations.values()
        assert {i.name: i.dropped_ts for i in lives} == {"d.k": None, "d.m": None, "d.once": ts(1.5)}
        d.run(*created(6.2))
        assert planned(d).leaving == {"d.once@-1": "d.once"}
        d.run()
        assert rows_of(d.lake, "d.once") == table(("7", "o"))


@pytest.mark.long
def test_with_all_changes_dropped_tables_stay_and_what_is_gone_leaves_the_cut(tmp_path: Path) -> None:
    with days(tmp_path, keep_changelog="forever") as d:
        d.run(*created(0.2))
        d.run(*dropped(1.5))
        for _ in range(5):
            d.run()
        first = d.maintained()
        assert (len(first.dropped_tables), len(newest(d.lake).past), first.cut) == (1, 1, None)
        second = d.maintained()
        assert (second.dropped_tables, newest(d.lake).past, second.cut) == ([], {}, 8)
        assert second.plan is not None
        assert (second.plan.dropped, second.plan.leaving) == (1, {})
        assert [r["id"] for c in changes_of(d.lake, "d.once", 0, None) for r in c.rows.read_all().to_pylist()] == [7]
        assert d.maintained().cut is None, "once is enough"
        assert (audited(d.lake).wrong, stranger.audited(d.lake)[0]) == ([], 0)
