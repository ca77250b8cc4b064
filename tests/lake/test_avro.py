"""Manifests of tables with different partitions, read and written with kept schemas: the same as pyiceberg's own and fastavro's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyiceberg import manifest
from pyiceberg.avro.file import AvroFile, AvroOutputFile
from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.table import Table

from tests.lake import lakes
from tidelake.lake.catalogs import avro
from tidelake.lake.file_changes import _Manifest

PARTITIONS = {
    "d.none": (),
    "d.id": (("id", "bucket[2]"),),
    "d.v": (("v", "identity"),),
    "d.both": (("v", "identity"), ("id", "bucket[4]")),
}
ROWS = [(n, name) for n in range(12) for name in ("a", "b", "")]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    for kept in (avro._reader, avro._writer, avro._text, avro.entry_schema):
        kept.cache_clear()
    yield
    avro.keep_schemas()


@pytest.fixture
def tables(tmp_path: Path) -> list[Table]:
    """A table for each way to partition, with two appends."""
    catalog = lakes.catalog(tmp_path)
    catalog.claim_namespace("d", "shop")
    for name, partition in PARTITIONS.items():
        catalog.create(name, lakes.COLUMNS, partition=partition)
        for rows in (ROWS[:9], ROWS):
            catalog.append(name, lakes.batch(catalog.load(name), rows))
    return [catalog.load(name).table for name in PARTITIONS]


def manifests(table: Table) -> list[ManifestFile]:
    """Those of the current snapshot."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot.manifests(table.io)


def plain(value: Any) -> Any:
    """What pyiceberg read, as fastavro reads it: without names."""
    if isinstance(value, manifest.Record):
        return [plain(v) for v in value._data]
    if isinstance(value, dict) or type(value).__name__ == "LazyDict":
        return {k: plain(value[k]) for k in value}
    return plain(list(value)) if isinstance(value, tuple) else [plain(v) for v in value] if isinstance(value, list) else value


def content(path: str) -> tuple[dict[str, Any], list[Any]]:
    """Header and records of a file, without the random marker between its blocks."""
    with Path(path.removeprefix("file://")).open("rb") as file:
        read = fastavro.reader(file)
        return read.metadata, list(read)


def test_lists_and_entries_are_those_that_pyiceberg_reads(tables: list[Table], monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(plain(m), plain(m.fetch_manifest_entry(t.io))) for _ in range(2) for t in tables for m in manifests(t)]
    manifest.clear_manifest_cache()
    monkeypatch.setattr(manifest, "AvroFile", AvroFile)
    assert found == [(plain(m), plain(m.fetch_manifest_entry(t.io))) for _ in range(2) for t in tables for m in manifests(t)]
    assert len(found) == 2 * 2 * len(tables)
    assert sum(entry[4][4] for _, entries in found for entry in entries) == 2 * len(tables) * (9 + len(ROWS))


@pytest.mark.parametrize("content_of", [ManifestContent.DATA, ManifestContent.DELETES])
def test_a_manifest_is_the_one_that_pyiceberg_writes(
    tables: list[Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content_of: ManifestContent
) -> None:
    def write(path: str, t: Table, m: ManifestFile) -> ManifestFile:
        with _Manifest(content_of, t.spec(), t.schema(), t.io.new_output(path), m.added_snapshot_id, "gzip") as writer:
            for entry in m.fetch_manifest_entry(t.io):
                writer.existing(entry)
        return writer.to_manifest_file()

    todo = [(t, m) for t in tables for m in manifests(t)]
    kept = [write(f"{tmp_path}/kept{n}.avro", t, m) for n, (t, m) in enumerate(todo)]
    monkeypatch.setattr(manifest, "AvroOutputFile", AvroOutputFile)
    monkeypatch.setattr(_Manifest, "_with_partition", manifest.ManifestWriter._with_partition)
    for n, (t, m) in enumerate(todo):
        own = write(f"{tmp_path}/own{n}.avro", t, m)
        assert content(f"{tmp_path}/kept{n}.avro") == content(f"{tmp_path}/own{n}.avro")
        assert plain(kept[n])[2:] == plain(own)[2:]
    assert content(f"{tmp_path}/kept0.avro")[0]["content"] == {0: "data", 1: "deletes"}[content_of]
    assert content(f"{tmp_path}/kept0.avro")[0]["avro.codec"] == "deflate"


def test_readers_and_writers_are_made_once(tables: list[Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[str]()

    def noted(name: str) -> Any:
        make = getattr(avro, name)
        return lambda *given: made.append(name) or make(*given)

    for name in ("resolve_reader", "resolve_writer"):
        monkeypatch.setattr(avro, name, noted(name))
    avro._reader.cache_clear()
    for n in range(3):
        for table in tables:
            for m in manifests(table):
                entries = m.fetch_manifest_entry(table.io)
                path = table.io.new_output(f"{tmp_path}/{n}.avro")
                with _Manifest(ManifestContent.DATA, table.spec(), table.schema(), path, m.added_snapshot_id, "gzip") as writer:
                    writer.existing(entries[0])
    assert Counter(made) == {"resolve_reader": 1 + len(tables), "resolve_writer": len(tables)}  # one reader for lists
