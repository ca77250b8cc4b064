"""Describes a window's tables for the workers that order them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from tidelake.decode.late_cells import PROTOCOLS
from tidelake.history.projection import CellPlace, Projection
from tidelake.lake.catalog import LakeTable
from tidelake.lake.columns.cells import CastRules, arrow_type, cell_type
from tidelake.lake.data_files import file_schema
from tidelake.lake.tables import CHANGELOG_COLUMNS, PARTIAL, holders, mask_of
from tidelake.order.arrow.table_models import ArrowColumn, ArrowTable, CellPosition, Reading, SentName
from tidelake.order.table_rows import TableRows

_SHARE = 250_000  # fewest rows of a share


def arrow_table(table: TableRows, target: LakeTable, rows: int, tasks: int) -> ArrowTable:
    """Return what workers need to know of a table.

    Args:
        table: The table.
        target: Its changelog, with all columns of the window.
        rows: Number of its row events.
        tasks: Number of tasks that order tables.

    Raises:
        ConfigError: A column cannot have its mask.
        OrderError: MASKED: cells have another mask.
    """
    have = target.columns()
    columns = arrow_columns(table, {i: held[0].name for i, held in holders(have).items()})
    fields = [pa.field(c.name, arrow_type(c.type.lake)) for c in columns]
    own = [*CHANGELOG_COLUMNS, *(c for c in have if c.source_id is None and c.name == PARTIAL.name)]
    fields += [pa.field(c.name, arrow_type(c.type)) for c in own]
    clear = table.clear_cells()
    marks = {m for p in table.projections if clear and (m := mask_of(table.feed, table.incarnation, p.column)) is not None}
    buckets = table.buckets if table.bucket else 1
    return ArrowTable(
        names=tuple(SentName(database=n.database, table=n.table, after_ts=n.after_ts, until_ts=n.until_ts) for n in table.names),
        columns=tuple(columns),
        key=tuple(table.incarnation.key),
        bucket=next((c.id for c in table.incarnation.columns if c.lake_name == table.bucket), None),
        buckets=buckets,
        shares=max(1, min(-(-tasks // buckets), rows // buckets // _SHARE)),
        location=target.table.location(),
        schema_hex=file_schema(target, pa.schema(fields)).serialize().to_pybytes().hex(),
        sequence=table.sequence,
        every=table.feed.by_offsets,
        time_zone=table.feed.time_zone,
        clear=tuple(_position(place, 0) for place in clear),
        marks=tuple(sorted(marks)),
    )


def arrow_columns(table: TableRows, names: Mapping[int, str]) -> list[ArrowColumn]:
    """Return the columns of a table's rows and how their cells are read. names: the lake's name of each column, by id."""
    return [_column(p, table, names[p.column.id]) for p in table.projections]


def _column(p: Projection, table: TableRows, name: str) -> ArrowColumn:
    rules, readings, positions = table.rules(p.column), list[Reading](), list[CellPosition]()
    last = cell_type(p.column.type, rules)
    for place in p.places:
        reading = _reading(place, rules, table)
        readings += [] if reading in readings else [reading]
        positions.append(_position(place, readings.index(reading)))
    return ArrowColumn(
        id=p.column.id,
        name=name,
        shown=p.column.name,
        type=last,
        readings=tuple(readings or [Reading(type=last)]),
        positions=tuple(positions),
    )


def _reading(place: CellPlace, rules: CastRules, table: TableRows) -> Reading:
    """How cells are read. A form of their own has ENUM and SET as names. Cells with a mask stay as they were sent."""
    sent = table.sent(place)
    of_form = replace(rules, names_sent=rules.names_sent or sent.form is not None)
    untyped = sent.type is None and (sent.form is not None or table.feed.protocol in PROTOCOLS) and rules.values.mask is None
    return Reading(type=cell_type(place.type, of_form), untyped=place.type.sql if untyped else "", form=sent.form if untyped else None)


def _position(place: CellPlace, reading: int) -> CellPosition:
    return CellPosition(
        row_schema=place.row_schema, position=place.position, after_ts=place.after_ts, until_ts=place.until_ts, reading=reading
    )
