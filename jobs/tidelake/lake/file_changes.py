"""One snapshot that adds and removes files of a table, position deletes included.

pyiceberg commits no delete files. Its overwrite also reads every manifest twice, and keeps those without live files for ever. Here each
manifest is read at most once, and none if nothing is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    ManifestWriter,
    ManifestWriterV2,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Transaction
from pyiceberg.table.delete_file_index import DeleteFileIndex
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _ManifestMergeManager, _MergeAppendFiles

from tidelake.errors import StorageError
from tidelake.lake.catalogs.avro import entry_schema
from tidelake.spark.spread import THREADS


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """What a snapshot changes.

    added: data files and position delete files; gone: paths of data files that are removed; where: a filter that all of these meet, by
    which manifests are skipped; summary: properties of the snapshot.
    """

    added: Sequence[DataFile]
    gone: Collection[str] = ()
    where: BooleanExpression = field(default_factory=AlwaysTrue)
    summary: dict[str, str] = field(default_factory=dict)

    @property
    def operation(self) -> Operation:
        """The snapshot's operation (Iceberg spec, Snapshots)."""
        contents = {f.content for f in self.added}
        if self.gone or len(contents) > 1:
            return Operation.OVERWRITE
        return Operation.DELETE if DataFileContent.POSITION_DELETES in contents else Operation.APPEND


def add_snapshot(change: Transaction, branch: str, files: FileChange) -> list[str]:
    """Add a snapshot to a branch, in a transaction. Return the paths of the files that it removes.

    Position delete files that only concern removed data files are removed, too, so that `total-records` less `total-position-deletes`
    stays the number of rows.

    Args:
        change: The transaction.
        branch: The branch.
        files: What the snapshot changes. It may be nothing.

    Raises:
        StorageError: TABLE_MOVED: a file to remove is not in the branch.
        ValueError: A position delete file concerns removed data files and others, so rows could not be counted any more. Data files with
            deletes must be removed a partition at a time.

    Source: Iceberg spec, "Manifests", "Scan Planning" and "Snapshots".
    """
    with _Snapshot(change, branch, files) as snapshot:
        for file in files.added:
            snapshot.append_data_file(file)
    return sorted(f.file_path for f in snapshot._deleted_data_files)


class _Manifest(ManifestWriterV2):
    """A manifest of data files or of delete files."""

    def __init__(self, content: ManifestContent, *given: Any) -> None:
        super().__init__(*given)
        self._content = content

    def content(self) -> ManifestContent:
        return self._content

    @property
    def _meta(self) -> dict[str, str]:
        return super()._meta | {"content": "data" if self._content == ManifestContent.DATA else "deletes"}

    def _with_partition(self, format_version: Literal[1, 2, 3]) -> Schema:
        return entry_schema(format_version, self._spec.partition_type(self._schema))


