"""Files of the events table that workers read."""

from __future__ import annotations

from collections.abc import Sequence

from tidelake.errors import StorageError
from tidelake.lake.catalog import LakeTable


def event_keys(events: LakeTable, hours: Sequence[str]) -> dict[str, int]:
    """Return the sizes in bytes of the row events' files, by key below the table's location.

    Raises:
        StorageError: TABLE_MOVED: a file is not in the table's folder.
    """
    location = f"{events.table.location()}/"
    found = list(events.files({"kind": "row", "hour": list(hours)}, [], events.main)) if hours else []
    for file in found:
        if not file.path.startswith(location):
            raise StorageError(f"{events.identifier}: {file.path} is not below {location}", code="TABLE_MOVED")
    return {f.path.removeprefix(location): f.size for f in found}
