"""Tables whose charset is binary: text columns that name no charset are bytes. Pure."""

from __future__ import annotations

from dataclasses import replace

from tidelake.history.ddl.changes import AddColumn, Change, ModifyColumn
from tidelake.history.incarnations import Catalog


def in_table(catalog: Catalog, change: Change) -> Change:
    """Return the change with the column that it makes in its table."""
    if not isinstance(change, AddColumn | ModifyColumn) or change.column.of_bytes is None:
        return change
    found = catalog.find(change.database, change.table)
    return replace(change, column=change.column.of_bytes) if found is not None and found.binary else change
