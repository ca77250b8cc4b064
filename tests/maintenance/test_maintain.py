"""Maintenance: what it lets go of, and that nobody who reads a retained cut can tell that it ran."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.lake import cheap, lakes
from tests.lake.cheap import newest, ts
from tidelake.config.lake_paths import certificate_key, cut_key, cuts, intent_key, intents, published_table, run_key
from tidelake.config.retention import Maintenance
from tidelake.errors import StorageError
from tidelake.io.storage import Store
from tidelake.lake.cut import Staged, TableCut
from tidelake.lake.cut_documents import read_certificate, read_cut
from tidelake.lake.cuts import published, record
from tidelake.lake.opened import Lake
from tidelake.maintenance import maintain as steps
from tidelake.maintenance.maintain import maintain
from tidelake.maintenance.published_rows import let_go
from tidelake.publish.recovery import recover
from tidelake.query.asof import table_asof

KEEP = {"keep_cuts": "1d", "keep_daily": "60d", "small_files": 50}
NONE = timedelta(days=-1)  # no snapshot is young
HOURS = (1, 2, 3, 25, 26, 960, 961)  # of the cuts, after the start; the newest keeps 960, days 0 and 1 keep 3 and 26
K, IDLE = "d.k@-1", "d.idle@-1"

pytestmark = pytest.mark.usefixtures("small_hours")


@contextmanager
def lake_of(folder: Path, hours: Sequence[float] = HOURS, **settings: Any) -> Iterator[Lake]:
    """A lake with a cut at each of these hours."""
    (folder / "lake").mkdir()
    with Lake.of(lakes.feed(folder, maintenance=Maintenance.model_validate(KEEP | settings))) as lake:
        cut = None
        for hour in hours:
            cut = cheap.publish(lake, cut, hour)
        yield lake


def ids(lake: Lake, n: int) -> list[int]:
    """The ids of k's rows at the nth cut, read as a reader of cuts does."""
    with table_asof(lake, "d.k", ts(HOURS[n - 1])) as found:
        return sorted(r["id"] for r in found.rows.read_all().to_pylist())


def test_the_document_of_a_retained_cut_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lake_of(tmp_path) as lake:
        read, store = Counter[str](), type(lake.store)
        plain = store.read

        def counted(self: Store, key: str, *span: Any) -> bytes:
            read[key] += 1
            return plain(self, key, *span)

        monkeypatch.setattr(store, "read", counted)
        maintain(lake, young=NONE)
        assert [read[cut_key("shop", n)] for n in (3, 5, 6)] == [1, 1, 1]


def test_every_retained_cut_reads_as_before_and_what_only_others_needed_goes(tmp_path: Path) -> None:
    with lake_of(tmp_path) as lake:
        before = {n: read_cut(lake.store, "shop", n) for n in range(1, 8)}
        planned = maintain(lake, dry_run=True, young=NONE)
        assert planned.plan is not None
        assert (planned.plan.cuts, planned.plan.lets_go) == ({3: "daily", 5: "daily", 6: "every", 7: "newest"}, [1, 2, 4])
        by_name = {p.table: p for p in planned.plan.tables}
        assert by_name["d.idle"].kept == {before[1].snapshots[IDLE].snapshot_id: [3, 5, 6, 7]}
        assert by_name["d.k"].kept == {before[n].snapshots[K].snapshot_id: [n] for n in (3, 5, 6, 7)}
        assert by_name["d_changelog.k"].kept == {before[n].changelogs[K].snapshot_id: [n] for n in (3, 5, 6, 7)}
        assert {before[n].snapshots[K].snapshot_id for n in (1, 2, 4)} <= set(by_name["d.k"].expires)
        assert published(lake.catalog, "shop").keys() == set(range(1, 8)), "a dry run changes nothing"

        done = maintain(lake, young=NONE)
        assert done.plan == planned.plan
        assert done.expired_snapshots == sum(len(p.expires) for p in planned.plan.tables) > 12
        assert published(lake.catalog, "shop").keys() == {3, 5, 6, 7}
        for n in (3, 5, 6, 7):
            cut = read_cut(lake.store, "shop", n)
            assert cut == before[n]
            assert ids(lake, n) == list(range(n + 1))
            assert [r["v"] for r in lakes.contents(lake.catalog, "d.idle", cut.snapshots[IDLE].snapshot_id)] == ["first"]
            assert len(lakes.contents(lake.catalog, "d_changelog.k", cut.changelogs[K].snapshot_id)) == n + 1
        with pytest.raises(StorageError, match="has no snapshot"):
            lake.catalog.load("d.k").summary(before[4].snapshots[K].snapshot_id)
        assert [len(lake.catalog.load(t).table.snapshots()) for t in ("d.k", "d_changelog.k", "d.idle")] == [4, 4, 1]
        with pytest.raises(StorageError, match=f"is before the oldest cut that is kept, at {ts(3)}") as error:
            ids(lake, 2)
        assert error.value.code == "NOT_RETAINED"
        assert [o.key for o in lake.store.objects(cuts("shop"))] == [f"cuts/shop/0000000{n}.json" for n in (3, 5, 6, 7)]

        rows = lake.catalog.load(published_table()).scan().read_all().to_pylist()
        assert [(r["seq"], r["table"], r["snapshot_id"]) for r in rows if r["expired"]] == [(n, None, None) for n in (1, 2, 4)]
        assert sorted((r["seq"], r["table"]) for r in rows if not r["expired"]) == [(n, t) for n in (3, 5, 6, 7) for t in ("idle", "k")]
        assert len(list(lake.catalog.load(published_table()).table.scan().plan_files())) == 1
        assert cheap.publish(lake, newest(lake), 962).seq == 8
        assert published(lake.catalog, "shop").keys() == {3, 5, 6, 7, 8}


