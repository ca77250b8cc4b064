"""Archive of changelogs: Parquet files that maintenance removes, copied as they are, with a manifest (docs/maintenance.md).

<uri>/<feed>/<table>/day=2026-01-05/<file>.parquet          or hour=2026-01-05T10, as the changelog was partitioned then
<uri>/<feed>/<table>/manifests/<first>_<last>-<hash>.json   one per table and maintenance; hash: of the files' keys

Nothing is overwritten, so an interrupted copy can continue. Every copy is read back and its rows are counted before anything is removed.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from tidelake.errors import ConfigError, StorageError
from tidelake.io.documents import Document
from tidelake.io.storage import Store, open_store
from tidelake.lake.catalog import LakeTable
from tidelake.lake.opened import Lake
from tidelake.lake.scans import plain
from tidelake.maintenance.changelog_age import OldFile

_COPIES = 4  # parallel copies; each needs scratch space for its file


class ArchivedColumn(BaseModel):
    """A column of the table. id: Iceberg's field id, which Parquet files carry; files from before a rename have the older name."""

    id: int
    name: str
    type: str
    doc: str | None


class ArchivedFile(BaseModel):
    """A copied file, with its smallest and largest commit ts (TSO)."""

    key: str
    rows: int
    bytes: int
    sha256: str
    first_ts: int
    last_ts: int


class ArchivedChangelog(Document):
    """A manifest.

    Attributes:
        cut: The newest cut when this was copied. If two manifests cover a change, the one with the larger cut is valid.
        changelog_retained_after: The changelog has all changes after this TSO.
    """

    feed: str
    table: str
    uuid: str
    cut: int
    changelog_retained_after: int
    first: str
    last: str
    first_ts: int
    last_ts: int
    rows: int
    bytes: int
    columns: list[ArchivedColumn]
    files: list[ArchivedFile]


def refuse_own_warehouse(lake: Lake) -> None:
    """Raise ConfigError if the archive is in the warehouse: maintenance removes files there that belong to no table."""
    uri = lake.feed.maintenance.archive_changelog
    if uri is not None and f"{open_store(uri).uri}/".startswith(f"{open_store(lake.settings.warehouse).uri}/"):
        raise ConfigError(
            f"{lake.feed.folder / 'feed.toml'}: maintenance.archive_changelog: {uri} is in the lake's warehouse",
            remedy="use a separate location for the archive",
        )


def folder(feed: str, identifier: str) -> str:
    """Return the prefix of a table's archive."""
    return f"{feed}/{identifier}/"


def archive(lake: Lake, uri: str, table: LakeTable, files: Sequence[OldFile], cut: int, gone: int) -> str:
    """Copy files of a changelog that are not copied yet; return the manifest's URI. Raises StorageError (ARCHIVE_DIFFERS)."""
    store, prefix = open_store(uri), folder(lake.feed.name, table.identifier)

    def one(f: OldFile) -> ArchivedFile:
        return _copied(store, f"{prefix}{f.span}={f.name}/{f.path.rpartition('/')[2]}", f)

    with ThreadPoolExecutor(_COPIES) as pool:
        copies = list(pool.map(one, files))
    rows = sum(f.rows for f in files)
    if sum(c.rows for c in copies) != rows:
        raise StorageError(
            f"{table.identifier}: {rows:,} rows should be removed, {sum(c.rows for c in copies):,} are in {uri}; nothing is removed",
            code="ARCHIVE_DIFFERS",
        )
    names = {c.name: c for c in table.columns()}
    manifest = ArchivedChangelog(
        feed=lake.feed.name,
        table=table.identifier,
        uuid=table.uuid,
        cut=cut,
        changelog_retained_after=gone,
        first=files[0].name,
        last=files[-1].name,
        first_ts=min(c.first_ts for c in copies),
        last_ts=max(c.last_ts for c in copies),
        rows=rows,
        bytes=sum(c.bytes for c in copies),
        columns=[ArchivedColumn(id=f.field_id, name=f.name, type=names[f.name].type, doc=f.doc) for f in table.table.schema().fields],
        files=copies,
    )
    same = hashlib.sha256("\n".join(c.key for c in copies).encode()).hexdigest()[:12]
    key = f"{prefix}manifests/{manifest.first}_{manifest.last}-{same}.json"
    store.put_if_absent(key, manifest.model_dump_json(indent=1).encode())
    return store.uri_of(key)


def _copied(store: Store, key: str, f: OldFile) -> ArchivedFile:
    """Copy a file and read the copy back."""
    place, _, name = plain(f.path).rpartition("/")
    with tempfile.TemporaryDirectory(prefix="tidelake-archive-") as scratch:
        path = Path(scratch) / "file.parquet"
        if store.head(key) is None:
            open_store(place).download(name, path)
            store.upload(key, path)
        digest, size = store.download(key, path), path.stat().st_size
        footer = _footer(path)
    rows = 0 if footer is None else footer.num_rows
    if footer is None or (size, rows) != (f.bytes, f.rows):
        raise StorageError(
            f"{store.uri_of(key)}: {rows:,} rows in {size:,} bytes, {f.path} has {f.rows:,} in {f.bytes:,}; nothing is removed",
            code="ARCHIVE_DIFFERS",
            remedy="if it is not a complete copy, remove it and run again",
        )
    at = footer.schema.names.index("_commit_ts")
    groups = [footer.row_group(i).column(at).statistics for i in range(footer.num_row_groups)]
    first_ts, last_ts = min(g.min for g in groups), max(g.max for g in groups)
    return ArchivedFile(key=key, rows=rows, bytes=size, sha256=digest, first_ts=first_ts, last_ts=last_ts)


def _footer(path: Path) -> pq.FileMetaData | None:
    """The file's metadata; None if it is not a complete Parquet file."""
    try:
        return pq.read_metadata(path)
    except pa.ArrowInvalid:
        return None
