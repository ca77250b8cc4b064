"""Rows deleted by position in commits of Tidelake's own: what is read, what is counted, and what a later rewrite leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.avro.file import AvroFile
from pyiceberg.manifest import DataFileContent, ManifestContent, ManifestFile

from tests.lake import lakes
from tests.lake.windows import opened
from tests.searches import examples
from tidelake.compact.merge import live_rows
from tidelake.errors import StorageError
from tidelake.io.storage import open_store
from tidelake.lake.branches import sql_name
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.data_files import WrittenFile, columns_of_files, named_files, stage_files
from tidelake.lake.opened import Lake
from tidelake.lake.scans import FileFacts
from tidelake.maintenance.maintenance_plan import TablePlan
from tidelake.maintenance.orphans import find_orphans
from tidelake.maintenance.rewrite import _rewritten
from tidelake.spark.buckets import buckets_of
from tidelake.spark.parquet_files import OpenFile, footer
from tidelake.spark.position_deletes import PATH_ID, deleted_positions, write_position_deletes

Row = tuple[int, str]
FAR = 1 << 62  # ms: everything is older
IDS = {b: [n for n, at in enumerate(buckets_of(pa.array(range(400), pa.int64()), 2)) if at == b] for b in (0, 1)}


class Bucketed:
    """A table with two buckets, and the rows that must be in it: each commit is published as a run's is."""

    def __init__(self, catalog: LakeCatalog, **properties: str) -> None:
        self.catalog, self.numbers, self.expected = catalog, count(), dict[str, list[Row | None]]()
        self.bucket, self.unused = dict[str, int](), {b: iter(ids) for b, ids in IDS.items()}
        catalog.claim_namespace("d", "shop")
        catalog.create("d.b", lakes.COLUMNS, partition=(("id", "bucket[2]"),), properties={"tidelake.feed": "shop"} | properties)

    @property
    def table(self) -> LakeTable:
        return self.catalog.load("d.b")

    @property
    def summary(self) -> dict[str, str]:
        return self.table.summary(self.table.main)

    @property
    def facts(self) -> dict[str, FileFacts]:
        return {f.path: f for f in self.table.files({}, [], self.table.main)}

    @property
    def manifests(self) -> list[ManifestFile]:
        snapshot = self.table.table.current_snapshot()
        assert snapshot is not None
        return snapshot.manifests(self.table.table.io)

    @property
    def rows(self) -> list[Row]:
        return sorted(row for rows in self.expected.values() for row in rows if row)

    def data(self, bucket: int, rows: int) -> WrittenFile:
        """A data file with new rows of a bucket."""
        name, new = f"data/{next(self.numbers):04}-{bucket}.parquet", [(next(self.unused[bucket]), f"v{bucket}") for _ in range(rows)]
        path = Path(self.table.table.location(), name)
        path.parent.mkdir(exist_ok=True)
        with OpenFile(path, columns_of_files(self.table)) as file:
            file.write(lakes.batch(self.table, new))
        self.expected[str(path)], self.bucket[str(path)] = list(new), bucket
        return WrittenFile(path=name, partition=(bucket,), size=path.stat().st_size, footer=footer(path))

    def deletes(self, bucket: int, found: Mapping[str, Sequence[int]]) -> WrittenFile:
        """A position delete file for data files of a bucket."""
        name = f"data/{next(self.numbers):04}-{bucket}-deletes.parquet"
        path = Path(self.table.table.location(), name)
        write_position_deletes(path, ((p, np.array(found[p], np.int64)) for p in sorted(found)))
        for p in found.keys() & self.expected.keys():
            self.expected[p] = [None if n in found[p] else row for n, row in enumerate(self.expected[p])]
        return WrittenFile(path=name, partition=(bucket,), size=path.stat().st_size, footer=footer(path))

    def commit(self, files: Sequence[WrittenFile] = (), deletes: Sequence[WrittenFile] = (), gone: Sequence[str] = ()) -> LakeTable:
        """Stage a run's files and publish them; the table as it was staged."""
        run, main = f"run_{next(self.numbers)}_1", self.table.main
        staged = stage_files(self.catalog, "d.b", run, main, gone, files, {"tidelake.run": run}, deletes).table
        self.catalog.advance(staged, main, staged.branch(run), run)
        for path in gone:
            del self.expected[path]
        return staged

    def read(self) -> list[Row]:
        """The rows that pyiceberg reads, from manifests in which every file has the manifest's content."""
        io = self.table.table.io
        for m in self.manifests:
            entries = m.fetch_manifest_entry(io, discard_deleted=False)
            assert {e.data_file.content == DataFileContent.DATA for e in entries} == {m.content == ManifestContent.DATA}
            with AvroFile[ManifestFile](io.new_input(m.manifest_path)) as file:
                assert file.header.meta["content"] == m.content.name.lower()
        found = self.table.scan().read_all()
        return sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))

    def counts(self) -> tuple[int, ...]:
        """Data files, rows in them, delete files, rows that these delete; in all."""
        names = ("data-files", "records", "delete-files", "position-deletes")
        return tuple(int(self.summary[f"total-{n}"]) for n in names)