class Killed(BaseException):
    """Stands for SIGKILL: nothing catches it."""


@pytest.mark.long
def test_an_maintenance_killed_between_two_steps_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: Any) -> None:
        raise Killed

    with lake_of(tmp_path) as lake:
        for step in ("expire_snapshots", "drop_gone", "forget_documents"):
            with monkeypatch.context() as patch:
                patch.setattr(steps, step, die)
                with pytest.raises(Killed):
                    maintain(lake, young=NONE)
            assert published(lake.catalog, "shop").keys() == {3, 5, 6, 7}, "what will go is no longer offered"
            assert [len(ids(lake, n)) for n in (3, 5, 6, 7)] == [4, 6, 7, 8]
        assert len(list(lake.store.objects(cuts("shop")))) == 7
        maintain(lake, young=NONE)
        assert len(list(lake.store.objects(cuts("shop")))) == 4
        assert len(lake.catalog.load("d.k").table.snapshots()) == 4


@pytest.mark.long
def test_a_table_that_left_stays_as_long_as_a_cut_that_had_it_and_stale_branches_go(tmp_path: Path) -> None:
    with lake_of(tmp_path, (1, 2)) as lake:
        old = lakes.table(lake.catalog, "d_past.old__1", [(1, "o")])
        cut = newest(lake)
        there = cut.snapshots | {"d.old@-1": TableCut(identifier="d.old", uuid=old.uuid, snapshot_id=old.main)}
        record(lake.catalog, lake.store, cut.model_copy(update={"seq": 3, "snapshots": there, "resolved_ts": ts(3)}))
        left = cut.model_copy(update={"seq": 4, "past": {old.uuid: "d_past.old__1"}, "resolved_ts": ts(4)})
        record(lake.catalog, lake.store, left)
        for branch in ("run_4_7", "run_5_8", "theirs"):
            lake.catalog.set_branch(lake.catalog.load("d.idle"), branch, lake.catalog.load("d.idle").main)
        assert maintain(lake, young=NONE).dropped_tables == []
        assert [r["v"] for r in lakes.contents(lake.catalog, "d_past.old__1")] == ["o"]
        assert sorted(lake.catalog.load("d.idle").branches) == ["run_5_8", "theirs"]
        record(lake.catalog, lake.store, left.model_copy(update={"seq": 5, "resolved_ts": ts(70)}))
        assert maintain(lake, young=NONE).dropped_tables == ["d_past.old__1"]
        assert lake.catalog.find("d_past.old__1") is None
        lake.store.write(certificate_key("shop", 5), lake.store.read(certificate_key("shop", 2)))
        assert maintain(lake, young=NONE).dropped_tables == []
        assert (newest(lake).seq, newest(lake).past) == (6, {}), "the cut no longer names it"


@pytest.mark.long
def test_young_snapshots_stay_whoever_needs_them(tmp_path: Path) -> None:
    with lake_of(tmp_path) as lake:
        done = maintain(lake)
        assert done.plan is not None
        assert (done.plan.lets_go, done.expired_snapshots) == ([1, 2, 4], 0)


