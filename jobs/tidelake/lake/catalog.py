"""The Iceberg catalog without a JVM: namespaces, tables, columns, branches and small appends.

Every source column carries its id in the column's documentation (`3: decimal(12,2)`). The id distinguishes a rename from a new column.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import pyarrow as pa
from pyiceberg import exceptions
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import IncrementalAppendScan, Table
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.table.update import AssertRefSnapshotId, RemoveSnapshotRefUpdate, SetCurrentSchemaUpdate, SetSnapshotRefUpdate
from pyiceberg.transforms import parse_transform
from pyiceberg.types import NestedField
from sqlalchemy.exc import IntegrityError

from tidelake.config.lake_paths import BUCKET, MAIN
from tidelake.errors import ConfigError, StorageError
from tidelake.lake.catalogs.client import catalog_client
from tidelake.lake.catalogs.errors import named, retried
from tidelake.lake.causes import lost_file
from tidelake.lake.owner import OWNER, refuse_foreign, whose
from tidelake.lake.scans import FileFacts, Where
from tidelake.lake.to_iceberg import LIST_ELEMENT_IDS, bounds_of, filter_of, iceberg_type, written
from tidelake.spark.lake_settings import LakeSettings

_PROPERTIES = {
    "format-version": "2",
    "write.parquet.compression-codec": "zstd",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "commit.retry.num-retries": "10",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeColumn:
    """A column of a lake table. type: as history.ddl.column_types.lake_type writes it; doc: free text. For source columns doc is
    `<id>: <MySQL type>`, with `~` after the id where a column of another type has replaced this one in a changelog.
    """

    name: str
    type: str
    doc: str | None = None

    @property
    def source_id(self) -> int | None:
        """The source column's id, None for Tidelake's own columns."""
        match = re.match(r"(\d+)~?:", self.doc or "")
        return int(match[1]) if match else None

    @property
    def retired(self) -> bool:
        """Whether the column only holds rows from before a change of type."""
        return bool(re.match(r"\d+~:", self.doc or ""))


class LakeTable:
    """A table in the state in which it was loaded."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @property
    def identifier(self) -> str:
        """`namespace.table`."""
        return ".".join(self.table.name())

    @property
    def uuid(self) -> str:
        """The table's UUID, which renames do not change."""
        return str(self.table.metadata.table_uuid)

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return dict(self.table.properties)

    def require(self, feed: str) -> None:
        """Raise OwnershipError (NOT_OURS) unless the table carries this feed's mark."""
        refuse_foreign(self.identifier, self.properties.get(OWNER), feed)

    @property
    def metadata(self) -> str:
        """The location of the table's metadata."""
        return self.table.metadata_location

    @property
    def main(self) -> int:
        """The newest snapshot of the main branch."""
        return self.branch(MAIN)

    @property
    def branches(self) -> list[str]:
        """All branches but main."""
        return [name for name in self.table.refs() if name != MAIN]

    def branch(self, name: str) -> int:
        """The newest snapshot of a branch. Raises StorageError (NOT_FOUND)."""
        ref = self.table.refs().get(name)
        if ref is None:
            raise StorageError(f"{self.identifier} has no branch {name!r}", code="NOT_FOUND")
        return int(ref.snapshot_id)

    def columns(self, snapshot_id: int | None = None) -> list[LakeColumn]:
        """Return the columns, now or as of a snapshot."""
        schema = self.table.schema() if snapshot_id is None else self._schema_at(snapshot_id)
        return [LakeColumn(name=f.name, type=written(f.field_type), doc=f.doc) for f in schema.fields]

    def summary(self, snapshot_id: int) -> dict[str, str]:
        """Return the summary of a snapshot. Raises StorageError (NOT_FOUND)."""
        snapshot = self.table.snapshot_by_id(snapshot_id)
        if snapshot is None:
            raise StorageError(f"{self.identifier} has no snapshot {snapshot_id}", code="NOT_FOUND")
        return {} if snapshot.summary is None else {k: str(v) for k, v in snapshot.summary.additional_properties.items()}

    def fields(self, snapshot_id: int | None = None) -> dict[int, tuple[int, str]]:
        """Return the source columns, now or as of a snapshot: source id → (Iceberg field id, name)."""
        schema = self.table.schema() if snapshot_id is None else self._schema_at(snapshot_id)
        ids = ((LakeColumn(name=f.name, type="", doc=f.doc), f.field_id) for f in schema.fields)
        return {c.source_id: (i, c.name) for c, i in ids if c.source_id is not None}

    def field_ids(self, snapshot_id: int | None = None) -> dict[str, int]:
        """Return Iceberg's ids of all columns by name, now or as of a snapshot."""
        schema = self.table.schema() if snapshot_id is None else self._schema_at(snapshot_id)
        return {f.name: f.field_id for f in schema.fields}

    def stands_at(self, snapshot_id: int) -> bool:
        """Return whether main is at this snapshot and the table has that snapshot's columns."""
        return self.main == snapshot_id and self.table.schema().schema_id == self._schema_at(snapshot_id).schema_id

    def since(self, snapshot_id: int | None) -> Iterator[dict[str, str]]:
        """Yield the summaries of main's snapshots after this one, newest first; of all retained ones if this one is not among them."""
        at: int | None = self.main
        while at is not None and at != snapshot_id and (snapshot := self.table.snapshot_by_id(at)) is not None:
            yield self.summary(at)
            at = snapshot.parent_snapshot_id

    def scan(
        self, where: Where | None = None, columns: Sequence[str] = ("*",), snapshot_id: int | None = None, limit: int | None = None
    ) -> pa.RecordBatchReader:
        """Return matching rows as a stream of record batches. where: column → value, None, list of values, or After for a range."""
        scan = self.table.scan(filter_of(where or {}), selected_fields=tuple(columns), snapshot_id=snapshot_id, limit=limit)
        return scan.to_arrow_batch_reader()

    def added(self, base: int, to: int, columns: Sequence[str], where: Where | None = None, limit: int | None = None) -> pa.Table:
        """Return matching rows appended after snapshot `base`, up to and including snapshot `to`, in memory; no more than `limit`."""
        return self._appended(base, to, row_filter=filter_of(where or {}), selected_fields=tuple(columns), limit=limit).to_arrow()

    def _appended(self, base: int, to: int, **options: Any) -> IncrementalAppendScan:
        return self.table.incremental_append_scan(from_snapshot_id_exclusive=base, to_snapshot_id_inclusive=to, **options)

    def files(self, where: Where, bounds: Sequence[str | int], snapshot_id: int, after: int | None = None) -> Iterator[FileFacts]:
        """Yield the data files that may hold matching rows, with facts from the table's metadata. No data file is opened.

        bounds: names or field ids of the columns whose bounds are wanted; after: leave out files appended up to this snapshot.
        """
        fields, matching = {c: self.table.schema().find_field(c) for c in bounds}, filter_of(where)
        whole = self.table.scan(matching, snapshot_id=snapshot_id)
        for task in (whole if after is None else self._appended(after, snapshot_id, row_filter=matching)).plan_files():
            lower, upper = bounds_of(fields, task.file.lower_bounds), bounds_of(fields, task.file.upper_bounds)
            values = task.file.partition
            partition = tuple(values[i] for i in range(len(values)))
            f, deletes = task.file, tuple(sorted(d.file_path for d in task.delete_files))
            yield FileFacts(f.file_path, partition, f.record_count, f.file_size_in_bytes, lower, upper, deletes)

    def _schema_at(self, snapshot_id: int) -> Schema:
        snapshot = self.table.snapshot_by_id(snapshot_id)
        if snapshot is None:
            raise StorageError(f"{self.identifier} has no snapshot {snapshot_id}", code="NOT_FOUND")
        return next(s for s in self.table.metadata.schemas if s.schema_id == snapshot.schema_id)


