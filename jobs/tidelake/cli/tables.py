"""asof and changelog: tables and their changes, as text or files."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import typer
from rich.table import Table

from tidelake import duck
from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, FeedName, Schemas, errors, opened, out
from tidelake.errors import ConfigError
from tidelake.render import expressions, flat, local
from tidelake.tso import last_of, parse_moment, show

if TYPE_CHECKING:
    from tidelake.lake.asof import AsOf
    from tidelake.lake.opened import Lake

SHOWN = 50
_ORDER = "CASE _change_type WHEN 'DELETE' THEN 0 WHEN 'UPDATE_BEFORE' THEN 1 WHEN 'UPDATE_AFTER' THEN 2 ELSE 3 END"
_MOVED = "CASE _kafka_partition WHEN {last} THEN 1 WHEN {first} THEN -1 ELSE 0 END"  # by a statement
TableName = Annotated[str, typer.Option("--table", metavar="db.t", help="The table, by its name then; `all` for every table.")]


class Format(StrEnum):
    """How rows are printed."""

    jsonl = "jsonl"
    parquet = "parquet"
    table = "table"


class ChangeFormat(StrEnum):
    """How changes are printed."""

    jsonl = "jsonl"
    table = "table"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(rich_help_panel="Tables")(asof)
    app.command(rich_help_panel="Tables")(changelog)


def asof(
    feed: FeedName,
    table: TableName,
    ts: Annotated[int | None, typer.Option("--ts", metavar="TSO", help="As of this TSO; default: the newest cut.")] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="As of this time, like 2026-01-05T12:00:00Z.")] = None,
    format_: Annotated[
        Format, typer.Option("--format", help="jsonl: canonical text; parquet: the lake's types; table: for people.")
    ] = Format.table,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="PATH", help="File, or folder with `--table all`.")] = None,
    schemas: Schemas = DEFAULT_SCHEMAS,
    debug: Debug = False,
) -> None:
    """A table as it stood at a TSO. At a published cut no Spark is started."""
    if ts is not None and at is not None:
        raise ConfigError("--ts and --at say the same", remedy="give one of them")
    moment = last_of(parse_moment(at)) if at is not None else ts
    with opened(schemas, feed, quiet=True) as lake:
        if table == "all":
            _all(lake, moment, format_, output or Path())
        else:
            _one(lake, table, moment, format_, output)


def changelog(
    feed: FeedName,
    table: Annotated[str, typer.Option("--table", metavar="db.t", help="The table; changes are shown while it bore this name.")],
    from_: Annotated[int, typer.Option("--from", metavar="TSO", help="Changes after this TSO.")] = 0,
    to: Annotated[int | None, typer.Option("--to", metavar="TSO", help="Up to and including this TSO; default: the newest cut.")] = None,
    scd2: Annotated[bool, typer.Option("--scd2", help="Versions of rows with the time each was valid, up to --to (starts Spark).")] = False,
    format_: Annotated[ChangeFormat, typer.Option("--format")] = ChangeFormat.table,
    schemas: Schemas = DEFAULT_SCHEMAS,
    debug: Debug = False,
) -> None:
    """A table's changes in commit order: INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE. Starts no Spark but for --scd2.

    With --scd2: every version of every row, with _valid_from_ts, _valid_to_ts (TSO), _valid_from, _valid_to (in the feed's time zone)
    and _current. A version is valid at ts if _valid_from_ts <= ts < _valid_to_ts, where NULL is still. Tables without a key have none.
    """
    from tidelake.lake.changes import changes_of
    from tidelake.lake.cuts import horizon
    from tidelake.layout import MOVED_FIRST, MOVED_LAST

    if scd2:
        if from_:
            raise ConfigError("--from does not go with --scd2", remedy="versions are those of the whole life of the table; filter them")
        _versions(schemas, feed, table, to, format_)
        return
    moved = _MOVED.format(last=MOVED_LAST, first=MOVED_FIRST)
    order = f" ORDER BY _commit_ts, {moved}, {_ORDER}, _topic, _kafka_partition, _offset, _ordinal"
    with opened(schemas, feed, quiet=True) as lake:
        gone = horizon(lake.catalog, feed)
        if gone > from_:
            errors.print(f"changes up to {show(gone)} are not all kept: those after it are shown", highlight=False)
        for changes in changes_of(lake, table, from_, to):
            rows = local(changes.rows, lake.feed.time_zone)
            if format_ is ChangeFormat.jsonl:
                to_stdout(rows, expressions(changes.columns), order)
            else:
                print_rows([c.name for c in changes.columns], flat(changes.columns), rows, f"changes of {table}", order)


def _versions(schemas: Path, feed: str, table: str, ts: int | None, format_: ChangeFormat) -> None:
    from tidelake.lake.fetch import fetched
    from tidelake.lake.scd2 import scd2_frame

    with opened(schemas, feed, quiet=True) as lake, tempfile.TemporaryDirectory(prefix="tidelake-scd2-") as folder:
        frame, columns = scd2_frame(lake, table, ts, lake.spark)
        rows = local(fetched(frame, Path(folder)), lake.feed.time_zone)
        if format_ is ChangeFormat.jsonl:
            to_stdout(rows, expressions(columns), " ORDER BY ALL")
        else:
            print_rows([c.name for c in columns], flat(columns), rows, f"versions of {table}", " ORDER BY ALL")


def _one(lake: Lake, table: str, ts: int | None, format_: Format, output: Path | None) -> None:
    with _asof(lake, table, ts) as found:
        if format_ is Format.table:
            names = [c.name for c in found.columns]
            print_rows(names, flat(found.columns), local(found.rows, lake.feed.time_zone), f"{found.name} at {show(found.ts)}")
        elif format_ is Format.jsonl and output is None:
            to_stdout(local(found.rows, lake.feed.time_zone), expressions(found.columns))
        else:
            path = output or Path(f"{table}.{format_.value}")
            rows = _write(found, lake.feed.time_zone, format_, path)
            errors.print(f"{path}: {rows:,} rows of {found.name} at {show(found.ts)}", highlight=False)


def _all(lake: Lake, ts: int | None, format_: Format, folder: Path) -> None:
    from tidelake.lake.asof import tables_at

    moment, names = tables_at(lake, ts)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if format_ is Format.table:
            _one(lake, name, moment, format_, None)
        else:
            _one(lake, name, moment, format_, folder / f"{name}.{format_.value}")


@contextmanager
def _asof(lake: Lake, table: str, ts: int | None) -> Iterator[AsOf]:
    from tidelake.lake.asof import table_asof

    with table_asof(lake, table, ts, lambda: lake.spark) as found:
        yield found


def _write(found: AsOf, time_zone: str, format_: Format, path: Path) -> int:
    if format_ is Format.jsonl:
        return duck.write_jsonl(local(found.rows, time_zone), expressions(found.columns), path)
    names, count = [c.name for c in found.columns], 0
    schema = pa.schema([found.rows.schema.field(name) for name in names])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in found.rows:
            writer.write_batch(batch.select(names))
            count += batch.num_rows
    return count


def to_stdout(rows: pa.RecordBatchReader, select: Sequence[str], order: str = "") -> None:
    """One JSON object a row. By way of a file, so that a closed pipe or a redirected stdout is Python's affair and not DuckDB's."""
    with tempfile.TemporaryDirectory(prefix="tidelake-") as folder:
        path = Path(folder) / "rows.jsonl"
        duck.write_jsonl(rows, select, path, order)
        with path.open("rb") as stream:
            shutil.copyfileobj(stream, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def print_rows(names: Sequence[str], select: Sequence[str], rows: pa.RecordBatchReader, title: str, order: str = "") -> None:
    """A table for people, of SQL expressions over the rows."""
    found = duck.to_text(rows, select, SHOWN + 1, order)
    grid = Table(
        title=title, title_justify="left", caption=f"the first {SHOWN} rows; --format jsonl has all" if len(found) > SHOWN else None
    )
    for name in names:
        grid.add_column(name, overflow="fold")
    for row in found[:SHOWN]:
        grid.add_row(*("∅" if v is None else str(v) for v in row))
    out.print(grid, markup=False) if found else out.print(f"{title}: no rows", highlight=False)
