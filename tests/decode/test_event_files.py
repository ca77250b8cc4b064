"""Events that workers write to files themselves, and the commit that puts them into the events table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import ManifestFile

from tests.lake import lakes
from tidelake.decode import event_files
from tidelake.decode.event_files import EventsPlace, place, write_events
from tidelake.errors import StorageError
from tidelake.history.event import EVENT
from tidelake.io.object_store import Store
from tidelake.lake import data_files
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.data_files import WrittenFile, file_schema, replace_files
from tidelake.lake.events import ensure_events

HOUR, NEXT = "2026-01-05T10", "2026-01-05T11"
COLUMNS = pa.schema([pa.field("hour", pa.string()), *EVENT])


def batch(*offsets: int, kind: str = "row") -> pa.RecordBatch:
    """Events of one kind with every column filled that tells them apart."""
    rows = [
        {
            "topic": "t",
            "partition": 1,
            "offset": o,
            "ordinal": 0,
            "kind": kind,
            "commit_ts": 100 + o,
            "timestamp_ms": 1000 + o,
            "after": [b"%d" % o, None, b"\xff\x00"],
            "before": None if o % 2 else [],
            "raw_value": b"raw" * o,
        }
        for o in offsets
    ]
    return pa.RecordBatch.from_pylist(rows, schema=EVENT)


def mixed(*offsets: int) -> pa.RecordBatch:
    """Even ones are rows, odd ones resolved."""
    parts = [batch(o, kind="resolved" if o % 2 else "row") for o in offsets]
    return pa.Table.from_batches(parts).combine_chunks().to_batches()[0]


def events_of(folder: Path) -> tuple[LakeCatalog, LakeTable]:
    catalog = lakes.catalog(folder)
    return catalog, ensure_events(catalog, lakes.feed(folder))


def into(table: LakeTable, hour: str = HOUR) -> EventsPlace:
    return place(table.table.location(), file_schema(table, COLUMNS), hour, [])


def written(batches: Sequence[pa.RecordBatch], where: EventsPlace) -> list[WrittenFile]:
    """What workers write of these, as decode hands it on."""
    rows = [r for b in write_events(batches, where) for r in b.to_pylist()]
    return [WrittenFile(path=r["path"], partition=(where.hour, r["kind"]), size=r["size"], footer=r["footer"]) for r in rows]


def contents(catalog: LakeCatalog, table: LakeTable, hour: str) -> list[dict[str, Any]]:
    rows = catalog.load(table.identifier).scan({"hour": hour}).read_all().to_pylist()
    return sorted(rows, key=lambda r: r["offset"])


def objects(table: LakeTable) -> list[str]:
    return sorted(str(p) for p in Path(table.table.location(), "data").rglob("*.parquet"))


def test_what_is_written_is_read_back_by_kind_and_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_files, "ROW_GROUP_BYTES", 1)  # every batch a row group
    catalog, events = events_of(tmp_path)
    batches = [mixed(0, 1, 2), batch(4, 6), batch(3, kind="rejected")]
    files = written(batches, into(events))
    assert sorted(f.partition for f in files) == [(HOUR, "rejected"), (HOUR, "resolved"), (HOUR, "row")]
    replace_files(catalog, events.identifier, {"hour": HOUR}, files, {"tidelake.hour": HOUR})
    stood = catalog.load(events.identifier)
    expected = [{"hour": HOUR, **r} for b in batches for r in b.to_pylist()]
    assert contents(catalog, events, HOUR) == sorted(expected, key=lambda r: r["offset"])
    facts = {f.partition: (f.rows, f.upper, f.size) for f in stood.files({"hour": HOUR}, ["commit_ts", "timestamp_ms"], stood.main)}
    sizes = {f.partition: f.size for f in files}
    assert facts == {
        (HOUR, "row"): (4, {"commit_ts": 106, "timestamp_ms": 1006}, sizes[HOUR, "row"]),
        (HOUR, "resolved"): (1, {"commit_ts": 101, "timestamp_ms": 1001}, sizes[HOUR, "resolved"]),
        (HOUR, "rejected"): (1, {"commit_ts": 103, "timestamp_ms": 1003}, sizes[HOUR, "rejected"]),
    }
    summary = stood.summary(stood.main)
    assert (summary["tidelake.hour"], summary["total-records"], summary["total-data-files"]) == (HOUR, "6", "3")
    (rows,) = (p for p in objects(events) if "kind=row" in p)
    assert [pq.ParquetFile(rows).metadata.row_group(n).num_rows for n in range(2)] == [2, 2]


def test_an_hour_s_files_take_the_place_of_its_earlier_ones_and_of_no_others(tmp_path: Path) -> None:
    catalog, events = events_of(tmp_path)
    for hour, batches in ((HOUR, [mixed(0, 1, 2)]), (NEXT, [batch(7)]), (HOUR, [batch(5)])):
        replace_files(catalog, events.identifier, {"hour": hour}, written(batches, into(events, hour)), {"tidelake.hour": hour})
    assert [[r["offset"] for r in contents(catalog, events, h)] for h in (HOUR, NEXT)] == [[5], [7]]
    replace_files(catalog, events.identifier, {"hour": HOUR}, [], {"tidelake.hour": HOUR})
    replace_files(catalog, events.identifier, {"hour": "2026-01-05T12"}, [], {"tidelake.hour": "empty"})
    stood = catalog.load(events.identifier)
    assert [contents(catalog, events, HOUR), [r["offset"] for r in contents(catalog, events, NEXT)]] == [[], [7]]
    assert [s["tidelake.hour"] for s in stood.since(None) if "tidelake.hour" in s] == ["empty", HOUR, HOUR, NEXT, HOUR]
    assert stood.summary(stood.main)["total-records"] == "1"


@pytest.mark.parametrize("earlier", [True, False])
def test_of_two_that_replace_an_hour_at_once_the_last_one_stands(earlier: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, events = events_of(tmp_path)

    def put(*offsets: int) -> None:
        replace_files(catalog, events.identifier, {"hour": HOUR}, written([batch(*offsets)], into(events)), {"tidelake.hour": HOUR})

    if earlier:
        put(1)
    plain, turns = data_files._data_files, [1]

    def beside(*of: Any) -> Any:
        if turns:
            turns.pop()
            put(2, 3)
        return plain(*of)

    monkeypatch.setattr(data_files, "_data_files", beside)
    put(4)
    stood = catalog.load(events.identifier)
    assert ([r["offset"] for r in contents(catalog, events, HOUR)], stood.summary(stood.main)["total-records"]) == ([4], "1")


def test_manifests_of_other_hours_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, events = events_of(tmp_path)
    for hour in (HOUR, NEXT):
        replace_files(catalog, events.identifier, {"hour": hour}, written([batch(1)], into(events, hour)), {})
    read, plain = list[str](), ManifestFile.fetch_manifest_entry

    def watched(self: ManifestFile, *given: Any, **named: Any) -> Any:
        assert self.partitions is not None
        read.append(str(self.partitions[0].lower_bound))
        return plain(self, *given, **named)

    monkeypatch.setattr(ManifestFile, "fetch_manifest_entry", watched)
    replace_files(catalog, events.identifier, {"hour": HOUR}, written([batch(2)], into(events)), {})
    assert set(read) == {str(HOUR.encode())}


def test_manifests_are_merged_as_hours_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, events = events_of(tmp_path)
    with events.table.transaction() as change:
        change.set_properties({"commit.manifest.min-count-to-merge": "4"})
    for n in range(9):
        hour = f"2026-01-06T0{n}"
        replace_files(catalog, events.identifier, {"hour": hour}, written([batch(n)], into(events, hour)), {})
    table = catalog.load(events.identifier).table
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(table.io)) <= 4
    assert sorted(r["offset"] for r in catalog.load(events.identifier).scan().read_all().to_pylist()) == list(range(9))


@pytest.mark.parametrize("at", ["decode", "upload"])
def test_an_error_leaves_no_file(at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, events = events_of(tmp_path)
    uploads: list[str] = []

    def batches() -> Iterator[pa.RecordBatch]:
        yield mixed(0, 1)
        if at == "decode":
            raise StorageError("gone")

    where = into(events)
    store = event_files.open_store(where.location)
    plain = type(store).upload

    def upload(self: Store, key: str, path: Path) -> None:
        if uploads:
            raise StorageError("full")
        uploads.append(key)
        plain(self, key, path)

    monkeypatch.setattr(type(store), "upload", upload)
    with pytest.raises(StorageError, match="gone" if at == "decode" else "full"):
        list(write_events(batches(), where))
    assert (len(uploads), objects(events)) == (int(at == "upload"), [])
