"""Read a storage sink's schema files (docs/reference/protocols.md 9.5): columns of table versions for decode, statements for order.

They are read from the lake, where landing has put those up to the end of its hour. For hours that an earlier version landed without them,
they are read from the archive and kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelake.archives import layout_of
from tidelake.archives.storage_sink import list_schemas, schema_version, version_of
from tidelake.config.feed import Feed
from tidelake.config.lake_paths import sink_schemas
from tidelake.decode.known import KnownTables
from tidelake.errors import OrderError
from tidelake.history.event import RowSchema
from tidelake.history.window import Statement
from tidelake.io.storage import Store, open_store
from tidelake.land.frozen_sink import freeze_schemas
from tidelake.land.sink_hours import sink_state
from tidelake.protocols.table_schemas import SinkTableSchema, parse_schema
from tidelake.tso import at, format_hour


def version_schemas(feed: Feed, sources: Iterable[str]) -> KnownTables:
    """Return the columns of the table versions of these files, as `table@version`; none if messages name their columns.

    Raises OrderError (NO_TABLE_SCHEMA), ConfigError.
    """
    if feed.protocol != "csv" or not _is_sink(feed):
        return []
    lake = open_store(feed.lake.uri)
    out: KnownTables = []
    for database, table, version in sorted({version_of(key) for key in sources}):
        key = f"{database}/{table}/meta/schema_{version}_"
        found = _first(lake, f"{sink_schemas(feed.name)}{key}") or _fetched(feed, lake, key)
        if found is None:
            raise OrderError(
                f"{feed.source.uri}: no schema file has the columns of version {version} of {database}.{table}",
                code="NO_TABLE_SCHEMA",
                remedy=f"restore {key}….json",
            )
        out.append((database, f"{table}@{version}", RowSchema(_parsed(lake, found).columns).json))
    return out


def sink_statements(feed: Feed, after_ts: int, until_ts: int) -> list[Statement]:
    """Return the statements from after_ts to until_ts (TSO, both included); none if messages carry them. Raises ConfigError."""
    if not _is_sink(feed):
        return []
    lake = open_store(feed.lake.uri)
    state = sink_state(lake, feed.name, format_hour(at(until_ts)))
    if state is None or not state.schemas_frozen:
        archive = open_store(feed.source.uri)
        freeze_schemas(archive, lake, feed.name, list_schemas(archive))
    versions = ((schema_version(info.key), info.key) for info in lake.objects(sink_schemas(feed.name)))
    keys = sorted((version, key) for version, key in versions if version is not None and after_ts <= version <= until_ts)
    found = (_parsed(lake, key) for _, key in keys)
    return [Statement(commit_ts=s.version, database=s.database, query=s.query) for s in found if s.query]


def _first(store: Store, prefix: str) -> str | None:
    return next((info.key for info in store.objects(prefix)), None)


def _fetched(feed: Feed, lake: Store, prefix: str) -> str | None:
    """Copy the archive's file to the lake and return its key there."""
    archive = open_store(feed.source.uri)
    key = _first(archive, prefix)
    if key is None:
        return None
    freeze_schemas(archive, lake, feed.name, [key])
    return f"{sink_schemas(feed.name)}{key}"


def _is_sink(feed: Feed) -> bool:
    return feed.source.layout is not None and bool(layout_of(feed.source.layout).file_bits)  # live topics have no layout


def _parsed(lake: Store, key: str) -> SinkTableSchema:
    return parse_schema(lake.read(key), lake.uri_of(key))
