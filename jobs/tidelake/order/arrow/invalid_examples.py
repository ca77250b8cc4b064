"""Examples of values that do not fit their type, for people: the value, its row, and its message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.config.evidence import MOST_CHARACTERS, MOST_ROWS
from tidelake.lake.columns.cells import INVALID, Codes
from tidelake.order.arrow.table_models import ArrowColumn, ArrowTable
from tidelake.order.arrow.typed_columns import TypedColumn, shown
from tidelake.wire.kernels.arrays import Flags

Key = tuple[tuple[str, str | None], ...]  # name and cell of each key column
Example = tuple[str, int, int, int, int, str | None, Key]  # topic, partition, offset, ordinal, commit ts, cell, key of its row
Examples = dict[int, list[Example]]  # by column id
_AT = ("topic", "partition", "offset", "ordinal", "commit_ts")


def invalid_examples(
    known: Examples, table: ArrowTable, events: pa.Table, images: Mapping[int, tuple[TypedColumn, TypedColumn]], gone: Flags
) -> None:
    """Add the first invalid values of events to the known ones; masked values stay masked.

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
            key = tuple((k.shown, _text(images[k.id][int(gone[n])].cells, n, k)) for k in table.columns if k.id in table.key)
            found.append((*at, _text(cell, n, c), key))
        merge(known, {c.id: found})


def merge(known: Examples, more: Mapping[int, Iterable[Example]]) -> None:
    """Add examples; of each column those with the lowest coordinates stay."""
    for column, found in more.items():
        first = {e[:4]: e for e in (*known.get(column, ()), *found)}
        known[column] = [first[at] for at in sorted(first)][:MOST_ROWS]


def _invalid(lost: Codes | None) -> Flags | None:
    return None if lost is None else lost == INVALID


def _first(events: pa.Table, bad: Flags) -> list[tuple[int, tuple[str, int, int, int, int]]]:
    """The rows with the lowest coordinates, and these with the commit ts."""
    rows = np.flatnonzero(bad)
    at = events.select(_AT).take(pa.array(rows))
    at = at.set_column(0, "topic", at.column("topic").cast(pa.string())).append_column("row", pa.array(rows))
    keys = [(name, "ascending") for name in _AT[:-1]]
    least = at.take(pc.select_k_unstable(at, MOST_ROWS, sort_keys=keys)).to_pylist()
    return [(r["row"], (r["topic"], r["partition"], r["offset"], r["ordinal"], r["commit_ts"])) for r in least]


def _text(cells: pa.Array, row: int, column: ArrowColumn) -> str | None:
    """The beginning of a cell, under its column's mask: one character more than is shown, so that it is seen to be cut off."""
    cell, most = shown(cells.slice(row, 1), column)[0].as_py(), MOST_CHARACTERS + 1
    return None if cell is None else bytes(cell[: 4 * most]).decode(errors="replace")[:most]
