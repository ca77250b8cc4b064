"""Folds a sample of buckets with the specification in plain Python, and compares them with the snapshots.

A bucket at a cut must be the bucket at the cut before with the changes that the window added to the changelog. A table is left out where
the window has a statement about it: statements change columns and rows by other rules.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from tidelake.audit.findings import Findings
from tidelake.audit.objects import place
from tidelake.audit.proofs import Chain, StoredCertificate
from tidelake.audit.tables import find_table
from tidelake.history.incarnations import Incarnation
from tidelake.history.ordering import RowCells, RowChange, fold
from tidelake.io.storage import Store
from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import find_outcome
from tidelake.lake.proof.model import Subject
from tidelake.lake.proof.snapshot_files import SnapshotFile, TableFiles
from tidelake.lake.scans import plain

SAMPLE = 8  # buckets
MOST_ROWS = 200_000  # of a bucket: the specification is slow
_FIELD_ID = b"PARQUET:field_id"
_COMMIT_TS = "_commit_ts"
_OF_CHANGE = ("_change_type", _COMMIT_TS, "_topic", "_kafka_partition", "_offset", "_ordinal")
_PARTIAL = "_partial"

Place = tuple[str, int, int, int, int]  # topic, partition, offset, ordinal, commit ts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """A table at a cut and at the cut before. before: None if it did not exist."""

    now: Subject
    before: Subject | None
    table: TableFiles

    def files(self, which: Subject | None) -> list[SnapshotFile]:
        return self.table.files(which.annotations.snapshot_id) if which is not None else []


@dataclass(frozen=True, slots=True)
class _Tables:
    """The tables of a certificate by kind and incarnation: those with a list of files, and all."""

    listed: Mapping[tuple[str, str], Subject]
    every: Container[tuple[str, str]]

    @classmethod
    def of(cls, proof: StoredCertificate | None) -> _Tables:
        """The tables of a certificate; none without one."""
        if proof is None:
            return cls({}, ())
        every = {*(("snapshot", i) for i in proof.says.tables), *(("changelog", i) for i in proof.says.changelogs)}
        return cls({(s.annotations.kind, s.annotations.incarnation): s for s in proof.subjects}, every)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bucket:
    """A bucket of a table whose snapshot a cut changed. number: None for a table without buckets."""

    cut: int
    incarnation: Incarnation
    snapshot: _Pair
    changelog: _Pair
    number: int | None


def check_sample(
    store: Store, chain: Chain, retained: Sequence[StoredCertificate], settings: Mapping[str, str], findings: Findings
) -> dict[int, set[Place]]:
    """Fold a sample of buckets and compare them with the snapshots.

    Returns:
        By cut, the places of the events that made the changes of the sample.
    """
    candidates = list(_candidates(store, chain, {p.seq: p for p in retained}, settings, findings))
    candidates.sort(key=lambda b: hashlib.sha256(f"{b.cut} {b.incarnation.id} {b.number}".encode()).digest())
    places: dict[int, set[Place]] = defaultdict(set)
    done = 0
    for bucket in candidates:
        if done == SAMPLE:
            break
        if (found := _check(store, bucket, findings)) is not None:
            places[bucket.cut] |= found
            done += 1
    findings.checked["folded buckets"] += done
    findings.skip("buckets", f"a sample of {SAMPLE} is folded", len(candidates) - done)
    return places


def _candidates(
    store: Store, chain: Chain, retained: Mapping[int, StoredCertificate], settings: Mapping[str, str], findings: Findings
) -> Iterator[_Bucket]:
    tables: dict[str, TableFiles | None] = {}
    for proof in retained.values():
        before, undated = chain.parent(proof), proof.says.counts.window.undated if proof.says.counts else 0
        if proof.says.kind != "hour" or (before is not None and before.seq not in retained) or (before is None and chain.continued(proof)):
            continue
        if undated:
            findings.skip(f"fold of cut {proof.seq}", "its window has deletes without a commit ts")
            continue
        cut = find_outcome(store, proof.says.feed, proof.seq)
        if not isinstance(cut, Cut):
            continue
        stated = {i for e in cut.ledger for i in e.tables}
        now, earlier = _Tables.of(proof), _Tables.of(before)
        for i in (i for i in cut.catalog.alive() if i.id not in stated):
            pairs = [_pair(store, (k, i.id), now, earlier, tables, settings) for k in ("snapshot", "changelog")]
            if i.key and all(pairs):
                yield from _buckets(proof.seq, i, *(p for p in pairs if p is not None))


def _pair(
    store: Store,
    at: tuple[str, str],
    cut: _Tables,
    before: _Tables,
    tables: dict[str, TableFiles | None],
    settings: Mapping[str, str],
) -> _Pair | None:
    """A table at both cuts; None if it has no list, is another one than before, or cannot be read. at: kind and incarnation."""
    now, earlier = cut.listed.get(at), before.listed.get(at)
    if now is None or (earlier is not None and earlier.annotations.uuid != now.annotations.uuid):
        return None
    if earlier is None and at in before.every:
        return None
    wanted = {s.annotations.snapshot_id for s in (now, earlier) if s is not None}
    uuid = now.annotations.uuid
    if tables.get(uuid) is None:
        tables[uuid] = find_table(store, now.annotations.metadata, wanted, settings)
    table = tables[uuid]
    return _Pair(now=now, before=earlier, table=table) if table is not None and all(map(table.has, wanted)) else None


def _buckets(cut: int, i: Incarnation, snapshot: _Pair, changelog: _Pair) -> Iterator[_Bucket]:
    """The buckets that have changes."""
    if snapshot.now == snapshot.before:
        return
    before = {f.file.path for f in changelog.files(changelog.before)}
    new = [f for f in changelog.files(changelog.now) if f.file.path not in before]
    bucketed = all(len(f.partition) == 1 for f in snapshot.files(snapshot.now)) and all(len(f.partition) == 2 for f in new)
    for number in sorted({f.partition[0] for f in new}) if bucketed else [None]:
        yield _Bucket(cut=cut, incarnation=i, snapshot=snapshot, changelog=changelog, number=number)


def _check(store: Store, b: _Bucket, findings: Findings) -> set[Place] | None:
    """Fold one bucket. Return the places of its changes; None if it is left out."""
    name, before = b.snapshot.now.name, {f.file.path for f in b.changelog.files(b.changelog.before)}
    mine = [f for f in b.changelog.files(b.changelog.now) if f.file.path not in before and _inside(b, f)]
    stood, stands = ([f for f in b.snapshot.files(which) if _inside(b, f)] for which in (b.snapshot.before, b.snapshot.now))
    where = name if b.number is None else f"{name}, bucket {b.number}"
    if sum(f.file.rows for f in (*mine, *stood, *stands)) > MOST_ROWS:
        findings.skip(where, "it has too many rows for the specification in plain Python")
        return None
    ids = b.snapshot.table.columns(b.snapshot.now.annotations.snapshot_id)
    logged = b.changelog.table.columns(b.changelog.now.annotations.snapshot_id)
    columns = [c for c in ids if c != _COMMIT_TS]
    if any(c not in logged for c in columns):
        findings.skip(where, "its changelog has other columns")
        return None
    key = tuple(columns.index(str(k)) for k in b.incarnation.key)
    rows = _rows(store, mine, [logged[c] for c in (*columns, *_OF_CHANGE)] + [logged.get(_PARTIAL, 0)])  # no column has the id 0
    if any(partial for *_, partial in rows):
        findings.skip(where, "of some changes only the key was sent")
        return None
    changes = [_change(name, len(columns), r) for r in rows if r[len(columns)] != "UPDATE_BEFORE"]
    wanted = [ids[c] for c in (*columns, _COMMIT_TS)]
    was, now = ({_key(r, key): r[:-1] for r in _rows(store, files, wanted)} for files in (stood, stands))
    folded = fold(was, changes, key)
    different = sorted((k for k in folded.keys() | now.keys() if repr(folded.get(k)) != repr(now.get(k))), key=repr)
    what = f"{where}: {len(different):,} keys differ from the fold of the changes onto cut {b.cut - 1}, the first {different[:1]}"
    findings.expect(not different, b.cut, b.snapshot.now.annotations.metadata or name, what)
    return {(*c.at, c.commit_ts) for c in changes}


def _inside(b: _Bucket, f: SnapshotFile) -> bool:
    return b.number is None or f.partition[0] == b.number


def _key(row: RowCells, key: tuple[int, ...]) -> RowCells:
    return tuple(row[k] for k in key)


def _change(table: str, columns: int, row: tuple[Any, ...]) -> RowChange:
    """A change from a changelog's row: the table's columns, then _OF_CHANGE. An update only has its new row: its key is the old one's."""
    kind, commit_ts, *at = row[columns : columns + len(_OF_CHANGE)]
    op = {"INSERT": "insert", "UPDATE_AFTER": "update", "DELETE": "delete"}[kind]
    cells = row[:columns]
    before, after = (cells, None) if op == "delete" else (None, cells)
    topic, partition, offset, ordinal = at
    return RowChange(table=table, op=op, commit_ts=commit_ts, at=(topic, partition, offset, ordinal), before=before, after=after)


