"""Commit data files that workers wrote to a table.

Iceberg's writer for Spark takes rows one by one. A worker that has Arrow batches writes the same Parquet for a quarter of the CPU time,
without the JVM.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import compute_statistics_plan, data_file_statistics_from_parquet_metadata, parquet_path_to_id_mapping
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate
from pyiceberg.table.update.snapshot import ManageSnapshots
from pyiceberg.transforms import BucketTransform
from pyiceberg.typedef import Record
from pyiceberg.types import ListType, LongType, NestedField, StringType

from tidelake.config.lake_paths import MAIN, cut_of_branch
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.catalogs.errors import retried
from tidelake.lake.cut import FilesChange
from tidelake.lake.file_changes import FileChange, add_snapshot
from tidelake.lake.proof.snapshot_files import proven_file
from tidelake.lake.scans import Where
from tidelake.lake.to_iceberg import filter_of
from tidelake.spark.position_deletes import PATH_ID, POS_ID
from tidelake.spark.spread import THREADS

_FIELD_ID = "PARQUET:field_id"
_MERGED = {"commit.manifest-merge.enabled": "true"}  # otherwise every commit leaves a manifest that all later ones read
_DELETES = Schema(NestedField(PATH_ID, "file_path", StringType(), required=True), NestedField(POS_ID, "pos", LongType(), required=True))
_WHOLE_BOUNDS = {"write.metadata.metrics.default": "full"}  # a path that is cut off names no data file
_NO_RETRY = {"commit.retry.num-retries": "0"}  # pyiceberg's retry adds the files beside those of a concurrent commit, unchecked


class _Change(Transaction):
    """A transaction that caches its metadata. pyiceberg's deep-copies it and applies all staged updates at every access, thirty times a
    commit.
    """

    _asked: tuple[TableMetadata, tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        """The table's metadata with the staged updates."""
        base, updates = self._table.metadata, self._updates
        if self._asked is None or self._asked[0] is not base or self._asked[1] is not updates:
            self._asked = base, updates, super().table_metadata if updates else base
        return self._asked[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A Parquet file below a table's location.

    partition: values in the order of the spec; size: bytes; sha256: in hex, None for a table that no certificate has; footer: a Parquet
    metadata file.
    """

    path: str
    partition: tuple[Any, ...]
    size: int
    footer: bytes
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFiles:
    """A table after a commit to a branch, and what the commit changed."""

    table: LakeTable
    change: FilesChange


def file_schema(table: LakeTable, columns: pa.Schema) -> pa.Schema:
    """Return these columns with the table's field ids, as its data files must have them."""
    return pa.schema([_with_id(f, table.table) for f in columns])


def columns_of_files(table: LakeTable) -> pa.Schema:
    """Return all columns of the table, as its data files have them."""
    return file_schema(table, pa.schema([pa.field(f.name, _small(f.type)) for f in table.table.schema().as_arrow()]))


def _small(kind: pa.DataType) -> pa.DataType:
    """Return the type without pyiceberg's 64-bit offsets, which Tidelake's batches do not need."""
    if pa.types.is_large_list(kind):
        return pa.list_(_small(kind.value_type))
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(kind, kind)


def bucketed_by(table: LakeTable) -> tuple[int, int] | None:
    """Return (Iceberg's column id, number of buckets) if all files of a table are partitioned first by the same buckets, else None."""
    firsts = [spec.fields[0] if spec.fields else None for spec in table.table.specs().values()]
    found = {(f.source_id, f.transform.num_buckets) if f and isinstance(f.transform, BucketTransform) else None for f in firsts}
    return found.pop() if len(found) == 1 else None


def _with_id(column: pa.Field, table: Table) -> pa.Field:
    known, kind = table.schema().find_field(column.name), column.type
    if isinstance(known.field_type, ListType):
        kind = pa.list_(pa.field("element", kind.value_type, metadata={_FIELD_ID: str(known.field_type.element_id)}))
    return pa.field(column.name, kind, metadata={_FIELD_ID: str(known.field_id)})


def replace_files(catalog: LakeCatalog, identifier: str, where: Where, files: Sequence[WrittenFile], summary: dict[str, str]) -> None:
    """Replace the files that hold matching rows, in one commit. The commit is made even without files.

    where: must use partition columns, so that a file holds only matching rows or none.
    """

    def attempt() -> None:
        table = _loaded(catalog, identifier)
        matching = filter_of(where)
        gone = [task.file.file_path for task in table.scan(matching).plan_files()]
        with _Change(table) as change:
            added = list(_data_files(table.metadata, files))
            _put(change, MAIN, FileChange(added=added, gone=gone, where=matching, summary=summary))

    retried(identifier, attempt)


def stage_files(
    catalog: LakeCatalog,
    identifier: str,
    branch: str,
    base: int,
    gone: Collection[str],
    files: Sequence[WrittenFile],
    summary: dict[str, str],
    deletes: Sequence[WrittenFile] = (),
) -> StagedFiles:
    """Create a branch at snapshot `base` and change files on it, in one commit and one snapshot; remove branches of earlier attempts.

    Args:
        catalog: The lake's catalog.
        identifier: `namespace.table`.
        branch: The run's branch.
        base: Snapshot at which the branch begins.
        gone: Paths of data files of `base` that are removed. Position delete files that only concern them are removed with them.
        files: Data files that are added.
        summary: Properties of the snapshot.
        deletes: Position delete files that are added (position_deletes.write_position_deletes). They delete rows of data files of `base`
            that have their partition.

    Returns:
        The table after the commit, and its changed files.

    Raises:
        StorageError: TABLE_MOVED: a file to remove is not in `base`.
        ValueError: A position delete file of `base` concerns removed data files and others.
    """

    def attempt() -> StagedFiles:
        table = _loaded(catalog, identifier)
        left = [name for name in LakeTable(table).branches if cut_of_branch(name) is not None and name != branch]
        with _Change(table) as change:
            with ManageSnapshots(change) as refs:
                refs.create_branch(base, branch)
                for name in left:
                    refs.remove_branch(name)
            added = [*_data_files(table.metadata, files), *_delete_files(table.metadata, deletes)]
            removed = _put(change, branch, FileChange(added=added, gone=gone, summary=summary))
        digests = [f.sha256 for f in (*files, *deletes)]
        proven = [proven_file(entry, digest) for entry, digest in zip(added, digests, strict=True)]
        return StagedFiles(
            table=LakeTable(table),
            change=FilesChange(base=base, to=LakeTable(table).branch(branch), added=proven, removed=removed),
        )

    return retried(identifier, attempt)


def _loaded(catalog: LakeCatalog, identifier: str) -> Table:
    table = catalog.catalog.load_table(identifier)
    table.metadata = table.metadata.model_copy(update={"properties": table.metadata.properties | _NO_RETRY})
    return table


def _put(change: Transaction, branch: str, files: FileChange) -> list[str]:
    if _MERGED.items() - change.table_metadata.properties.items():
        change.set_properties(_MERGED)
    return add_snapshot(change, branch, files)


def _data_files(table: TableMetadata, files: Sequence[WrittenFile]) -> Iterator[DataFile]:
    """Yield the table's entry of each file, from its footer."""
    return _entries(table, files, DataFileContent.DATA, table.schema(), table.properties)


def _delete_files(table: TableMetadata, files: Sequence[WrittenFile]) -> Iterator[DataFile]:
    """Yield the table's entry of each position delete file."""
    return _entries(table, files, DataFileContent.POSITION_DELETES, _DELETES, _WHOLE_BOUNDS)


def _entries(
    table: TableMetadata, files: Sequence[WrittenFile], content: DataFileContent, schema: Schema, metrics: dict[str, str]
) -> Iterator[DataFile]:
    plan, columns = compute_statistics_plan(schema, metrics), parquet_path_to_id_mapping(schema)
    for file in files:
        footer = pq.read_metadata(io.BytesIO(file.footer))
        entry = DataFile.from_args(
            content=content,
            file_path=f"{table.location}/{file.path}",
            file_format=FileFormat.PARQUET,
            partition=Record(*file.partition),
            file_size_in_bytes=file.size,
            sort_order_id=None,
            equality_ids=None,
            key_metadata=None,
            **data_file_statistics_from_parquet_metadata(footer, plan, columns).to_serialized_dict(),
        )
        entry.spec_id = table.default_spec_id
        yield entry


def lowest(table: LakeTable, where: Where, column: str) -> Any:
    """Return the lowest value of a column in main's files that may hold matching rows, from the files' metrics; None if they have none."""
    field = table.table.schema().find_field(column)
    files = (task.file for task in table.table.scan(filter_of(where), snapshot_id=table.main).plan_files())
    low = (b for f in files if (b := (f.lower_bounds or {}).get(field.field_id)) is not None)
    return min((from_bytes(cast(Any, field.field_type), b) for b in low), default=None)


def named_files(table: LakeTable) -> set[str]:
    """Return the locations of all files in the table's metadata, for all its snapshots: metadata, manifests, data and deletes."""
    loaded, metadata = table.table, table.table.metadata
    named = {loaded.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
    named |= {s.statistics_path for s in (*metadata.statistics, *metadata.partition_statistics)}
    named |= {s.manifest_list for s in metadata.snapshots if s.manifest_list}
    with ThreadPoolExecutor(THREADS) as pool:
        listed = pool.map(lambda s: s.manifests(loaded.io), metadata.snapshots)
        manifests = {m.manifest_path: m for found in listed for m in found}
        entries = pool.map(lambda m: [e.data_file.file_path for e in m.fetch_manifest_entry(loaded.io)], manifests.values())
        return named.union(manifests, *entries)
