"""Changes that are not kept any more: what goes, that nobody gets a table built from what is left, and that a kill loses nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset

from tests.lake import cheap, lakes
from tests.lake.cheap import newest, ts
from tests.lake.killed import Killed, kill_at
from tidelake.config.retention import Maintenance
from tidelake.errors import ConfigError, StorageError
from tidelake.io import duckdb_door as duck
from tidelake.lake.cut_documents import read_certificate, read_cut
from tidelake.lake.cuts import changelog_retained_after, lineage
from tidelake.lake.opened import Lake
from tidelake.maintenance import maintain as steps
from tidelake.maintenance.maintain import maintain
from tidelake.publish.rollback import rollback
from tidelake.query.asof import frame_asof, table_asof
from tidelake.query.changes import changes_of
from tidelake.query.scd2 import scd2_frame
from tidelake.tso import begin_ts

K = "d.k@-1"
KEEP = {"keep_cuts": "1d", "keep_daily": "60d", "keep_changelog": "3d", "small_files": 50}
NONE = timedelta(days=-1)  # no snapshot is young
HOURS = tuple(20 + 24 * day for day in range(8))  # a cut a day at 20:00; three days before the newest is the fifth
GONE = begin_ts(cheap.START + timedelta(days=4)) - 1  # what the fifth cut follows is kept from the beginning of its day
CUTS = {ts(h) for h in HOURS}
BETWEEN = tuple(ts(h - 0.25) for h in HOURS)  # a row more than the cut before
REFUSED = {ts(h - 0.25) for h in HOURS[:5]}  # the cut before is older than the changelog_retained_after

pytestmark = pytest.mark.usefixtures("small_hours")


@contextmanager
def lake_of(folder: Path, hours: Sequence[float] = HOURS, by: str = "day", **settings: Any) -> Iterator[Lake]:
    """A lake with a cut at each of these hours."""
    (folder / "lake").mkdir()
    with Lake.of(lakes.feed(folder, maintenance=Maintenance.model_validate(KEEP | settings))) as lake:
        cut = None
        for hour in hours:
            cut = cheap.publish(lake, cut, hour, by)
        yield lake


def ids(lake: Lake, at: int | None) -> list[int] | str:
    """The ids of k's rows at a TSO, or why they cannot be had."""
    try:
        with table_asof(lake, "d.k", at) as found:
            return sorted(r["id"] for r in found.rows.read_all().to_pylist())
    except StorageError as e:
        return e.code


def answers(lake: Lake, moments: set[int]) -> dict[int, list[int] | str]:
    """What is answered at each."""
    return {at: ids(lake, at) for at in sorted(moments)}


def changelog(lake: Lake) -> list[object]:
    """The ids of k's changes, as main has them."""
    return sorted(r["id"] for r in lake.catalog.load("d_changelog.k").scan(columns=["id"]).read_all().to_pylist())


@pytest.mark.parametrize("numbers", [pytest.param(range(1, 9), marks=pytest.mark.long, id="all"), pytest.param((4, 6), id="two")])
def test_asof_says_what_it_said_or_refuses_and_refuses_before_the_horizon_alone(numbers: Sequence[int], tmp_path: Path) -> None:
    between = {BETWEEN[n - 1] for n in numbers}
    with lake_of(tmp_path) as lake:
        before = answers(lake, CUTS | between)
        assert before == {at: list(range(n + 1)) for moments in (sorted(CUTS), BETWEEN) for n, at in enumerate(moments, 1) if at in before}
        done = maintain(lake, young=NONE)
        assert (done.cut, done.removed_changes) == (9, 5)
        assert answers(lake, CUTS | between) == before | dict.fromkeys(REFUSED & between, "NOT_RETAINED")
        assert (changelog_retained_after(lake.catalog, "shop"), changelog(lake)) == (GONE, [5, 6, 7, 8])
        with pytest.raises(StorageError, match=rf"d\.k cannot be read at TSO {ts(HOURS[3] - 0.25)}") as refused:
            frame_asof(lake, "d.k", ts(HOURS[3] - 0.25), lake.spark)
        near = rf"use the cut at {ts(HOURS[2])} \(.*\) or {ts(HOURS[3])} \(.*\), or any TSO from {ts(HOURS[4])} \("
        assert refused.match(near)
        kept = {s for t in [newest(lake), *(read_cut(lake.store, "shop", n) for n in range(5, 9))] for s in [t.changelogs[K].snapshot_id]}
        assert {s.snapshot_id for s in lake.catalog.load("d_changelog.k").table.snapshots()} == kept, "cuts before need no changelog"
        proof = read_certificate(lake.store, "shop", 9)
        assert proof["let_go"]["changelog_retained_after"] == GONE
        gone = proof["let_go"]["tables"]["d_changelog.k"]
        assert (gone["files"], gone["rows"], gone["first"], gone["last"]) == (5, 5, "2026-01-01", "2026-01-04")
        assert gone["archived"] is None