def _rows(store: Store, files: Sequence[SnapshotFile], ids: Sequence[int]) -> list[RowCells]:
    """Rows of data files less those that delete files delete: the columns with these ids in Iceberg. A column that a file lacks is NULL."""
    gone: dict[str, set[int]] = defaultdict(set)
    out: list[RowCells] = []
    with TemporaryDirectory(prefix="tidelake-audit-") as folder:
        for f in sorted(files, key=lambda f: not f.file.deletes):
            rows = _table(store, f.file.path, Path(folder) / "file.parquet")
            if f.file.deletes:
                for path, position in zip(rows["file_path"].to_pylist(), rows["pos"].to_pylist(), strict=True):
                    gone[plain(path)].add(position)
                continue
            at = {int(c.metadata[_FIELD_ID]): n for n, c in enumerate(rows.schema)}
            nothing, left = [None] * rows.num_rows, gone.get(plain(f.file.path), set())
            wide = zip(*(rows.column(at[i]).to_pylist() if i in at else nothing for i in ids), strict=True)
            out += [_plain(row) for n, row in enumerate(wide) if n not in left]
    return out


def _plain(row: tuple[Any, ...]) -> RowCells:
    return tuple(tuple(cell) if isinstance(cell, list) else cell for cell in row)


def _table(store: Store, path: str, copy: Path) -> Any:
    inside, key = place(store, plain(path))
    return pq.read_table(inside.fetch(key, copy))
