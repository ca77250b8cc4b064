"""A full export as the first cut, and the hours that go on from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.lake.histories import Feeder, ddl, feeder, publish, publish_again, resolved, row, rows_of
from tests.lake.windows import KV, TEXT, table
from tests.seed.exports.dumpling import Dump, csv, sql
from tidelake.errors import OrderError
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.opened import Lake
from tidelake.maintenance.maintain import maintain
from tidelake.publish.rollback import rollback
from tidelake.query.scd2 import scd2_frame
from tidelake.query.status import feed_status
from tidelake.seed.stage import seed
from tidelake.validate.report import hour_facts, write_report

K, M = (("id", "bigint"), ("v", "varchar(20)")), (("v", "varchar(20)"),)
AT = 100

pytestmark = pytest.mark.usefixtures("spark_app")


@pytest.fixture
def seeded(tmp_path: Path) -> Iterator[tuple[Feeder, Lake]]:
    """A feed with a keyed table of files of two kinds, one without key, and one without rows."""
    dump = Dump(tmp_path / "dump").begin(AT)
    dump.table("d.k", "(`id` BIGINT, `v` VARCHAR(20), PRIMARY KEY (`id`))")
    dump.table("d.m", "(`v` VARCHAR(20))")
    dump.table("d.none", "(`id` BIGINT PRIMARY KEY)")
    dump.write("d.k.000000000.csv", csv(K, [(b"1", b"a"), (b"2", None)]))
    dump.write("d.k.000000001.csv.gz", csv(K, [(b"3", b"c")]))
    dump.write("d.m.000000000.sql", sql("m", M, [(b"x",), (b"x",), (b"y",)]))
    made = feeder(tmp_path, "")
    (tmp_path / "lake").mkdir()
    with Lake.of(made.feed) as lake:
        done = seed(lake, str(dump.folder))
        assert (done.cut, done.rows) == (1, {"d.k": 3, "d.m": 3, "d.none": 0})
        yield made, lake


def first_hour(made: Feeder, lake: Lake) -> str:
    """Repeats of what the export holds, then changes."""
    return made.add(
        lake,
        [
            row(0, "insert", AT, KV, ("1", "old")),
            row(0, "update", 99, KV, ("2", "old"), ("2", "older")),
            *ddl(AT, "TRUNCATE TABLE k"),
            row(0, "update", 101, KV, ("1", "b"), ("1", "a")),
            row(0, "delete", 102, KV, None, ("3", "c")),
            row(0, "insert", 103, KV, ("4", "d")),
            row(0, "delete", 104, TEXT, None, ("x",), table="m"),
            *ddl(105, "ALTER TABLE k ADD COLUMN n INT DEFAULT 7"),
            *resolved(110),
        ],
    )


def ones(*values: str) -> Counter[tuple[tuple[str, Any], ...]]:
    return table(*((v,) for v in values), names=("v",))


def check(lake: Lake) -> None:
    """Both tables after the first hour, and between."""
    assert rows_of(lake, "d.k") == table(("1", "b", "7"), ("2", None, "7"), ("4", "d", "7"), names=("id", "v", "n"))
    assert rows_of(lake, "d.k", 102) == table(("1", "b"), ("2", None))
    assert rows_of(lake, "d.m") == ones("x", "y")


def test_changes_go_on_from_the_export(seeded: tuple[Feeder, Lake]) -> None:
    made, lake = seeded
    assert rows_of(lake, "d.k", AT) == table(("1", "a"), ("2", None), ("3", "c"))
    assert rows_of(lake, "d.m") == ones("x", "x", "y")
    cut = publish(lake, first_hour(made, lake))
    assert cut is not None
    assert (cut.seeded_ts, cut.is_seed) == (AT, False)
    check(lake)
    said = read_certificate(lake.store, "shop", 2)
    assert (said["applied_ts"], said["seeded_events"], said["late_events"], said["incomplete"]) == (AT, 2, 0, False)


@pytest.mark.long
def test_the_seed_is_a_cut_like_any(seeded: tuple[Feeder, Lake]) -> None:
    made, lake = seeded
    early = made.add(lake, [row(0, "insert", 90, KV, ("1", "old")), *resolved(AT)])
    with pytest.raises(OrderError, match="reaches to 100") as error:
        publish(lake, early)
    assert error.value.code == "BEFORE_SEED"
    hour = first_hour(made, lake)
    publish(lake, hour)
    check(lake)
    assert [(r["id"], r["v"]) for r in versions(lake, AT)] == [("1", "a"), ("2", None), ("3", "c")]
    assert [(r["id"], r["v"], r["_valid_from_ts"], r["_valid_to_ts"]) for r in versions(lake, 110)] == [
        ("1", "a", AT, 101),
        ("1", "b", 101, None),
        ("2", None, AT, None),
        ("3", "c", AT, 102),
        ("4", "d", 103, None),
    ]
    facts = hour_facts(lake, "1969-12-31T22")
    assert (facts.status, facts.cut, facts.lag_seconds, facts.tables["d.k"].rows_after) == ("published", 1, None, 3)
    assert "d.k" in Path(write_report(lake, facts.hour)).read_text()
    assert (feed_status(lake)["seeded_ts"], feed_status(lake)["published_ts"]) == (AT, 110)
    rollback(lake, str(AT))
    assert rows_of(lake, "d.k") == table(("1", "a"), ("2", None), ("3", "c"))
    assert publish(lake, hour) is not None
    check(lake)
    cut, differs = publish_again(lake, hour, early)
    assert (cut.applied_ts, cut.parent_seq, differs) == (AT, 3, {})
    check(lake)
    done = maintain(lake, young=timedelta(days=-1))
    assert done.plan is not None
    assert [p.orphans for p in done.plan.tables if not p.gone and p.orphans] == []
    assert rows_of(lake, "d.m", AT) == ones("x", "x", "y")


def versions(lake: Lake, ts: int) -> list[dict[str, Any]]:
    """All versions of rows of d.k as known at ts, in order."""
    frame, _ = scd2_frame(lake, "d.k", ts, lake.spark)
    rows = [r.asDict() | {"id": str(r["id"])} for r in frame.collect()]
    return sorted(rows, key=lambda r: (r["id"], r["_valid_from_ts"]))
