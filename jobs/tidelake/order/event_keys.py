"""Files of the events table that workers read."""

from __future__ import annotations

from collections.abc import Sequence

from tidelake.errors import StorageError
from tidelake.lake.catalog import LakeTable
from tidelake.lake.scans import FileFacts, Where


def event_keys(events: LakeTable, hours: Sequence[str]) -> dict[str, int]:
    """Return the sizes in bytes of the row events' files, by key below the table's location.

    Raises:
        StorageError: TABLE_MOVED: a file is not in the table's folder.
    """
    found = event_files(events, {"hour": list(hours)}, [], events.main) if hours else {}
    return {key: f.size for key, f in found.items()}


def event_files(events: LakeTable, where: Where, bounds: Sequence[str], snapshot_id: int) -> dict[str, FileFacts]:
    """Return the facts of the row events' files, by key below the table's location.

    Args:
        events: The events table.
        where: Which files, by partition columns.
        bounds: Columns whose bounds are wanted.
        snapshot_id: The snapshot of the table.

    Raises:
        StorageError: TABLE_MOVED: a file is not in the table's folder.
    """
    location = f"{events.table.location()}/"
    found = list(events.files({"kind": "row", **where}, bounds, snapshot_id))
    for file in found:
        if not file.path.startswith(location):
            raise StorageError(f"{events.identifier}: {file.path} is not below {location}", code="TABLE_MOVED")
    return {f.path.removeprefix(location): f for f in found}