class LakeCatalog:
    """The control plane of a catalog. Every change is one atomic commit; a commit that lost a race is retried, a changed base is refused.

    The catalog is opened, and a new SQLite file created, at the first request.
    """

    def __init__(self, settings: LakeSettings) -> None:
        self.settings = settings
        self._lock = Lock()

    @cached_property
    def catalog(self) -> IcebergCatalog:
        """The pyiceberg catalog."""
        if self.settings.sqlite is not None:
            self.settings.sqlite.parent.mkdir(parents=True, exist_ok=True)
        return catalog_client(self.settings.iceberg)

    @property
    def is_new(self) -> bool:
        """Whether the catalog is a SQLite file that does not exist yet. Such a catalog is empty, and a request would create the file."""
        return self.settings.sqlite is not None and not self.settings.sqlite.exists()

    def namespaces(self) -> dict[str, str | None]:
        """Return all namespaces with the feed that owns each: None where Tidelake did not create it."""
        names = [".".join(n) for n in self.catalog.list_namespaces()]
        return {n: self.catalog.load_namespace_properties(n).get(OWNER) for n in names}

    def refuse_taken(self, namespace: str, feed: str) -> None:
        """Raise ConfigError if the namespace exists and this feed does not own it."""
        try:
            owner = self.catalog.load_namespace_properties(namespace).get(OWNER)
        except exceptions.NoSuchNamespaceError:
            return
        if owner != feed:
            raise ConfigError(
                f"namespace {namespace!r} of the lake {whose(owner)}, feed {feed!r} may not write there",
                remedy='set [lake] namespace = "{feed}_{database}" in its feed.toml',
            )

    def claim_namespace(self, namespace: str, feed: str) -> None:
        """Create the namespace for a feed if it does not exist. Raises ConfigError if this feed does not own it."""
        with self._lock, suppress(exceptions.NamespaceAlreadyExistsError, IntegrityError):  # another process may create it at the same time
            if not self.catalog.namespace_exists(namespace):
                self.catalog.create_namespace(namespace, {OWNER: feed})
        self.refuse_taken(namespace, feed)

    def release_namespace(self, namespace: str, feed: str) -> None:
        """Drop a namespace that the feed owns if it is empty."""
        with suppress(exceptions.NoSuchNamespaceError, exceptions.NamespaceNotEmptyError):
            owner = self.catalog.load_namespace_properties(namespace).get(OWNER)
            if owner == feed and not self.tables(namespace):
                self.catalog.drop_namespace(namespace)

    def create(
        self,
        identifier: str,
        columns: Sequence[LakeColumn],
        *,
        partition: Sequence[tuple[str, str]] = (),
        sort: Sequence[str] = (),
        properties: dict[str, str] | None = None,
    ) -> LakeTable:
        """Create a table with an empty first snapshot.

        Args:
            identifier: `namespace.table`.
            columns: The table's columns.
            partition: Pairs (column, transform), such as `bucket[8]`.
            sort: Columns of the sort order.
            properties: Table properties beside Tidelake's defaults.

        Raises:
            StorageError: TABLE_EXISTS; TABLE_MOVED where the namespace was dropped.
        """
        schema = _schema(columns)
        ids = {f.name: f.field_id for f in schema.fields}
        spec = PartitionSpec(
            *(PartitionField(ids[name], 1000 + i, parse_transform(t), _part_name(name, t)) for i, (name, t) in enumerate(partition))
        )
        order = SortOrder(*(SortField(ids[name], parse_transform("identity")) for name in sort))
        location = f"{self.settings.warehouse}/{identifier.replace('.', '/')}-{uuid.uuid4().hex[:8]}"
        with named(identifier):
            table = self.catalog.create_table(identifier, schema, location, spec, order, _PROPERTIES | (properties or {}))
            table.append(table.schema().as_arrow().empty_table())
        return self.load(identifier)

    def find(self, identifier: str) -> LakeTable | None:
        """Return the table, None if it does not exist."""
        try:
            return LakeTable(self.catalog.load_table(identifier))
        except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError):
            return None
        except FileNotFoundError as e:
            raise lost_file(f"table {identifier}", e) from e

    def find_own(self, identifier: str, feed: str) -> LakeTable | None:
        """Return the feed's table, None if it does not exist. Raises OwnershipError (NOT_OURS) for a table without the feed's mark."""
        found = self.find(identifier)
        if found is not None:
            found.require(feed)
        return found

    def load(self, identifier: str) -> LakeTable:
        """Return the table. Raises StorageError (NOT_FOUND)."""
        found = self.find(identifier)
        if found is None:
            raise StorageError(f"the lake has no table {identifier}", code="NOT_FOUND")
        return found

    def tables(self, namespace: str) -> list[str]:
        """Return the identifiers of a namespace's tables; an empty list if the namespace does not exist."""
        try:
            return sorted(".".join(t) for t in self.catalog.list_tables(namespace))
        except exceptions.NoSuchNamespaceError:
            return []

    def rename(self, identifier: str, to: str) -> None:
        """Rename a table. Raises StorageError: TABLE_EXISTS for a name that is taken, TABLE_MOVED."""
        with named(to):
            self.catalog.rename_table(identifier, to)

    def drop(self, identifier: str, feed: str) -> None:
        """Remove a feed's table from the catalog; maintenance removes its files later. Raises OwnershipError (NOT_OURS), StorageError."""
        self.load(identifier).require(feed)
        with named(identifier):
            self.catalog.drop_table(identifier)

    def append(self, identifier: str, rows: pa.Table, summary: dict[str, str] | None = None) -> int:
        """Append a few rows, or none, in one commit. Returns the new snapshot's id."""

        def attempt() -> int:
            table = self.catalog.load_table(identifier)
            table.append(rows.cast(table.schema().as_arrow()), snapshot_properties=summary or {})
            return self.load(identifier).main

        return retried(identifier, attempt)

    def remove(self, identifier: str, where: Where) -> None:
        """Remove the rows with these values in one commit. At least one row must match."""
        retried(identifier, lambda: self.catalog.load_table(identifier).delete(filter_of(where)))

    def set_branch(self, table: LakeTable, name: str, snapshot_id: int) -> None:
        """Make a branch point at a snapshot; create the branch if it does not exist."""
        now = table.table.refs().get(name)
        was = _is_at(name, now.snapshot_id if now else None)
        retried(table.identifier, lambda: self.catalog.commit_table(table.table, (was,), (_put_at(name, snapshot_id),)))

    def drop_branches(self, table: LakeTable, names: Sequence[str]) -> None:
        """Remove branches. Snapshots that only these branches held become garbage."""
        updates = tuple(_removed(name) for name in names)
        if updates:
            retried(table.identifier, lambda: self.catalog.commit_table(table.table, (), updates))

    def advance(self, table: LakeTable, base: int, to: int, branch: str) -> str:
        """Move main from `base` to snapshot `to` of the branch and drop the branch, in one commit. Return the location of the metadata.

        Raises StorageError (TABLE_MOVED) if main or the branch moved.
        """
        with named(table.identifier):
            there, moved = (_is_at(MAIN, base), _is_at(branch, to)), (_put_at(MAIN, to), _removed(branch))
            return self.catalog.commit_table(table.table, there, moved).metadata_location

    def restore(self, table: LakeTable, base: int, to: int) -> str:
        """Move main from `base` to any snapshot of the table, with that snapshot's columns, in one commit. Return the metadata's location.

        A column that was dropped after that snapshot returns with its values. Raises StorageError (TABLE_MOVED) if main moved.
        """
        columns = SetCurrentSchemaUpdate.model_validate({"schema-id": table._schema_at(to).schema_id})
        with named(table.identifier):
            return self.catalog.commit_table(table.table, (_is_at(MAIN, base),), (_put_at(MAIN, to), columns)).metadata_location

    def set_properties(self, identifier: str, properties: dict[str, str]) -> None:
        """Set properties of a table in one commit."""
        retried(identifier, lambda: self.catalog.load_table(identifier).transaction().set_properties(properties).commit_transaction())

    def evolve(self, identifier: str, change: Callable[[Any], None]) -> LakeTable:
        """Change the columns in one commit. `change` receives pyiceberg's UpdateSchema."""

        def attempt() -> LakeTable:
            with self.catalog.load_table(identifier).update_schema(allow_incompatible_changes=True) as update:
                change(update)
            return self.load(identifier)

        return retried(identifier, attempt)


def _schema(columns: Sequence[LakeColumn]) -> Schema:
    fields = (
        NestedField(i, c.name, iceberg_type(c.type, LIST_ELEMENT_IDS + i), required=False, doc=c.doc) for i, c in enumerate(columns, 1)
    )
    return Schema(*fields)


def _is_at(ref: str, snapshot_id: int | None) -> AssertRefSnapshotId:
    return AssertRefSnapshotId.model_validate({"ref": ref, "snapshot-id": snapshot_id})


def _put_at(ref: str, snapshot_id: int) -> SetSnapshotRefUpdate:
    return SetSnapshotRefUpdate.model_validate({"ref-name": ref, "type": SnapshotRefType.BRANCH, "snapshot-id": snapshot_id})


def _removed(ref: str) -> RemoveSnapshotRefUpdate:
    return RemoveSnapshotRefUpdate.model_validate({"ref-name": ref})


def _part_name(column: str, transform: str) -> str:
    kind = transform.partition("[")[0]
    return BUCKET if kind == "bucket" else column if kind == "identity" else f"{column}_{kind}"
