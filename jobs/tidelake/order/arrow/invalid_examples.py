"""Examples of values that do not fit their type, for people: the value, its row, and its message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.errors import Coordinates
from tidelake.lake.columns.cells import INVALID, Codes
from tidelake.order.arrow.table_models import ArrowTable
from tidelake.order.arrow.typed_columns import TypedColumn, shown
from tidelake.wire.kernels.arrays import Flags

SHOWN = 3  # values shown of a column, and columns of a table
_LENGTH = 80  # characters shown of a value
Example = tuple[str, int, int, int, str]  # topic, partition, offset, ordinal, text
Examples = dict[int, list[Example]]  # by column id


def invalid_examples(
    known: Examples, table: ArrowTable, events: pa.Table, images: Mapping[int, tuple[TypedColumn, TypedColumn]], gone: Flags
) -> None:
    """Add the first invalid values of events to the known ones, as `'12,5x' of id='3' at topic[0]@17`; masked values stay masked.

    Args:
        known: The examples so far, which are changed.
        table: The table.
        events: Its events.
        images: Columns after and before each event, by id.
        gone: Which events are deletes: their key is in the row before.
    """
    for c in table.columns:
        new, old = images[c.id]
        bad_new, bad_old = _invalid(new.lost), _invalid(old.lost)
        bad = bad_new if bad_old is None else bad_old if bad_new is None else bad_new | bad_old
        if bad is None or not bad.any():
            continue
        found = list[Example]()
        for n, at in _first(events, bad):
            cell = (new if bad_new is not None and bad_new[n] else old).cells
            keys = ((k.shown, _text(shown(images[k.id][int(gone[n])].cells.slice(n, 1), k))) for k in table.columns if k.id in table.key)
            of = ", ".join(f"{name}={value}" for name, value in keys)
            where = Coordinates(at[0], at[1], at[2])
            found.append((*at, f"{_text(shown(cell.slice(n, 1), c))}{' of ' if of else ''}{of} at {where}"))
        merge(known, {c.id: found})


def merge(known: Examples, more: Mapping[int, Iterable[Example]]) -> None:
    """Add examples; of each column those with the lowest coordinates stay."""
    for column, found in more.items():
        known[column] = sorted({*known.get(column, ()), *found})[:SHOWN]


def _invalid(lost: Codes | None) -> Flags | None:
    return None if lost is None else lost == INVALID


def _first(events: pa.Table, bad: Flags) -> list[tuple[int, tuple[str, int, int, int]]]:
    """The rows with the lowest coordinates."""
    rows = np.flatnonzero(bad)
    at = events.select(["topic", "partition", "offset", "ordinal"]).take(pa.array(rows))
    at = at.set_column(0, "topic", at.column("topic").cast(pa.string())).append_column("row", pa.array(rows))
    keys = [(name, "ascending") for name in at.column_names[:-1]]
    least = at.take(pc.select_k_unstable(at, SHOWN, sort_keys=keys)).to_pylist()
    return [(r["row"], (r["topic"], r["partition"], r["offset"], r["ordinal"])) for r in least]


def _text(one: pa.Array) -> str:
    cell = one[0].as_py()
    return "NULL" if cell is None else repr(bytes(cell).decode(errors="replace")[:_LENGTH])
