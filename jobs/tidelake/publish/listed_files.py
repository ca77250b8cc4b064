"""The lists of files of the tables that a publication changes, each with the sha256 of every file.

A worker that writes a file computes its sha256, and the staging commit says which files it added and removed. So the list is made from the
one before. Files of Spark's own writers are read once.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tidelake.errors import DamageError
from tidelake.io.texts import plural
from tidelake.lake.cut import Advance, Cut, FilesDigest, Intent, ProvenFile
from tidelake.lake.opened import Lake
from tidelake.lake.proof.snapshot_files import TableFiles
from tidelake.lake.proof.stored_lists import StoredLists
from tidelake.lake.scans import plain
from tidelake.spark.file_digests import DigestReader
from tidelake.spark.run_parts import ThisProcess, is_small
from tidelake.spark.spread import in_parts

_AT_ONCE = 16  # lists read or written concurrently

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table whose list is made from all its files. new: those of them whose sha256 is not known but can be computed now."""

    uuid: str
    files: list[ProvenFile]
    new: list[ProvenFile]


def list_files(lake: Lake, intent: Intent) -> None:
    """Write the list of files of every table that the intent changes, and record the digests in its cut. Repeatable."""
    cut = intent.cut
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        changed = list(pool.map(lambda a: _changed(lake, cut, a), intent.advances))
        others = [a for a, digest in zip(intent.advances, changed, strict=True) if digest is None]
        tables = list(pool.map(lambda a: _whole(lake, cut, a), others))
        digests = _read(lake, [f for t in tables for f in t.new])

        def keep(t: _Table) -> tuple[str, FilesDigest]:
            known = [f if f.path not in digests else f.model_copy(update={"sha256": digests[f.path]}) for f in t.files]
            return t.uuid, StoredLists(lake.store, cut.feed, t.uuid).keep(known)

        cut.files |= {a.uuid: digest for a, digest in zip(intent.advances, changed, strict=True) if digest is not None}
        cut.files |= dict(pool.map(keep, tables))
    needed = {t.uuid for t in (*cut.snapshots.values(), *cut.changelogs.values())} | cut.past.keys()
    cut.files = {u: f for u, f in cut.files.items() if u in needed}
    cut.metadata = {u: location for u, location in cut.metadata.items() if u in needed}
    intent.advances = [a.model_copy(update={"files": None}) for a in intent.advances]


def _changed(lake: Lake, cut: Cut, a: Advance) -> FilesDigest | None:
    """The list of a table, made from the one before; None if that cannot be read, or what changed since is not known."""
    before, change = cut.files.get(a.uuid), a.files
    if before is None or change is None or change.to != a.to:
        return None
    try:
        return StoredLists(lake.store, cut.feed, a.uuid).change(before, change.added, change.removed)
    except (DamageError, LookupError):
        return None


def _whole(lake: Lake, cut: Cut, a: Advance) -> _Table:
    before, change = _before(lake, cut, a.uuid), a.files
    table = lake.catalog.load(a.identifier).table
    metadata = TableFiles(table.metadata, table.io)
    known = {f.path: f for f in (*before, *(change.added if change else ()))}
    since = metadata.between(change.base if change else a.base, a.to)
    found = metadata.files(a.to)
    files = [known.get(one.file.path, one.file) for one in found]
    new = [one.file for one in found if one.file.path not in known and one.added_by in since]
    return _Table(a.uuid, files, new)


def _before(lake: Lake, cut: Cut, uuid: str) -> list[ProvenFile]:
    """The files of a table at the cut that the window builds on; none if they are not listed."""
    digest = cut.files.get(uuid)
    if digest is None:
        return []
    try:
        return StoredLists(lake.store, cut.feed, uuid).files(digest.sha256)
    except DamageError as e:
        log.warning(str(e))
        return []


def _read(lake: Lake, files: Sequence[ProvenFile]) -> dict[str, str]:
    """Return the sha256 of these files by path. Reads them."""
    if not files:
        return {}
    places = {plain(f.path): f for f in files}
    sizes = [f.size for f in files]
    workers = ThisProcess(lake.settings.worker) if is_small(sizes) else lake.workers(sizes)  # no JVM for a few files
    log.info(f"reading {plural(len(files), 'file')} for their sha256")
    parts = in_parts(workers.tasks, {uri: f.size for uri, f in places.items()})
    return {places[row["uri"]].path: row["sha256"] for row in workers.rows(DigestReader(parts))}
