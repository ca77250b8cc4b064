"""What the schema files of a storage sink say to decode and order: the columns of table versions, and the statements (protocols.md 9.5).

They are read from the archive: a version's file never changes, and those up to the checkpoint are there when an hour is landed.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelake.archives import layout_of
from tidelake.archives.storage_sink import list_schemas, version_of
from tidelake.errors import OrderError
from tidelake.event import Shape
from tidelake.feed import Feed
from tidelake.lake.known import Known
from tidelake.storage import Store, open_store
from tidelake.table_schemas import TableSchema, parse_schema
from tidelake.window import Statement


def version_shapes(feed: Feed, sources: Iterable[str]) -> Known:
    """The columns of the table versions that these files are of, as `table@version`; none where messages name their columns.

    Raises OrderError (NO_TABLE_SCHEMA), ConfigError.
    """
    if feed.protocol != "csv" or not _is_sink(feed):
        return []
    archive = open_store(feed.source.uri)
    out: Known = []
    for database, table, version in sorted({version_of(key) for key in sources}):
        found = next((o.key for o in archive.objects(f"{database}/{table}/meta/schema_{version}_")), None)
        if found is None:
            raise OrderError(
                f"{archive.uri}: no schema file says the columns of version {version} of {database}.{table}",
                code="NO_TABLE_SCHEMA",
                remedy=f"bring {database}/{table}/meta/schema_{version}_….json back",
            )
        out.append((database, f"{table}@{version}", Shape(_parsed(archive, found).columns).json))
    return out


def sink_statements(feed: Feed, after_ts: int, until_ts: int) -> list[Statement]:
    """The statements from after_ts to until_ts (TSO, both included); none where messages carry them. Raises ConfigError."""
    if not _is_sink(feed):
        return []
    archive = open_store(feed.source.uri)
    keys = sorted((version, key) for key, version in list_schemas(archive).items() if after_ts <= version <= until_ts)
    found = (_parsed(archive, key) for _, key in keys)
    return [Statement(commit_ts=s.version, database=s.database, query=s.query) for s in found if s.query]


def _is_sink(feed: Feed) -> bool:
    return bool(layout_of(feed.source.layout or "").file_bits)


def _parsed(archive: Store, key: str) -> TableSchema:
    return parse_schema(archive.read(key), archive.uri_of(key))