def test_a_published_table_of_an_earlier_version_gets_the_column(tmp_path: Path) -> None:
    with lake_of(tmp_path, (1, 2, 60)) as lake:
        lake.catalog.evolve(published_table(), lambda u: u.delete_column("expired"))
        assert published(lake.catalog, "shop").keys() == {1, 2, 3}
        let_go(lake.catalog, "shop", [1], 5)
        assert published(lake.catalog, "shop").keys() == {2, 3}


@pytest.mark.long
def test_small_files_are_put_together_and_published_as_the_same_cut_again(tmp_path: Path) -> None:
    with lake_of(tmp_path, (1, 2, 3, 4, 5), small_files=3) as lake:
        old = newest(lake)
        planned = maintain(lake, dry_run=True).plan
        assert planned is not None
        assert {p.table: (p.files, p.small_files, p.rewrites) for p in planned.tables if p.files} == {
            "d.idle": (1, 1, False),
            "d.k": (6, 6, True),
            "d_changelog.k": (6, 6, True),
        }
        done = maintain(lake)
        assert (done.cut, done.rewritten) == (6, ["d.k", "d_changelog.k"])
        cut = newest(lake)
        assert (cut.seq, cut.hour, cut.applied_ts, cut.resolved_ts) == (6, old.hour, old.applied_ts, old.resolved_ts)
        assert (cut.snapshots[K].rows, cut.snapshots[IDLE]) == (6, old.snapshots[IDLE])
        for part in (old.snapshots, cut.snapshots, old.changelogs, cut.changelogs):
            assert sorted(r["id"] for r in lakes.contents(lake.catalog, part[K].identifier, part[K].snapshot_id)) == list(range(6))
        k = lake.catalog.load("d.k")
        assert (k.main, k.branches) == (cut.snapshots[K].snapshot_id, [])
        assert k.main != old.snapshots[K].snapshot_id
        assert len(list(k.table.scan().plan_files())) == 1
        declared = json.loads(lake.store.read(intent_key("shop", 6)))
        assert declared["cut"]["snapshots"][K]["snapshot_id"] == k.main
        proof = read_certificate(lake.store, "shop", 6)
        assert proof["rewrites"]["cut"] == 5
        assert proof["rewrites"]["tables"]["d.k"] == {"from": old.snapshots[K].snapshot_id, "to": k.main}
        assert maintain(lake).cut is None, "nothing is left to rewrite"
        assert cheap.publish(lake, cut, 6).snapshots[K].rows == 7
        assert sorted(str(r["id"]) for r in lakes.contents(lake.catalog, "d.k")) == list("0123457"), (
            "the next cut goes on from the rewritten table"
        )


@pytest.mark.long
@pytest.mark.parametrize("step", ["declare", "carry_out"])
def test_a_rewrite_cut_short_is_dropped_or_rolled_forward(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: Any) -> None:
        raise Killed

    with lake_of(tmp_path, (1, 2, 3), small_files=3) as lake:
        with monkeypatch.context() as patch:
            patch.setattr(steps, step, die)
            with pytest.raises(Killed):
                maintain(lake)
        assert newest(lake).seq == 3
        if step == "carry_out":
            recover(lake.catalog, lake.store, "shop")  # what the next hour does first
            assert newest(lake).seq == 4
        done = cheap.publish(lake, newest(lake), 4)
        assert done.snapshots[K].rows == 5
        assert sorted(str(r["id"]) for r in lakes.contents(lake.catalog, "d.k"))[:4] == list("0123")
        assert maintain(lake).cut == (5 if step == "declare" else None)
        assert lake.catalog.load("d.k").branches == []


@pytest.mark.long
def test_an_hour_that_is_staged_keeps_its_number(tmp_path: Path) -> None:
    with lake_of(tmp_path, (1, 2, 60), small_files=3) as lake:
        staged = Staged(cut=newest(lake).model_copy(update={"seq": 4, "hour": "2026-01-03T13"}))
        lake.store.write(run_key("shop", 4, "order"), staged.model_dump_json().encode())
        done = maintain(lake, young=NONE)
        assert done.plan is not None
        assert (done.plan.staged, done.cut, done.plan.lets_go) == ("2026-01-03T13", None, [1])
        assert newest(lake).seq == 3


