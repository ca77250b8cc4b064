"""Printing of rows: as a table, as records one below the other, or as one JSON object per line."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer
from rich.measure import Measurement
from rich.table import Table

from tidelake.cli.common import out
from tidelake.io import duckdb_door as duck
from tidelake.io.texts import plural

SHOWN = 50
Limit = Annotated[
    int,
    typer.Option("--limit", min=1, metavar="N", help="Maximum number of rows to print; jsonl and parquet have all rows."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRows:
    """How rows are shown to people.

    Attributes:
        title: Title above the rows.
        limit: Maximum number of rows.
        vertical: Print one line per column. A table that is wider than the terminal is always printed so.
    """

    title: str
    limit: int = SHOWN
    vertical: bool = False


def to_stdout(rows: pa.RecordBatchReader, select: Sequence[str], order: str = "") -> None:
    """Print one JSON object per row.

    The rows go through a file, so that Python and not DuckDB handles a closed pipe or a redirected stdout.

    Args:
        rows: The rows.
        select: SQL expressions over them.
        order: SQL ORDER BY clause, or empty.
    """
    with tempfile.TemporaryDirectory(prefix="tidelake-") as folder:
        path = Path(folder) / "rows.jsonl"
        duck.write_jsonl(rows, select, path, order)
        with path.open("rb") as stream:
            shutil.copyfileobj(stream, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def print_rows(names: Sequence[str], select: Sequence[str], rows: pa.RecordBatchReader, page: ShownRows, order: str = "") -> None:
    """Print the first rows for people.

    Args:
        names: Headings, one for each expression.
        select: SQL expressions over the rows.
        rows: The rows.
        page: Title, limit and direction.
        order: SQL ORDER BY clause, or empty.
    """
    found = [["∅" if v is None else str(v) for v in row] for row in duck.to_text(rows, select, page.limit + 1, order)]
    if not found:
        out.print(f"{page.title}: no rows")
        return
    shown = found[: page.limit]
    grid = Table()
    for name in names:
        grid.add_column(name, overflow="fold")
    for row in shown:
        grid.add_row(*row)
    too_wide = out.is_terminal and Measurement.get(out, out.options.update(max_width=1 << 16), grid).maximum > out.width
    out.print(page.title, style="italic")
    if page.vertical or too_wide:
        _print_records(names, shown)
    else:
        out.print(grid)
    if len(found) > page.limit:
        out.print(f"the first {plural(page.limit, 'row')}; --limit N shows more, --format jsonl all", style="dim")


def _print_records(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print one line per column, like MySQL's \\G."""
    width = max(map(len, names))
    for number, row in enumerate(rows, 1):
        out.print(f"─── row {number}", style="dim")
        for name, value in zip(names, row, strict=True):
            out.print(f"{name:>{width}}  {value}", soft_wrap=True)
