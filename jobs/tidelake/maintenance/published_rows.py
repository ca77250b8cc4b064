"""What maintenance changes in the tables of published cuts and of their statements, a share of the rows at a time, so that memory does not
grow with cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.config.lake_paths import ddl_table, published_table
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.catalogs.errors import retried
from tidelake.lake.cuts import ensure_published

SHARE_ROWS = 250_000  # maximum rows of several files that are rewritten together
_OF_TABLES = ("database", "table", "incarnation", "identifier", "uuid", "snapshot_id", "rows")
_AFTER = "changelog_retained_after"


def let_go(catalog: LakeCatalog, feed: str, going: Sequence[int], many_files: int) -> None:
    """Remove cuts from the readable ones: one row without a table is left of each.

    Rows are rewritten where cuts are removed, or where there are many small files.
    """
    ensure_published(catalog)
    for first, last, files in list(_shares(catalog, published_table(), feed)):
        here = [seq for seq in going if first <= seq <= last]
        if here or files >= many_files:
            _rewrite(catalog, published_table(), feed, (first, last), partial(_without, here))


def join_statements(catalog: LakeCatalog, feed: str, many_files: int) -> None:
    """Rewrite the feed's rows of the DDL ledger where there are many small files."""
    if catalog.find(ddl_table()) is not None:
        for first, last, files in list(_shares(catalog, ddl_table(), feed)):
            if files >= many_files:
                _rewrite(catalog, ddl_table(), feed, (first, last), lambda rows: rows.sort_by("seq"))


def raise_retained_after(catalog: LakeCatalog, feed: str, newest: int, gone: int) -> None:
    """Record in the rows of the feed's newest cut that changes at or before a TSO may be gone. One commit."""
    ensure_published(catalog)

    def raised(rows: pa.Table) -> pa.Table:
        at = rows.schema.get_field_index(_AFTER)
        return rows.set_column(at, rows.field(at), pc.max_element_wise(rows.column(at), pa.scalar(gone, pa.int64())))

    _rewrite(catalog, published_table(), feed, (newest, newest), raised)


def _shares(catalog: LakeCatalog, identifier: str, feed: str) -> Iterator[tuple[int, int, int]]:
    """Yield (first cut, last cut, number of files) of files that are rewritten together."""
    table = catalog.load(identifier)
    share, held = list[tuple[int, int]](), 0
    for first, last, rows in sorted((f.lower["seq"], f.upper["seq"], f.rows) for f in table.files({"feed": feed}, ["seq"], table.main)):
        if share and held + rows > SHARE_ROWS:
            yield _ends(share)
            share, held = [], 0
        share.append((first, last))
        held += rows
    if share:
        yield _ends(share)


def _ends(share: Sequence[tuple[int, int]]) -> tuple[int, int, int]:
    return min(first for first, _ in share), max(last for _, last in share), len(share)


def _rewrite(catalog: LakeCatalog, identifier: str, feed: str, cuts: tuple[int, int], change: Callable[[pa.Table], pa.Table]) -> None:
    """Replace a feed's rows of the cuts from first to last, in one commit."""
    own = f"feed == '{feed}' and seq >= {cuts[0]} and seq <= {cuts[1]}"  # a feed's name needs no quoting

    def attempt() -> None:
        table = catalog.load(identifier).table
        table.overwrite(change(table.scan(own).to_arrow()), overwrite_filter=own)

    retried(identifier, attempt)


def _without(going: Sequence[int], rows: pa.Table) -> pa.Table:
    goes = pc.is_in(rows["seq"], pa.array(going, pa.int64()))
    marked = rows.filter(goes).append_column("_row", pa.array(range(pc.sum(goes).as_py() or 0), pa.int64()))
    first = marked.group_by("seq").aggregate([("_row", "min")])["_row_min"]
    marks = marked.take(first).drop_columns(["_row"])
    for name in _OF_TABLES:
        at = marks.schema.get_field_index(name)
        marks = marks.set_column(at, marks.field(at), pa.nulls(marks.num_rows, marks.field(at).type))
    at = marks.schema.get_field_index("expired")
    marks = marks.set_column(at, marks.field(at), pa.array([True] * marks.num_rows, pa.bool_()))
    return pa.concat_tables([rows.filter(pc.invert(goes)), marks]).sort_by("seq")