def test_a_table_that_someone_else_wrote_to_is_not_rewritten(tmp_path: Path) -> None:
    with lake_of(tmp_path, (1, 2, 3), small_files=3) as lake:
        lake.catalog.append("d.k", lakes.batch(lake.catalog.load("d.k"), [(9, "stranger")]))
        with pytest.raises(StorageError, match=f"set main back to snapshot {newest(lake).snapshots[K].snapshot_id}"):
            maintain(lake)
        assert newest(lake).seq == 3
        assert list(lake.store.objects(intents("shop")))[-1].key.endswith("3.json")


def test_a_dry_run_starts_no_spark_and_counts_what_no_metadata_names(tmp_path: Path) -> None:
    with lake_of(tmp_path, (1, 2)) as lake:
        left = Path(str(lake.catalog.load("d.k").table.location())) / "data" / "left.parquet"
        left.write_bytes(b"12345")
        for path in Path(lake.settings.warehouse).rglob("*"):
            os.utime(path, (0, 0))
        planned = maintain(lake, dry_run=True).plan
        assert lake._spark is None
        assert planned is not None
        assert {p.table: (p.orphans, p.orphan_bytes) for p in planned.tables if p.orphans} == {"d.k": (1, 5)}
        said = lake.spark.sql(
            "CALL lake.system.remove_orphan_files(table => 'd.k', older_than => TIMESTAMP '2000-01-01 00:00:00', dry_run => true)"
        )
        assert [str(r[0]).rpartition("/")[2] for r in said.collect()] == ["left.parquet"], "Iceberg's own procedure says the same"


def test_names_that_cannot_be_compared_with_objects_remove_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A location that its metadata spells in another way would make orphans of all files."""
    with lake_of(tmp_path, (1, 2)) as lake:
        files = sorted(p for p in Path(lake.settings.warehouse).rglob("*") if p.is_file())
        for path in files:
            os.utime(path, (0, 0))
        monkeypatch.setattr("tidelake.maintenance.orphans.plain", lambda location: location.replace("metadata/", "other/"))
        with pytest.raises(StorageError, match=r"FILE_LOST: table d\.\w+: its metadata .* is not among the objects of"):
            maintain(lake)
        assert set(files) <= {p for p in Path(lake.settings.warehouse).rglob("*") if p.is_file()}


@pytest.mark.long
def test_orphans_go_when_they_are_old_and_nothing_else_does(tmp_path: Path) -> None:
    with lake_of(tmp_path, (1, 2)) as lake:
        warehouse = Path(lake.settings.warehouse)
        places = [Path(str(lake.catalog.load(t).table.location())) / "data" / "left.parquet" for t in ("d.k", "d.idle")]
        lost = lakes.table(lake.catalog, "d.lost", [(1, "l")])
        lake.catalog.drop("d.lost", "shop")
        fresh = lakes.table(lake.catalog, "d.fresh", [(1, "f")])
        lake.catalog.drop("d.fresh", "shop")
        lake.catalog.claim_namespace("theirs", "other")
        (warehouse / "theirs" / "t-1").mkdir(parents=True)
        (warehouse / "theirs" / "t-1" / "x.parquet").write_bytes(b"1")
        for place in places:
            place.write_bytes(b"12345")
        young = {places[1], *(p for p in Path(str(fresh.table.location())).rglob("*") if p.is_file())}
        for path in warehouse.rglob("*"):
            if path.is_file() and path not in young:
                os.utime(path, (0, 0))
        planned = maintain(lake, dry_run=True).plan
        assert planned is not None
        assert {p.table: (p.orphans, p.orphan_bytes) for p in planned.tables if p.orphans} == {"d.k": (1, 5)}
        assert planned.folders == [str(lost.table.location()).removeprefix(f"{warehouse}/")]
        files = [p for p in Path(str(lost.table.location())).rglob("*") if p.is_file()]
        assert planned.folder_bytes == sum(p.stat().st_size for p in files)
        assert places[0].exists()
        done = maintain(lake)
        assert (done.removed_orphans, done.removed_bytes) == (1 + len(files), 5 + planned.folder_bytes)
        assert [p.exists() for p in (*places, *files)] == [False, True, *[False] * len(files)]
        assert all(p.exists() for p in young)
        assert (warehouse / "theirs" / "t-1" / "x.parquet").exists()
        assert ids(lake, 1) == [0, 1]
        assert [r["v"] for r in lakes.contents(lake.catalog, "d.idle")] == ["first"]