class _Snapshot(_MergeAppendFiles):
    """pyiceberg's append with merged manifests, which can also remove files and has manifests of both contents."""

    _writes = ManifestContent.DATA  # content of the manifests that are being written

    def __init__(self, change: Transaction, branch: str, files: FileChange) -> None:
        super().__init__(files.operation, change, change._table.io, branch, snapshot_properties=files.summary)
        self._gone = frozenset(files.gone)
        self._predicate = files.where

    def new_manifest_writer(self, spec: PartitionSpec) -> ManifestWriter:
        return _Manifest(self._writes, spec, self.schema(), self.new_manifest_output(), self.snapshot_id, self._compression)

    def _manifests(self) -> list[ManifestFile]:
        kept = self._existing_manifests()
        touched = self._with_gone(kept) if self._gone else {}
        return [m for content in ManifestContent for m in self._of_content(content, [m for m in kept if m.content == content], touched)]

    def _of_content(
        self, content: ManifestContent, kept: Sequence[ManifestFile], touched: Mapping[ManifestFile, Sequence[ManifestEntry]]
    ) -> list[ManifestFile]:
        """The manifests of data files or of delete files. The files that are added go into the first one that is written again anyway."""
        self._writes = content
        spec = self._transaction.table_metadata.default_spec_id
        added = [f for f in self._added_data_files if (f.content == DataFileContent.DATA) == (content == ManifestContent.DATA)]
        again = [(m.partition_spec_id, touched[m]) for m in kept if m in touched]
        again.sort(key=lambda a: a[0] != spec)
        if added and [s for s, _ in again[:1]] != [spec]:
            again.insert(0, (spec, ()))
        written = [self._written(s, added if n == 0 else (), entries) for n, (s, entries) in enumerate(again)]
        return self._merged([*written, *(m for m in kept if m not in touched)])

    def _written(self, spec: int, added: Sequence[DataFile], entries: Sequence[ManifestEntry]) -> ManifestFile:
        with self.new_manifest_writer(self.spec(spec)) as writer:
            for file in added:
                writer.add(ManifestEntry.from_args(data_file=file))
            for entry in entries:
                if entry.data_file in self._deleted_data_files:
                    writer.delete(entry)
                else:
                    writer.existing(entry)
        return writer.to_manifest_file()

    def _merged(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        if len(manifests) < self._min_count_to_merge and sum(m.manifest_length for m in manifests) <= self._target_size_bytes:
            return manifests  # the manager merges none of these, in a thread of its own
        merging = _ManifestMergeManager(self._target_size_bytes, self._min_count_to_merge, self._merge_enabled, self)
        return merging.merge_manifests(manifests)

    def _with_gone(self, manifests: Sequence[ManifestFile]) -> dict[ManifestFile, list[ManifestEntry]]:
        """The manifests that have files to remove, with their live entries."""
        entries = self._entries(manifests)
        found = {e.data_file for of_manifest in entries.values() for e in of_manifest if self._goes(e)}
        if len(found) != len(self._gone):
            table = ".".join(self._transaction._table.name())
            raise StorageError(f"{table}: files that were read are no longer in snapshot {self._parent_snapshot_id}", code="TABLE_MOVED")
        found |= _deletes_without_data([e for of_manifest in entries.values() for e in of_manifest], self._goes)
        self._deleted_data_files |= found
        return {m: of_manifest for m, of_manifest in entries.items() if not found.isdisjoint(e.data_file for e in of_manifest)}

    def _goes(self, entry: ManifestEntry) -> bool:
        return entry.data_file.content == DataFileContent.DATA and entry.data_file.file_path in self._gone

    def _entries(self, manifests: Sequence[ManifestFile]) -> dict[ManifestFile, list[ManifestEntry]]:
        """The live entries of the manifests whose partitions may meet the filter."""
        may_meet = {s: self._build_manifest_evaluator(s) for s in {m.partition_spec_id for m in manifests}}
        read = [m for m in manifests if may_meet[m.partition_spec_id](m)]
        if len(read) <= 1:  # most tables have one, and threads take longer to start
            return {m: self.fetch_manifest_entry(m) for m in read}
        with ThreadPoolExecutor(THREADS) as pool:
            return dict(zip(read, pool.map(self.fetch_manifest_entry, read), strict=True))


def _deletes_without_data(entries: Sequence[ManifestEntry], goes: Callable[[ManifestEntry], bool]) -> set[DataFile]:
    """The position delete files that concern no data file but removed ones."""
    index = DeleteFileIndex()
    for entry in entries:
        if entry.data_file.content == DataFileContent.POSITION_DELETES:
            index.add_delete_file(entry, entry.data_file.partition)
    if index.is_empty():
        return set()
    of_gone, of_others = set[DataFile](), set[DataFile]()
    for entry in entries:
        if entry.data_file.content == DataFileContent.DATA:
            found = index.for_data_file(entry.sequence_number or 0, entry.data_file, entry.data_file.partition)
            (of_gone if goes(entry) else of_others).update(found)
    if both := of_gone & of_others:
        paths = ", ".join(sorted(f.file_path for f in both))
        raise ValueError(f"delete files also concern data files that stay: {paths}")
    return of_gone
