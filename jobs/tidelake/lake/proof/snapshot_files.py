"""The files of a snapshot, from Iceberg's manifests alone: neither a catalog nor Spark is asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from pyiceberg.io import FileIO, load_file_io
from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntry, ManifestFile
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from tidelake.errors import DamageError
from tidelake.lake.cut import ProvenFile

_T = TypeVar("_T")
_READERS = 4  # manifests read concurrently


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """A file of a snapshot, without its sha256.

    added_by: the snapshot that added it; partition: values in the order of the partition spec.
    """

    file: ProvenFile
    added_by: int | None
    partition: tuple[Any, ...]


def proven_file(entry: DataFile, sha256: str | None) -> ProvenFile:
    """Return a file of Iceberg's metadata. Raises ValueError for an equality delete file, which Tidelake never writes."""
    if entry.content == DataFileContent.EQUALITY_DELETES:
        raise ValueError(f"{entry.file_path} is an equality delete file")
    deletes = entry.content == DataFileContent.POSITION_DELETES
    return ProvenFile(path=entry.file_path, sha256=sha256, size=entry.file_size_in_bytes, rows=entry.record_count, deletes=deletes)


def _snapshot_file(e: ManifestEntry) -> SnapshotFile:
    values = e.data_file.partition
    return SnapshotFile(proven_file(e.data_file, None), e.snapshot_id, tuple(values[i] for i in range(len(values))))


class TableFiles:
    """A table's metadata and how its files are read."""

    def __init__(self, metadata: TableMetadata, io: FileIO) -> None:
        self._metadata, self._io = metadata, io
        self._read: dict[str, list[SnapshotFile]] = {}  # manifest → its files: snapshots of a table have most manifests in common

    @classmethod
    def at(cls, location: str, settings: Mapping[str, str]) -> TableFiles:
        """Read a metadata file. settings: of pyiceberg's file system. Raises FileNotFoundError, and DamageError for other content."""
        io = load_file_io(dict(settings), location)
        return cls(_read(location, lambda: FromInputFile.table_metadata(io.new_input(location))), io)

    @property
    def uuid(self) -> str:
        """The table's UUID."""
        return str(self._metadata.table_uuid)

    @property
    def location(self) -> str:
        """The table's location."""
        return self._metadata.location

    def has(self, snapshot_id: int) -> bool:
        """Whether the metadata has the snapshot."""
        return self._metadata.snapshot_by_id(snapshot_id) is not None

    def files(self, snapshot_id: int) -> list[SnapshotFile]:
        """Return the live files of a snapshot of the metadata. Raises DamageError with the file of the metadata that cannot be read."""
        snapshot = self._metadata.snapshot_by_id(snapshot_id)
        assert snapshot is not None, "the caller asked"
        with ThreadPoolExecutor(_READERS) as pool:
            found = list(pool.map(self._of_manifest, _read(snapshot.manifest_list, lambda: snapshot.manifests(self._io))))
        return [file for of_manifest in found for file in of_manifest]

    def _of_manifest(self, manifest: ManifestFile) -> list[SnapshotFile]:
        path = manifest.manifest_path
        if path not in self._read:
            entries = _read(path, lambda: manifest.fetch_manifest_entry(self._io))
            self._read[path] = [_snapshot_file(e) for e in entries]
        return self._read[path]

    def columns(self, snapshot_id: int) -> dict[str, int]:
        """Return Iceberg's ids of the columns of a snapshot: of source columns by their source id as text, of others by name.

        Columns that only hold rows from before a change of type are left out.
        """
        snapshot = self._metadata.snapshot_by_id(snapshot_id)
        assert snapshot is not None, "the caller asked"
        schema = next(s for s in self._metadata.schemas if s.schema_id == snapshot.schema_id)
        marks = {f.field_id: re.match(r"(\d+)(~?):", f.doc or "") for f in schema.fields}
        names = {f.field_id: mark[1] if (mark := marks[f.field_id]) else f.name for f in schema.fields}
        return {names[i]: i for i, mark in marks.items() if mark is None or not mark[2]}

    def between(self, base: int, to: int) -> frozenset[int]:
        """Return the snapshots after `base` up to `to`; all ancestors of `to` if `base` is none of them."""
        return frozenset(s.snapshot_id for s in self._back(base, to))

    def _back(self, base: int, to: int) -> Iterator[Snapshot]:
        at = self._metadata.snapshot_by_id(to)
        while at is not None and at.snapshot_id != base:
            yield at
            at = None if at.parent_snapshot_id is None else self._metadata.snapshot_by_id(at.parent_snapshot_id)


def _read(location: str | None, read: Callable[[], _T]) -> _T:
    try:
        return read()
    except FileNotFoundError:
        raise
    except Exception as e:  # a damaged file raises whatever its bytes lead to
        raise DamageError(f"{location} cannot be read: {type(e).__name__}: {e}", remedy="restore an earlier version of the file") from e
