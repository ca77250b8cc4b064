"""Generated columns: the server computes their values from other columns (docs/ddl.md). Pure.

MySQL and MariaDB compute stored ones anew in every row when a statement changes their expression, or the type or charset of a column in it.
TiDB refuses such statements.
"""

from __future__ import annotations

from dataclasses import replace

from tidelake.errors import OrderError
from tidelake.history.ddl.changes import Change, ColumnDef, ModifyColumn, TableCharset
from tidelake.history.ddl.column_types import has_charset, same_number
from tidelake.history.incarnations import Catalog, Incarnation


def check_computed(catalog: Catalog, change: Change) -> None:
    """Check that a change leaves the values of stored generated columns, for a source that may be another server than TiDB.

    Raises OrderError (UNSUPPORTED_DDL).
    """
    found = catalog.find(change.database, change.table)
    if found is None or found.empty:
        return
    stored = [c.name for c in found.columns if c.stored]
    match change:
        case ModifyColumn() if change.column.stored:
            raise _computed_anew(found, [change.column.name])
        case ModifyColumn() if stored and change.name.lower() in found.inputs and not _stays(found, change):
            raise _computed_anew(found, stored)
        case TableCharset(converts=True) if stored and any(_is_text(found, name) for name in found.inputs):
            raise _computed_anew(found, stored)
        case _:
            return


def with_inputs(i: Incarnation, column: ColumnDef) -> Incarnation:
    """Return the incarnation with the columns that a generated one is computed from."""
    names = [n.lower() for n in (*(c.name for c in i.columns), *i.virtual)]
    return replace(i, inputs=tuple(dict.fromkeys([*i.inputs, *(n for n in names if n in column.inputs)])))


def renamed_input(i: Incarnation, name: str, to: str) -> Incarnation:
    """Return the incarnation in which a column has another name."""
    return replace(i, inputs=tuple(to.lower() if n == name.lower() else n for n in i.inputs))


def _stays(i: Incarnation, change: ModifyColumn) -> bool:
    """Whether whatever is computed from the column stays."""
    old = next((c.type for c in i.columns if c.name.lower() == change.name.lower()), None)
    if old is None or change.column.virtual or has_charset(change.column.type):
        return False
    return old == change.column.type or same_number(old, change.column.type)


def _is_text(i: Incarnation, name: str) -> bool:
    return all(has_charset(c.type) for c in i.columns if c.name.lower() == name)  # of a virtual column the type is unknown


def _computed_anew(i: Incarnation, names: list[str]) -> OrderError:
    what = ", ".join(map(repr, names))
    return OrderError(
        f"the server computes the stored generated columns of {i.name} ({what}) anew in existing rows. If their values stay the same, "
        "write a statement into ddl.jsonl that first defines them without their expressions",
        code="UNSUPPORTED_DDL",
    )
