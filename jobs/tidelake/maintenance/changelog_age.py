"""Removes old files of changelogs: whole files, by metadata alone, on a branch.

A file is removed if the day or hour of its partition ends at or before changelog_retained_after (cuts.changelog_retained_after). That TSO
is raised first, in the table of published cuts, so that readers do not take the rest for the complete changelog.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pydantic import BaseModel

from tidelake.errors import StorageError
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.catalogs.errors import retried
from tidelake.tso import from_ms

BY = "_commit_at"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LENGTHS = {"hour": timedelta(hours=1), "day": timedelta(days=1)}


class Going(BaseModel):
    """Files of a changelog that are removed. first, last: oldest and youngest partition, `2026-01-05` or `2026-01-05T10`."""

    files: int
    rows: int
    bytes: int
    first: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OldFile:
    """A changelog file whose changes are not kept any more. span: `day` or `hour`; name: its partition."""

    file: Any  # DataFile of pyiceberg
    span: str
    name: str

    @property
    def path(self) -> str:
        """The full path."""
        return str(self.file.file_path)

    @property
    def rows(self) -> int:
        return int(self.file.record_count)

    @property
    def bytes(self) -> int:
        return int(self.file.file_size_in_bytes)


def old_files(table: LakeTable, snapshot_id: int, gone: int) -> list[OldFile]:
    """Return the files of a snapshot that only have changes at or before changelog_retained_after (gone, a TSO), oldest first."""
    if not gone:
        return []
    found = ((one, *_partition(table, one)) for one in data_files(table, snapshot_id))
    old = (OldFile(file=f, span=span, name=name) for f, span, name, until in found if from_ms(_ms(until)) - 1 <= gone)
    return sorted(old, key=lambda f: (f.name, f.path))


def data_files(table: LakeTable, snapshot_id: int) -> Iterator[Any]:
    """Yield pyiceberg's data files of a snapshot."""
    return (task.file for task in table.table.scan(snapshot_id=snapshot_id).plan_files())


def summed(files: Sequence[OldFile]) -> Going | None:
    """Sum up files; None if there are none."""
    if not files:
        return None
    rows, size = sum(f.rows for f in files), sum(f.bytes for f in files)
    return Going(files=len(files), rows=rows, bytes=size, first=files[0].name, last=files[-1].name)


def remove(catalog: LakeCatalog, identifier: str, branch: str, files: Sequence[OldFile]) -> None:
    """Remove files from a branch in one metadata commit. Raises StorageError (ROWS_DIFFER) if other rows were removed than planned."""

    def attempt() -> None:
        table = catalog.load(identifier).table
        with table.transaction() as change, change.update_snapshot(branch=branch).overwrite() as snapshot:
            for f in files:
                snapshot.delete_data_file(f.file)

    before = _rows_of(catalog.load(identifier), branch)
    retried(identifier, attempt)
    gone = before - _rows_of(catalog.load(identifier), branch)
    if gone != sum(f.rows for f in files):
        raise StorageError(
            f"{identifier}: {sum(f.rows for f in files):,} rows should be removed, {gone:,} would be; nothing is published",
            code="ROWS_DIFFER",
        )


def _rows_of(table: LakeTable, branch: str) -> int:
    return int(table.summary(table.branch(branch))["total-records"])


def hours_of(table: LakeTable) -> list[str]:
    """Return the partition fields of a changelog that is partitioned by hour; earlier versions created such."""
    return [f.name for f in table.table.spec().fields if str(f.transform) == "hour"]


def by_day(catalog: LakeCatalog, identifier: str) -> None:
    """Partition a changelog by day from now on if it is partitioned by hour. Existing files keep their partitions and stay readable."""

    def attempt() -> None:
        table = catalog.load(identifier)
        if hours := hours_of(table):
            with table.table.update_spec() as change:
                for name in hours:
                    change.remove_field(name)
                change.add_field(BY, "day", f"{BY}_day")

    retried(identifier, attempt)


def _partition(table: LakeTable, file: Any) -> tuple[str, str, datetime]:
    """Return (word, name, end) of a file's time partition; the end is the end of time if there is none."""
    fields = table.table.specs()[file.spec_id].fields
    for i, field in enumerate(fields):
        word, value = str(field.transform), file.partition[i]
        if word in _LENGTHS and value is not None:
            number = (value - _EPOCH.date()).days if isinstance(value, date) else int(value)
            begin = _EPOCH + number * _LENGTHS[word]
            return word, f"{begin:%Y-%m-%d}" if word == "day" else f"{begin:%Y-%m-%dT%H}", begin + _LENGTHS[word]
    return "", "", datetime.max.replace(tzinfo=UTC)


def _ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)