@pytest.fixture
def made(tmp_path: Path) -> Bucketed:
    return Bucketed(lakes.catalog(tmp_path))


def bounds(table: LakeTable, snapshot: list[ManifestFile]) -> list[tuple[str, str]]:
    """The bounds of file_path of all delete files."""
    of_deletes = [m for m in snapshot if m.content == ManifestContent.DELETES]
    files = [e.data_file for m in of_deletes for e in m.fetch_manifest_entry(table.table.io)]
    return sorted((f.lower_bounds[PATH_ID].decode(), f.upper_bounds[PATH_ID].decode()) for f in files)


def test_one_snapshot_deletes_rows_and_adds_others(made: Bucketed) -> None:
    made.commit([made.data(0, 5), made.data(1, 3)])
    one, other = sorted(made.expected)
    before, snapshots = made.table.main, len(made.table.table.snapshots())
    added = made.data(0, 2)
    made.commit([added], [made.deletes(0, {one: [0, 3]})])
    assert made.read() == made.rows
    assert len(made.rows) == 8 == live_rows(made.table, made.table.main)
    assert len(made.table.table.snapshots()) == snapshots + 1
    names = ["added-data-files", "added-records", "added-delete-files", "added-position-delete-files", "added-position-deletes"]
    assert [made.summary[n] for n in names] == ["1", "2", "1", "1", "2"]
    assert made.counts() == (3, 10, 1, 2)
    snapshot = made.table.table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert (snapshot.summary.operation.value, snapshot.parent_snapshot_id) == ("overwrite", before)
    (path,) = made.facts[one].deletes
    assert (made.facts[other].deletes, made.facts[f"{made.table.table.location()}/{added.path}"].deletes) == ((), ())
    assert bounds(made.table, made.manifests) == [(one, one)], "a reader sees from the bounds which data file it concerns"
    store = open_store(made.table.table.location())
    assert deleted_positions(store, [path.removeprefix(f"{store.uri}/")], one).tolist() == [0, 3]


def test_a_snapshot_that_only_deletes_says_so(made: Bucketed) -> None:
    made.commit([made.data(0, 5)])
    staged = made.commit(deletes=[made.deletes(0, {next(iter(made.expected)): [4]})])
    snapshot = staged.table.snapshot_by_id(made.table.main)
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary.operation.value == "delete"
    assert made.read() == made.rows


def test_one_delete_file_may_concern_several_data_files(made: Bucketed) -> None:
    made.commit([made.data(0, 4), made.data(0, 4), made.data(1, 4)])
    one, two, other = sorted(made.expected)
    made.commit(deletes=[made.deletes(0, {one: [0], two: [1, 2]})])
    assert made.read() == made.rows
    assert len(made.rows) == 9 == live_rows(made.table, made.table.main)
    assert bounds(made.table, made.manifests) == [(one, two)]
    assert [len(made.facts[p].deletes) for p in (one, two, other)] == [1, 1, 0]


def test_a_delete_file_for_a_path_that_is_not_there_deletes_nothing(made: Bucketed) -> None:
    made.commit([made.data(0, 4)])
    made.commit(deletes=[made.deletes(0, {f"{made.table.table.location()}/data/none.parquet": [0, 1]})])
    assert made.read() == made.rows
    assert len(made.rows) == 4
    assert [f.deletes for f in made.facts.values()] == [()]


STEPS = st.lists(
    st.fixed_dictionaries(
        {
            "added": st.dictionaries(st.integers(0, 1), st.integers(1, 4)),
            "deleted": st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=4),
            "together": st.booleans(),
            "rewritten": st.sampled_from([None, None, 0, 1]),
        }
    ),
    min_size=2,
    max_size=5,
)


