"""pyiceberg's SQL catalog, without reading a metadata file twice and without a file system of its own for every table.

An hour loads each table a dozen times. The catalog's row says which metadata file is current, so it is asked every time; a metadata file
never changes under its name.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

_KEPT = 512  # metadata of so many tables, about 100 kB each


class SharedSqlCatalog(SqlCatalog):
    """A catalog whose tables share metadata and file systems. A table's metadata must not be changed in place."""

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self._io_of = lru_cache(self._new_io)
        self._metadata_at = lru_cache(_KEPT)(self._read)

    def _convert_orm_to_iceberg(self, orm_table: IcebergTables) -> Table:
        location = orm_table.metadata_location
        if location is None:
            return super()._convert_orm_to_iceberg(orm_table)
        return Table(
            identifier=(*Catalog.identifier_to_tuple(orm_table.table_namespace), orm_table.table_name),
            metadata=self._metadata_at(location),
            metadata_location=location,
            io=self._io_at(location),
            catalog=self,
        )

    def _io_at(self, location: str) -> FileIO:
        place = urlsplit(location)
        return self._io_of(f"{place.scheme}://{place.netloc}/")

    def _new_io(self, location: str) -> FileIO:
        return load_file_io(self.properties, location)

    def _read(self, location: str) -> TableMetadata:
        return FromInputFile.table_metadata(self._io_at(location).new_input(location))
