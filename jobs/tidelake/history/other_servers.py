"""Statements that leave other rows in MySQL and MariaDB than in TiDB, which refuses them or leaves the rows as they are. Pure."""

from __future__ import annotations

from tidelake.errors import OrderError
from tidelake.history.ddl.changes import Change, ModifyColumn
from tidelake.history.generated import check_computed
from tidelake.history.incarnations import Catalog

_LONG_TEXTS = frozenset({"tinytext", "text", "mediumtext", "longtext"})


def check_change(catalog: Catalog, change: Change) -> None:
    """Check that a change leaves the same rows whichever server executed it. Raises OrderError (UNSUPPORTED_DDL)."""
    check_computed(catalog, change)
    if isinstance(change, ModifyColumn):
        _check_numbers(catalog, change)


def _check_numbers(catalog: Catalog, change: ModifyColumn) -> None:
    """MySQL refuses to convert a VARCHAR `12 apples` to DECIMAL, but a TEXT becomes 12."""
    found = catalog.find(change.database, change.table)
    if found is None or found.empty or change.column.type.word != "decimal":
        return
    old = next((c for c in found.columns if c.name.lower() == change.name.lower()), None)
    if old is not None and old.type.word in _LONG_TEXTS:
        raise OrderError(
            f"the result of converting {found.name}.{old.name} from {old.type.sql} to {change.column.type.sql} depends on the server: "
            "MySQL takes the number that a text begins with",
            code="UNSUPPORTED_DDL",
        )