@settings(max_examples=examples(12))
@given(STEPS, st.sampled_from(["2", "100"]))
def test_any_commits_one_after_another_leave_the_rows_and_the_counts(steps: list[dict[str, Any]], merged_from: str) -> None:
    with TemporaryDirectory() as folder:
        made = Bucketed(lakes.catalog(Path(folder)), **{"commit.manifest.min-count-to-merge": merged_from})
        for step in steps:
            stays = [p for p in sorted(made.expected) if made.bucket[p] != step["rewritten"]]
            gone = [p for p in made.expected if p not in stays]
            deletes = [made.deletes(b, found) for b, found in _chosen(made, stays, step["deleted"], step["together"])]
            made.commit([made.data(b, n) for b, n in step["added"].items()], deletes, gone)
            assert made.read() == made.rows
            held = [row for rows in made.expected.values() for row in rows]
            data_files, records, delete_files, deleted = made.counts()
            assert (data_files, records, deleted) == (len(made.expected), len(held), held.count(None))
            assert delete_files == len({d for f in made.facts.values() for d in f.deletes} if deleted else ())
            assert live_rows(made.table, made.table.main) == len(made.rows)


def _chosen(made: Bucketed, paths: list[str], wanted: list[tuple[int, int]], together: bool) -> list[tuple[int, dict[str, list[int]]]]:
    """(bucket, path → positions of rows that are still there) of each delete file."""
    found: dict[str, set[int]] = {}
    for which, position in wanted:
        path = paths[which % len(paths)] if paths else None
        if path and position < len(made.expected[path]) and made.expected[path][position]:
            found.setdefault(path, set()).add(position)
    each = {p: sorted(positions) for p, positions in found.items()}
    if not together:
        return [(made.bucket[p], {p: positions}) for p, positions in each.items()]
    shared = [(b, {p: n for p, n in each.items() if made.bucket[p] == b}) for b in (0, 1)]
    return [(b, of_bucket) for b, of_bucket in shared if of_bucket]


def test_deletes_go_with_the_last_of_their_data_files(made: Bucketed) -> None:
    made.commit([made.data(0, 4), made.data(0, 4), made.data(1, 4)])
    one, two, other = sorted(made.expected)
    made.commit(deletes=[made.deletes(0, {one: [0], two: [1]}), made.deletes(1, {other: [0, 1]})])
    earlier = made.table.main
    was = made.rows
    made.commit([made.data(0, 6)], gone=[one, two])
    assert made.read() == made.rows
    assert (made.counts(), live_rows(made.table, made.table.main)) == ((2, 10, 1, 2), 8)
    assert [made.summary[n] for n in ("removed-delete-files", "removed-position-deletes")] == ["1", "2"]
    assert [p for p, f in made.facts.items() if f.deletes] == [other]
    assert sorted(r["id"] for r in lakes.contents(made.catalog, "d.b", earlier)) == [n for n, _ in was], "earlier snapshots keep theirs"


def test_rows_are_not_miscounted_if_only_some_data_files_of_a_delete_file_go(made: Bucketed) -> None:
    made.commit([made.data(0, 4), made.data(0, 4)])
    one, two = sorted(made.expected)
    made.commit(deletes=[made.deletes(0, {one: [0], two: [1]})])
    with pytest.raises(ValueError, match="delete files also concern data files that stay"):
        made.commit(gone=[one])
    assert made.read() == made.rows


def test_a_removed_file_that_another_writer_removed_stops_the_commit(made: Bucketed) -> None:
    made.commit([made.data(0, 4)])
    (path,) = made.expected
    made.commit([made.data(0, 1)], gone=[path])
    with pytest.raises(StorageError, match="no longer in snapshot") as found:
        made.commit(gone=[path])
    assert found.value.code == "TABLE_MOVED"


def test_other_commits_of_pyiceberg_keep_the_deletes(made: Bucketed) -> None:
    made.commit([made.data(0, 4)])
    made.commit(deletes=[made.deletes(0, {next(iter(made.expected)): [2]})])
    made.catalog.append("d.b", lakes.batch(made.table, [(900, "x")]))
    assert made.read() == [*made.rows, (900, "x")]
    made.catalog.remove("d.b", {"id": 900})
    assert (made.read(), made.counts()[2:]) == (made.rows, (1, 1))


def test_manifests_without_live_files_leave_and_each_is_read_once(made: Bucketed, monkeypatch: pytest.MonkeyPatch) -> None:
    made.commit([made.data(0, 1), made.data(1, 1)])
    read, plainly = list[str](), ManifestFile.fetch_manifest_entry

    def watched(self: ManifestFile, *given: Any, **named: Any) -> Any:
        read.append(self.manifest_path)
        return plainly(self, *given, **named)

    for _ in range(4):
        there, gone = {m.manifest_path for m in made.manifests}, [p for p in made.expected if made.bucket[p] == 0]
        with monkeypatch.context() as patch:
            patch.setattr(ManifestFile, "fetch_manifest_entry", watched)
            made.commit([made.data(0, 1)], gone=gone)
        assert len(read) == len(set(read)), read
        assert set(read) <= there
        read.clear()
    assert len(made.manifests) <= 3
    with monkeypatch.context() as patch:
        patch.setattr(ManifestFile, "fetch_manifest_entry", watched)
        made.commit([made.data(0, 1)], [made.deletes(1, {p: [0] for p in made.expected if made.bucket[p] == 1})])
    assert read == [], "nothing is removed, so nothing is read"
    assert made.read() == made.rows


