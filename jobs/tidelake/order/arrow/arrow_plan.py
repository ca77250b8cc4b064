"""Chooses the tables of a window that workers order in Arrow (order.arrow.arrow_staging)."""

from __future__ import annotations

import pyarrow as pa

from tidelake.history.projection import Projection
from tidelake.lake.catalog import LakeTable
from tidelake.lake.columns.cells import arrow_type, cell_type
from tidelake.lake.data_files import file_schema
from tidelake.lake.tables import CHANGELOG_COLUMNS, physical
from tidelake.order.arrow.arrow_tables import ArrowColumn, ArrowTable, CellPosition, SentName
from tidelake.order.sql.order_masks import cells_in_clear
from tidelake.order.sql.rows import TableRows, late_cells

MOST_ROWS = 1_000_000  # row events of a bucket, which a worker holds in memory


def can_be_read(table: TableRows, rows: int) -> bool:
    """Whether workers can order a table's rows, judging by its columns and size. rows: row events of the window."""
    feed, i = table.feed, table.incarnation
    if rows > MOST_ROWS * (table.buckets if table.bucket else 1):
        return False
    if feed.watermark.source == "checkpoints" or feed.policy.handle_only == "accept":
        return False
    columns = table.projections
    if not {*i.key} <= {p.column.id for p in columns} or cells_in_clear(table):
        return False
    return all(_reads(p, table) for p in columns)


def _reads(p: Projection, table: TableRows) -> bool:
    """Whether all cells of a column have one type, which their messages state."""
    rules = table.rules(p.column)
    kinds = {cell_type(mysql, rules) for mysql in (p.column.type, *(place.type for place in p.places))}
    return len(kinds) == 1 and not late_cells(p, table)


def arrow_table(table: TableRows, target: LakeTable) -> ArrowTable:
    """Return what workers need to know of a table that can be read. target: its changelog, with all columns of the window."""
    columns, have = list[ArrowColumn](), target.columns()
    for p in table.projections:
        kind = cell_type(p.column.type, table.rules(p.column))
        positions = (CellPosition(row_schema=s.row_schema, position=s.position, after_ts=s.after_ts, until_ts=s.until_ts) for s in p.places)
        name = physical(have, p.column.id)[0].name
        columns.append(ArrowColumn(id=p.column.id, name=name, type=kind, positions=tuple(positions)))
    fields = [pa.field(c.name, arrow_type(c.type.lake)) for c in columns]
    fields += [pa.field(c.name, arrow_type(c.type)) for c in CHANGELOG_COLUMNS]
    return ArrowTable(
        names=tuple(SentName(database=n.database, table=n.table, after_ts=n.after_ts, until_ts=n.until_ts) for n in table.names),
        columns=tuple(columns),
        key=tuple(table.incarnation.key),
        bucket=next((c.id for c in table.incarnation.columns if c.lake_name == table.bucket), None),
        buckets=table.buckets if table.bucket else 1,
        location=target.table.location(),
        schema_hex=file_schema(target, pa.schema(fields)).serialize().to_pybytes().hex(),
        sequence=table.sequence,
        every=table.feed.by_offsets,
    )
