"""A full export as the first cut, and the hours that go on from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.exports.dumpling import Dump, csv, sql
from tests.lake.histories import ddl, feeder, publish, resolved, row, rows_of, shape
from tests.lake.test_windows import table
from tidelake.lake.opened import Lake
from tidelake.lake.seed import seed
from tidelake.layout import certificate_key

KV = shape("id bigint", "v varchar")
TEXT = shape("v varchar", key=())
K, M = (("id", "bigint"), ("v", "varchar(20)")), (("v", "varchar(20)"),)
AT = 100

pytestmark = pytest.mark.usefixtures("spark_app")


def test_changes_go_on_from_the_export(tmp_path: Path) -> None:
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
        x, y = (table((v,), names=("v",)) for v in "xy")
        assert rows_of(lake, "d.k", AT) == table(("1", "a"), ("2", None), ("3", "c"))
        assert rows_of(lake, "d.m") == x + x + y
        hour = made.add(
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
        cut = publish(lake, hour)
        assert cut is not None
        names = ("id", "v", "n")
        assert rows_of(lake, "d.k") == table(("1", "b", "7"), ("2", None, "7"), ("4", "d", "7"), names=names)
        assert rows_of(lake, "d.k", 102) == table(("1", "b"), ("2", None))
        assert rows_of(lake, "d.m") == x + y
        said = json.loads(lake.store.read(certificate_key("shop", 2)))
        assert (said["applied_ts"], said["seeded_events"], said["late_events"], said["incomplete"]) == (AT, 2, 0, False)
        assert (cut.seeded_ts, cut.is_seed) == (AT, False)