def test_delete_manifests_are_merged_as_those_of_data(tmp_path: Path) -> None:
    made = Bucketed(lakes.catalog(tmp_path), **{"commit.manifest.min-count-to-merge": "3"})
    made.commit([made.data(0, 9)])
    (path,) = made.expected
    for n in range(7):
        made.commit([made.data(1, 1)], [made.deletes(0, {path: [n]})])
    per_content = [sum(m.content == content for m in made.manifests) for content in ManifestContent]
    assert max(per_content) < 4, per_content
    assert made.read() == made.rows
    assert made.counts() == (8, 16, 7, 7)
    assert len(made.facts[path].deletes) == 7


def test_delete_files_are_named_and_so_are_no_orphans(tmp_path: Path) -> None:
    with opened(tmp_path) as (_, lake):
        made = Bucketed(lake.catalog)
        made.commit([made.data(0, 4)])
        made.commit(deletes=[made.deletes(0, {next(iter(made.expected)): [2]})])
        left = made.deletes(0, {"nothing": [1]})
        named = named_files(made.table)
        assert {d for f in made.facts.values() for d in f.deletes} < named
        (found,) = find_orphans(lake, [TablePlan(table="d.b")], FAR, remove=True)
        assert found.orphans == 1
        assert not Path(made.table.table.location(), left.path).exists()
        assert made.read() == made.rows


@pytest.mark.usefixtures("small_hours")
def test_spark_reads_deletes_and_rewrites_the_same_rows(tmp_path: Path) -> None:
    with opened(tmp_path) as (_, lake):
        made = Bucketed(lake.catalog, **{"write.delete.mode": "merge-on-read", "write.delete.granularity": "file"})
        made.commit([made.data(0, 20), made.data(0, 20), made.data(1, 20)])
        one, two, other = sorted(made.expected)
        made.commit([made.data(0, 3)], [made.deletes(0, {one: [0, 7], two: [19]}), made.deletes(1, {other: [5]})])
        assert _by_spark(lake) == made.read() == made.rows
        row = made.expected[other][6]
        assert row is not None
        lake.spark.sql(f"DELETE FROM {sql_name('d.b')} WHERE id = {row[0]}")
        made.expected[other][6] = None
        assert _by_spark(lake) == made.read() == made.rows
        assert (made.counts()[1:], live_rows(made.table, made.table.main)) == ((63, 2, 5), 58)
        store = open_store(made.table.table.location())
        keys = [d.removeprefix(f"{store.uri}/") for d in made.facts[other].deletes]
        assert deleted_positions(store, keys, other).tolist() == [5, 6], "both writers' delete files"
        made.commit([made.data(1, 2)], gone=[other])
        assert _by_spark(lake) == made.read() == made.rows
        assert (made.counts()[1:], live_rows(made.table, made.table.main)) == ((45, 1, 3), 42)
        head = _rewritten_by_maintenance(lake, made)
        assert (sorted(_rows(lake, head)), made.table.summary(head)["total-delete-files"]) == (made.rows, "0")
        lake.spark.table(sql_name("d.b")).where("false").writeTo(sql_name("d.b")).overwrite(_true())
        assert (made.read(), live_rows(made.table, made.table.main), made.counts()[2:]) == ([], 0, (0, 0))


def _by_spark(lake: Lake) -> list[Row]:
    return sorted((r.id, r.v) for r in lake.spark.table(sql_name("d.b")).collect())


def _rows(lake: Lake, snapshot_id: int) -> list[Row]:
    return [(r.id, r.v) for r in lake.spark.read.option("versionAsOf", snapshot_id).table(sql_name("d.b")).collect()]


def _rewritten_by_maintenance(lake: Lake, made: Bucketed) -> int:
    """The snapshot of maintenance's rewrite, which compares the number of rows itself."""
    made.catalog.set_branch(made.table, "run_9_9", made.table.main)
    return _rewritten(lake, lake.spark, made.table, "run_9_9")


def _true() -> Any:
    from pyspark.sql import functions as F

    return F.expr("true")
