"""Checks the tables of the retained cuts: the lists of files, the files, and that Iceberg's snapshots have these files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from tidelake.audit.file_lists import WantedList, read_lists
from tidelake.audit.findings import Findings, OnRead
from tidelake.audit.objects import NamedObject, check_objects, place
from tidelake.audit.proofs import READERS, Chain, StoredCertificate
from tidelake.config.lake_paths import file_list_key
from tidelake.errors import DamageError
from tidelake.io.storage import Store
from tidelake.lake.cut import FilesDigest, ProvenFile
from tidelake.lake.proof.model import Subject
from tidelake.lake.proof.snapshot_files import TableFiles
from tidelake.lake.scans import plain

_SUFFIX = ".metadata.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """A table at a cut, with the files of its list. files: None if the list cannot be read."""

    cut: int
    key: str
    subject: Subject
    files: list[ProvenFile] | None


def check_tables(
    store: Store,
    feed: str,
    chain: Chain,
    retained: Sequence[StoredCertificate],
    settings: Mapping[str, str],
    findings: Findings,
    progress: OnRead | None,
) -> None:
    """Compare the tables of the retained cuts with the lists of their files, and all these files with their sums.

    Args:
        store: The lake's store.
        feed: The feed.
        chain: All certificates.
        retained: Certificates of cuts that the lake still has.
        settings: Of pyiceberg's file system.
        findings: Gets the result.
        progress: Called with (bytes read, bytes in all).
    """
    uncovered = sorted({name for proof in retained for name in proof.says.uncovered})
    findings.skip("tables", f"the certificates have no list of their files: {', '.join(uncovered)}", len(uncovered))
    every, after = [(proof, s) for proof in retained for s in proof.subjects], chain.changes_after
    kept = [(proof, s) for proof, s in every if s.annotations.kind == "snapshot" or proof.says.resolved_ts > after]
    findings.skip("changelogs", "maintenance let go of their changes", len(every) - len(kept))
    listed = _lists(store, feed, kept, findings)
    _check_snapshots(store, listed, settings, findings)
    named: dict[str, NamedObject] = {}
    unproven = dict[str, int]()
    for one in listed:
        for f in one.files or ():
            if f.sha256 is None:
                unproven.setdefault(f.path, one.cut)
            else:
                named.setdefault(f.path, NamedObject(key=plain(f.path), sha256=f.sha256, size=f.size, cut=one.cut))
    findings.skip("data files", "they are older than the first list of their table, which has no sum of them", len(unproven))
    check_objects("data files", store, named.values(), findings, progress)


def _lists(store: Store, feed: str, kept: Sequence[tuple[StoredCertificate, Subject]], findings: Findings) -> list[_Listed]:
    """Read the lists of tables. A table that did not change between cuts is there once, with the first of them."""
    first: dict[tuple[str, int], tuple[int, Subject]] = {}
    for proof, s in kept:
        findings.checked["tables"] += 1
        at = s.annotations
        before = first.setdefault((at.uuid, at.snapshot_id), (proof.seq, s))[1]
        what = f"{s.name}: snapshot {at.snapshot_id} has another list of files in an earlier certificate"
        findings.expect(before.digest == s.digest, proof.seq, proof.key, what)
        table = proof.says.tables.get(at.incarnation)
        rows = table.rows if table is not None and table.uuid == at.uuid else 0
        is_same = table is not None and (table.uuid, table.rows) == (at.uuid, at.rows)
        what = f"{s.name}: {at.rows:,} rows by its files, expected {rows:,}"
        findings.expect(at.kind != "snapshot" or is_same, proof.seq, proof.key, what)
    keys = [file_list_key(feed, uuid, s.digest.sha256) for (uuid, _), (_, s) in first.items()]
    lists = [WantedList(cut, key, s.name, _digest(s)) for key, (cut, s) in zip(keys, first.values(), strict=True)]
    found = read_lists(store, lists, findings)
    return [_Listed(cut=cut, key=key, subject=s, files=found[key]) for key, (cut, s) in zip(keys, first.values(), strict=True)]


def _digest(s: Subject) -> FilesDigest:
    """What a certificate says of a list."""
    at = s.annotations
    return FilesDigest(sha256=s.digest.sha256, files=at.files, size=at.size, rows=at.rows, unproven=at.unproven)


def _check_snapshots(store: Store, listed: Sequence[_Listed], settings: Mapping[str, str], findings: Findings) -> None:
    """Compare the lists with the snapshots, table by table."""
    by_table: dict[str, list[_Listed]] = {}
    for one in listed:
        by_table.setdefault(one.subject.annotations.uuid, []).append(one)
    with ThreadPoolExecutor(READERS) as pool:
        checks = pool.map(lambda of_table: _of_table(store, of_table, settings), by_table.values())
        for check in (c for of_table in checks for c in of_table):
            findings.checked["snapshots"] += 1
            findings.expect(check.what is None, check.cut, check.key, check.what or "")


@dataclass(frozen=True, slots=True)
class _Check:
    """Result of one snapshot. what: what is wrong, None if nothing is."""

    cut: int
    key: str
    what: str | None


def _of_table(store: Store, listed: Sequence[_Listed], settings: Mapping[str, str]) -> list[_Check]:
    """Compare the snapshots of one table."""
    wanted, newest = {one.subject.annotations.snapshot_id for one in listed}, listed[-1].subject
    try:
        table = find_table(store, newest.annotations.metadata, wanted, settings)
    except DamageError as e:
        return [_Check(listed[-1].cut, newest.annotations.metadata or newest.name, e.message)]
    if table is None:
        where = newest.annotations.metadata or newest.name
        return [_Check(listed[-1].cut, where, f"no metadata file of {newest.name} is there")]
    if table.uuid != newest.annotations.uuid:
        return [_Check(listed[-1].cut, newest.name, f"its metadata is of table {table.uuid}, expected {newest.annotations.uuid}")]
    return [_compared(table, one) for one in listed]


def find_table(store: Store, location: str | None, wanted: Collection[int], settings: Mapping[str, str]) -> TableFiles | None:
    """Return a table's metadata that has the wanted snapshots, else the newest; None if none is there. Raises DamageError.

    location: of the metadata that a certificate names.
    """
    table: TableFiles | None = None
    for table in _metadata(store, location, settings):
        if all(table.has(s) for s in wanted):
            break
    return table


def _facts(f: ProvenFile) -> tuple[str, int, int, bool]:
    """What Iceberg's metadata says of a file."""
    return f.path, f.size, f.rows, f.deletes