@pytest.mark.long
def test_versions_begin_at_the_first_whole_cut_and_changes_after_the_horizon(tmp_path: Path) -> None:
    with lake_of(tmp_path) as lake:

        def versions(at: int | None = None) -> set[tuple[Any, ...]]:
            return {tuple(r) for r in scd2_frame(lake, "d.k", at, lake.spark)[0].select("id", "_valid_from_ts", "_current").collect()}

        def changes(after: int, until: int | None = None) -> list[object]:
            return sorted(r["id"] for c in changes_of(lake, "d.k", after, until) for r in c.rows.read_all().to_pylist())

        before = versions()
        assert len(before) == 9
        maintain(lake, young=NONE)
        assert versions() == before, "no version ended, and every row says since when it is so"
        assert versions(ts(HOURS[5] - 0.25)) == {v for v in before if v[0] <= 6}
        with pytest.raises(StorageError, match=rf"are from TSO {ts(HOURS[4])} ") as refused:
            versions(ts(HOURS[4]) - 1)
        assert refused.value.code == "NOT_RETAINED"
        assert (changes(0), changes(ts(HOURS[5]))) == ([5, 6, 7, 8], [7, 8])
        for span in ((ts(HOURS[2]), None), (0, ts(HOURS[2]))):
            with pytest.raises(StorageError, match=f"ask for those after TSO {GONE};"):
                changes(*span)


STEPS = (  # of them the fourth publishes
    "archive",
    "stage_rewrite",
    "raise_retained_after",
    "declare",
    "advance",
    "record",
    "certificate",
    "let_go",
    "expire_snapshots",
    "forget_documents",
)
SAMPLE = ("declare",)


