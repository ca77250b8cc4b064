"""pyiceberg's SQL catalog for many tables: no metadata file is read twice or after it was written here, and no file system is opened for
every table.

An hour loads each table a dozen times and commits to it four times. The catalog's row says which metadata file is current, so it is asked
every time; a metadata file never changes under its name. Both statements on that row are SQLAlchemy's Core: through its ORM, they take
longer than the rest of a load, and half as long as the rest of a commit that only moves a branch. Copies of metadata share their parts:
pyiceberg copies all of it three times a commit, which would take longer with each snapshot that is retained.
"""

from __future__ import annotations

from functools import lru_cache
from threading import Lock
from typing import Any, Self
from urllib.parse import urlsplit

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataV2
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.typedef import Identifier
from sqlalchemy import bindparam, select, update

_KEPT = 640  # metadata of so many tables: about 50 kB each, and 4 kB for each snapshot
_ROW = IcebergTables.metadata.tables[IcebergTables.__tablename__]
_THERE = (
    _ROW.c.catalog_name == bindparam("catalog"),
    _ROW.c.table_namespace == bindparam("namespace"),
    _ROW.c.table_name == bindparam("name"),
)
_MOVE = (
    update(_ROW)
    .where(*_THERE, _ROW.c.metadata_location == bindparam("base"))
    .values(metadata_location=bindparam("to"), previous_metadata_location=bindparam("base"))
)


class _SharedMetadata(TableMetadataV2):
    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self.model_copy()


class SharedSqlCatalog(SqlCatalog):
    """A catalog whose tables share metadata and file systems. A table's metadata must not be changed in place."""

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self._io_of = lru_cache(self._new_io)
        self._known = dict[str, TableMetadata]()
        self._lock = Lock()
        found = select(_ROW.c.metadata_location).where(*_THERE)
        tables_only = self._iceberg_type_filter()
        self._find = found if tables_only is None else found.where(tables_only)

    def load_table(self, identifier: str | Identifier) -> Table:
        """Return the table in its current state. Raises NoSuchTableError."""
        namespace, name = _parts(identifier)
        with self.engine.connect() as connection:
            location = connection.scalar(self._find, self._row(namespace, name))
        if location is None:
            raise NoSuchTableError(f"Table does not exist: {namespace}.{name}")
        return Table((*Catalog.identifier_to_tuple(namespace), name), self._metadata_at(location), location, self._io_at(location), self)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit updates to a table that exists.

        Raises:
            NoSuchTableError: It does not exist.
            CommitFailedException: A requirement is not met, or another client committed meanwhile.
        """
        now = self.load_table(table.name())
        staged = self._update_and_stage_table(now, table.name(), requirements, updates)
        if staged.metadata == now.metadata:
            return _response(now)
        self._write_metadata(metadata=staged.metadata, io=staged.io, metadata_path=staged.metadata_location)
        row = self._row(*_parts(table.name()))
        with self.engine.begin() as connection:
            moved = connection.execute(_MOVE, {**row, "base": now.metadata_location, "to": staged.metadata_location}).rowcount
        if moved == 0:
            raise CommitFailedException(f"Table has been updated by another process: {row['namespace']}.{row['name']}")
        with self._lock:
            self._known.pop(now.metadata_location, None)
        self._keep(staged.metadata_location, staged.metadata)
        return _response(staged)

    def _row(self, namespace: str, name: str) -> dict[str, Any]:
        return {"catalog": self.name, "namespace": namespace, "name": name}

    def _metadata_at(self, location: str) -> TableMetadata:
        known = self._known.get(location)
        if known is None:
            known = FromInputFile.table_metadata(self._io_at(location).new_input(location))
            if isinstance(known, TableMetadataV2):
                known = _SharedMetadata.model_construct(**dict(known))
            self._keep(location, known)
        return known

    def _keep(self, location: str, metadata: TableMetadata) -> None:
        with self._lock:
            self._known[location] = metadata
            if len(self._known) > _KEPT:
                del self._known[next(iter(self._known))]  # the first one that was read or written

    def _io_at(self, location: str) -> FileIO:
        place = urlsplit(location)
        return self._io_of(f"{place.scheme}://{place.netloc}/")

    def _new_io(self, location: str) -> FileIO:
        return load_file_io(self.properties, location)


def _response(table: Table) -> CommitTableResponse:
    return CommitTableResponse.model_validate({"metadata": table.metadata, "metadata-location": table.metadata_location})


def _parts(identifier: str | Identifier) -> tuple[str, str]:
    """Return namespace and name."""
    return Catalog.namespace_to_string(Catalog.namespace_from(identifier)), Catalog.table_name_from(identifier)