def _metadata(store: Store, location: str | None, settings: Mapping[str, str]) -> Iterator[TableFiles]:
    """Yield the metadata that a certificate names, if it is there, then the newest one of the table."""
    if location is None:
        return
    with suppress(FileNotFoundError):
        yield TableFiles.at(location, settings)
    folder = location.rpartition("/")[0]
    inside, prefix = place(store, f"{plain(folder)}/")
    found = [o.key for o in inside.objects(prefix) if o.key.endswith(_SUFFIX)]
    if found:
        newest = max(found, key=lambda key: (_number(key), key)).rpartition("/")[2]
        yield TableFiles.at(f"{folder}/{newest}", settings)


def _number(key: str) -> int:
    """The number of a metadata file: 7 of 00007-….metadata.json."""
    number = key.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdecimal() else -1


def _compared(table: TableFiles, one: _Listed) -> _Check:
    at, name = one.subject.annotations, one.subject.name
    where = at.metadata or name
    if not table.has(at.snapshot_id):
        return _Check(one.cut, where, f"{name} has no snapshot {at.snapshot_id}")
    if one.files is None:
        return _Check(one.cut, where, None)  # the list itself is wrong
    try:
        found = {_facts(f.file) for f in table.files(at.snapshot_id)}
    except DamageError as e:
        return _Check(one.cut, where, f"{name}, snapshot {at.snapshot_id}: {e.message}")
    except FileNotFoundError as e:
        return _Check(one.cut, where, f"{name}, snapshot {at.snapshot_id}: a file of its metadata is missing: {e}")
    different = sorted({path for path, *_ in found ^ {_facts(f) for f in one.files}})
    more = f" and {len(different) - 1} more" if len(different) > 1 else ""
    what = f"{name}, snapshot {at.snapshot_id}: it has other files than its list: {different[0]}{more}" if different else None
    return _Check(one.cut, where, what)