@pytest.mark.parametrize("step", [pytest.param(s, marks=[] if s in SAMPLE else pytest.mark.long) for s in STEPS])
def test_an_maintenance_killed_at_any_step_leaves_readers_right_and_is_finished_by_the_next(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = {ts(HOURS[3]), ts(HOURS[3] - 0.25), ts(HOURS[5] - 0.25)}
    with lake_of(tmp_path, archive_changelog=str(tmp_path / "archive")) as lake:
        right = answers(lake, moments)
        refused = right | {ts(HOURS[3] - 0.25): "NOT_RETAINED"}
        with monkeypatch.context() as patch:
            if step in ("advance", "record", "certificate"):
                kill_at(patch, step, 0)
            else:
                patch.setattr(steps, step, die)
            with pytest.raises(Killed):
                maintain(lake, young=NONE)
        raised = STEPS.index(step) > 2
        assert (changelog_retained_after(lake.catalog, "shop"), len(changelog(lake)) == 4) == (
            GONE if raised else 0,
            raised and STEPS.index(step) > 4,
        )
        assert answers(lake, moments) == (refused if raised else right)
        done = maintain(lake, young=NONE)
        assert (done.cut, answers(lake, moments)) == (9 if STEPS.index(step) < 4 else None, refused)
        assert (changelog(lake), lake.catalog.load("d_changelog.k").branches) == ([5, 6, 7, 8], [])
        assert len(lake.catalog.load("d_changelog.k").table.snapshots()) == 5
        assert archived(tmp_path / "archive") == [0, 1, 2, 3, 4]
        assert ids(lake, cheap.publish(lake, newest(lake), 200).resolved_ts) == [*list(range(9)), 10]


def die(*_: Any, **__: Any) -> None:
    raise Killed


def archived(folder: Path) -> list[int]:
    """The ids in an archive, read as the documentation says."""
    with duck.scratch(folder) as db:
        options = "union_by_name = true, hive_partitioning = false"
        found = db.execute(f"SELECT id FROM read_parquet('{folder}/shop/d_changelog.k/*=*/*.parquet', {options})")
        ids = sorted(r[0] for r in found.fetchall())
    assert dataset(folder / "shop" / "d_changelog.k", partitioning="hive", exclude_invalid_files=True).count_rows() == len(ids)
    return ids


@pytest.mark.long
def test_what_goes_is_copied_first_with_a_manifest_that_is_right(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    with lake_of(tmp_path, archive_changelog=str(folder)) as lake:
        planned = maintain(lake, dry_run=True, young=NONE).plan
        assert planned is not None
        assert [p.archive for p in planned.tables if p.old] == [f"{folder}/shop/d_changelog.k/"]
        [old] = [p.old for p in planned.tables if p.old]
        assert (planned.changelog_retained_after, old.files, old.rows, old.first, old.last) == (GONE, 5, 5, "2026-01-01", "2026-01-04")
        assert (folder.exists(), changelog_retained_after(lake.catalog, "shop"), len(changelog(lake))) == (False, 0, 9), (
            "a dry run does nothing"
        )
        done = maintain(lake, young=NONE)
        assert done.plan == planned
        [place] = done.manifests
        manifest = json.loads(Path(place).read_text())
        assert (manifest["table"], manifest["cut"], manifest["changelog_retained_after"]) == ("d_changelog.k", 8, GONE)
        assert (manifest["rows"], manifest["first"], manifest["last"]) == (5, "2026-01-01", "2026-01-04")
        assert (manifest["first_ts"], manifest["last_ts"]) == (ts(HOURS[0] - 0.5) - 1, ts(HOURS[3] - 0.5))
        assert [c["name"] for c in manifest["columns"]][:5] == ["id", "v", "_change_type", "_change_seq", "_commit_ts"]
        for f in manifest["files"]:
            data = (folder / f["key"]).read_bytes()
            assert (len(data), sha256(data).hexdigest()) == (f["bytes"], f["sha256"])
            assert pq.read_metadata(folder / f["key"]).num_rows == f["rows"]
            assert f["key"].startswith(f"shop/d_changelog.k/day={cheap.START + timedelta(days=manifest['files'].index(f) // 2):%Y-%m}")
        assert archived(folder) == [0, 1, 2, 3, 4]
        again = maintain(lake, young=NONE)
        assert (again.cut, again.removed_changes, again.manifests) == (None, 0, [])


def test_a_copy_that_is_not_the_file_keeps_everything_from_going(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    with lake_of(tmp_path, archive_changelog=str(folder)) as lake:
        [task, *_] = list(lake.catalog.load("d_changelog.k").table.scan("id == 2").plan_files())
        name = task.file.file_path.rpartition("/")[2]
        torn = folder / "shop" / "d_changelog.k" / "day=2026-01-02" / name
        torn.parent.mkdir(parents=True)
        empty = lake.catalog.load("d_changelog.k").scan({"id": 77}).read_all()
        pq.write_table(empty, torn)
        with pytest.raises(StorageError, match=r": 0 rows in .*; nothing is removed") as refused:
            maintain(lake, young=NONE)
        assert refused.value.code == "ARCHIVE_DIFFERS"
        assert (changelog_retained_after(lake.catalog, "shop"), len(changelog(lake)), newest(lake).seq) == (0, 9, 8)


def test_an_archive_in_the_warehouse_is_refused(tmp_path: Path) -> None:
    with (
        lake_of(tmp_path, HOURS[:1], archive_changelog=str(tmp_path / "lake" / "warehouse" / "d")) as lake,
        pytest.raises(ConfigError, match=r"maintenance\.archive_changelog: .* is in the lake's warehouse"),
    ):
        maintain(lake, dry_run=True)


@pytest.mark.long
def test_a_rollback_before_the_horizon_begins_changelogs_anew_and_hours_run_on(tmp_path: Path) -> None:
    with lake_of(tmp_path) as lake:
        maintain(lake, young=NONE)
        rollback(lake, "cut 3")
        assert (newest(lake).changelogs, ids(lake, None)) == ({}, [0, 1, 2, 3])
        assert lake.catalog.find("d_changelog.k") is None
        cut = cheap.publish(lake, newest(lake), 75)
        assert lineage(lake.catalog, "shop").keys() == {1, 2, 3, 10, 11}
        assert answers(lake, {cut.resolved_ts, ts(74.75), ts(HOURS[2])}) == {
            ts(HOURS[2]): [0, 1, 2, 3],
            ts(74.75): "NOT_RETAINED",
            cut.resolved_ts: [0, 1, 2, 3, 11],
        }
        rollback(lake, "cut 8")
        assert (ids(lake, None), changelog(lake)) == (list(range(9)), list(range(9)))
        assert ids(lake, ts(HOURS[3] - 0.25)) == "NOT_RETAINED", "a changelog_retained_after never goes back"
        maintain(lake, young=NONE)
        assert changelog(lake) == [5, 6, 7, 8]


@pytest.mark.long
def test_hours_are_put_together_by_day(tmp_path: Path) -> None:
    hours = [h for day in range(3) for h in range(24 * day + 1, 24 * day + 24, 4)]
    with lake_of(tmp_path, hours, by="hour", small_files=3, keep_changelog="forever") as lake:
        moments = {ts(hours[7] - 0.25), ts(hours[7]), ts(hours[-1] - 0.25)}
        before, files = answers(lake, moments), len(list(lake.catalog.load("d_changelog.k").table.scan().plan_files()))
        assert files == 19
        done = maintain(lake, young=NONE)
        assert "d_changelog.k" in done.rewritten
        left = lake.catalog.load("d_changelog.k").table
        assert sorted(t.file.record_count for t in left.scan().plan_files()) == [6, 6, 7]
        assert (len(list(left.scan().plan_files())), str(left.spec().fields[0].transform)) == (3, "day")
        assert answers(lake, moments) == before
        cut = cheap.publish(lake, newest(lake), 74)
        assert ids(lake, cut.resolved_ts - 1)[-1] == cut.seq
        assert len(list(lake.catalog.load("d_changelog.k").table.scan().plan_files())) == 4
        assert maintain(lake, young=NONE).rewritten == [], "nothing is left to put together"

        lake.feed = lake.feed.model_copy(update={"maintenance": Maintenance.model_validate(KEEP | {"keep_changelog": "1d"})})
        moments = {ts(hours[-1] - 0.25), cut.resolved_ts - 1}
        before = answers(lake, moments)
        assert maintain(lake, young=NONE).removed_changes == 7, "one file of three in a manifest"
        assert (changelog(lake), answers(lake, moments)) == ([*range(7, 19), 20], before)


@pytest.mark.long
def test_changes_partitioned_by_hour_go_by_whole_days_too(tmp_path: Path) -> None:
    with lake_of(tmp_path, by="hour", archive_changelog=str(tmp_path / "archive")) as lake:
        moments = {BETWEEN[5], BETWEEN[7]}
        before = answers(lake, moments)
        assert maintain(lake, young=NONE).removed_changes == 5
        assert (changelog(lake), answers(lake, moments)) == ([5, 6, 7, 8], before)
        assert (tmp_path / "archive" / "shop" / "d_changelog.k" / "hour=2026-01-04T19").exists()
        assert archived(tmp_path / "archive") == [0, 1, 2, 3, 4]
