"""Columns whose values are long and repeat, such as hashes, as Arrow dictionaries: each value once, and a number for each row.

Copying, sorting and writing a hash then costs as much as a number. Parquet files are written with the same dictionaries.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SAMPLE = 1 << 13  # cells by which a column is judged
_FEW = 0.95  # share of different values in the sample; above, hardly any value repeats


def as_dictionary(cells: pa.Array) -> pa.Array:
    """Return cells as a dictionary if each of its values has two cells or more on average, otherwise as they are.

    A dictionary that is longer than the cells, because they are few of those that it was made of, is resolved.
    """
    rows = len(cells)
    if pa.types.is_dictionary(cells.type):
        return cells if len(cells.dictionary) <= rows else cells.dictionary_decode()
    if rows > 2 * _SAMPLE:
        chosen = np.random.default_rng(0).choice(rows, _SAMPLE, replace=False, shuffle=False)  # neighbours may differ more than others
        some = cells.take(pa.array(chosen))
        if len(pc.unique(some)) > _FEW * _SAMPLE:
            return cells
    found = cells.dictionary_encode()
    return found if 2 * len(found.dictionary) <= rows else cells


def with_short_dictionaries(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows without dictionaries that are longer than they are: a few chosen rows would keep all values of the others."""
    for name, kind in zip(rows.schema.names, rows.schema.types, strict=True):
        if pa.types.is_dictionary(kind):
            rows = rows.set_column(rows.schema.get_field_index(name), name, as_dictionary(rows.column(name)))
    return rows


def together(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of tables as one table.

    A column that is a dictionary in some of them becomes one in all if most rows have it so; otherwise it is plain. It has one dictionary
    then, and one chunk, so that its size does not count the values again and again. A column that a table lacks is NULL.
    """
    mixed = {}
    for name in dict.fromkeys(n for t in tables for n in t.column_names):
        rows = dict[bool, int]()  # of tables that have it as a dictionary, and as plain cells
        for t in tables:
            if name in t.column_names:
                kind = pa.types.is_dictionary(t.schema.field(name).type)
                rows[kind] = rows.get(kind, 0) + t.num_rows
        if len(rows) == 2:
            mixed[name] = rows[True] >= rows[False]
    alike = [_alike(t, mixed) for t in tables] if mixed else tables
    whole = pa.concat_tables(alike, promote_options="default")
    for name, kind in zip(whole.schema.names, whole.schema.types, strict=True):
        if pa.types.is_dictionary(kind):
            at = whole.schema.get_field_index(name)
            whole = whole.set_column(at, name, pa.chunked_array([whole.column(at).unify_dictionaries().combine_chunks()]))
    return whole


def _alike(table: pa.Table, mixed: dict[str, bool]) -> pa.Table:
    """The table with these columns as dictionaries, or as plain cells."""
    for name, coded in mixed.items():
        at = table.schema.get_field_index(name)
        if at >= 0 and pa.types.is_dictionary(table.schema.types[at]) != coded:
            cells = table.column(at)
            table = table.set_column(at, name, cells.dictionary_encode() if coded else cells.cast(cells.type.value_type))
    return table
