"""`tidelake asof` and `changelog`: print tables and their changes, or write them to files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from tidelake.cli.common import ALL, DEFAULT_SCHEMAS, Debug, FeedName, SchemasFolder, errors, opened, table_or_all
from tidelake.cli.rows import SHOWN, Limit, ShownRows, print_rows, to_stdout
from tidelake.config.table_name import FILE_BYTES, file_stem, parse, same
from tidelake.errors import ConfigError
from tidelake.io import duckdb_door as duck
from tidelake.io.texts import plural
from tidelake.query.render import expressions, flat, local
from tidelake.tso import last_of, parse_moment, show

if TYPE_CHECKING:
    from tidelake.lake.opened import Lake
    from tidelake.query.asof import AsOf

_ORDER = " ORDER BY _change_seq"
TableOption = Annotated[str, typer.Option("--table", metavar="db.t", help="The table, by its name at that time; `all` for every table.")]


def _tso(text: str) -> int:
    """Parse a TSO. Raises typer.BadParameter."""
    if not text.isdecimal():
        raise typer.BadParameter(f"{text!r} is not a TSO, a number like 463367621836800000; --at takes a time")
    return int(text)


class Format(StrEnum):
    """Output formats of `asof`."""

    jsonl = "jsonl"
    parquet = "parquet"
    table = "table"
    vertical = "vertical"


class ChangeFormat(StrEnum):
    """Output formats of changes."""

    jsonl = "jsonl"
    table = "table"
    vertical = "vertical"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(rich_help_panel="Tables")(asof)
    app.command(rich_help_panel="Tables")(changelog)


def asof(
    feed: FeedName,
    table: TableOption,
    ts: Annotated[int | None, typer.Option("--ts", metavar="TSO", help="State at this TSO. Default: the newest cut.", parser=_tso)] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="State at this time, for example 2026-01-05T12:00:00Z.")] = None,
    format_: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="jsonl: canonical text. parquet: the lake's types. table, vertical: for people. Default: table; with --output: jsonl, "
            "or parquet if the file name ends in .parquet.",
            show_default=False,
        ),
    ] = None,
    limit: Limit = SHOWN,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PATH", help="File to write; a folder with `--table all`.")
    ] = None,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    debug: Debug = False,
) -> None:
    """Show a table as it was at a TSO or a time. At a published cut the command does not start Spark."""
    if ts is not None and at is not None:
        raise ConfigError("--ts and --at say the same", remedy="give one of them")
    moment = last_of(parse_moment(at)) if at is not None else ts
    wanted = table_or_all(table)
    how = format_ or _default_format(output)
    _refuse_output(how, output, whole=wanted == ALL)
    with opened(schemas, feed, quiet=True) as lake:
        if wanted == ALL:
            _all(lake, moment, how, output or Path(), limit)
        else:
            _one(lake, wanted, moment, how, output, limit)


def _default_format(output: Path | None) -> Format:
    if output is None:
        return Format.table
    return Format.parquet if output.suffix == ".parquet" else Format.jsonl


def _refuse_output(how: Format, output: Path | None, *, whole: bool) -> None:
    """Raise ConfigError if the file could not be written."""
    if output is None:
        return
    if how in (Format.table, Format.vertical):
        raise ConfigError(f"--output: --format {how} prints for people and writes no file", remedy="give --format jsonl or parquet")
    if not whole and not output.parent.is_dir():
        raise ConfigError(f"--output: there is no folder {output.parent}", remedy="create it, or give a file in an existing folder")


def changelog(
    feed: FeedName,
    table: Annotated[str, typer.Option("--table", metavar="db.t", help="The table. Changes are shown for the time it had this name.")],
    from_: Annotated[int, typer.Option("--from", metavar="TSO", help="Show changes after this TSO.")] = 0,
    to: Annotated[
        int | None, typer.Option("--to", metavar="TSO", help="Show changes up to and including this TSO. Default: the newest cut.")
    ] = None,
    scd2: Annotated[bool, typer.Option("--scd2", help="Show row versions with their validity, up to --to (starts Spark).")] = False,
    format_: Annotated[
        ChangeFormat, typer.Option("--format", help="jsonl: canonical text. table. vertical: one line per column.")
    ] = ChangeFormat.table,
    limit: Limit = SHOWN,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    debug: Debug = False,
) -> None:
    """Show a table's changes in commit order: INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE. Starts Spark only with --scd2.

    With --scd2 the command shows every version of every row.
    Columns: the source's, then _valid_from_ts, _valid_to_ts (TSO), _valid_from, _valid_to (in the feed's time zone) and _current.
    A version is valid at ts if _valid_from_ts <= ts < _valid_to_ts; NULL means that it is still valid.
    Tables without a key have no versions.
    """
    from tidelake.lake.cuts import changelog_retained_after
    from tidelake.query.changes import changes_of

    table = same(table)
    if scd2:
        if from_:
            raise ConfigError("--from does not go with --scd2", remedy="versions are those of the whole life of the table; filter them")
        _versions(schemas, feed, table, to, format_, limit)
        return
    with opened(schemas, feed, quiet=True) as lake:
        gone = changelog_retained_after(lake.catalog, feed)
        if gone > from_:
            errors.print(f"changes up to {show(gone)} are not all kept: those after it are shown")
        for changes in changes_of(lake, table, from_, to):
            rows = local(changes.rows, lake.feed.time_zone)
            if format_ is ChangeFormat.jsonl:
                to_stdout(rows, expressions(changes.columns), _ORDER)
            else:
                page = ShownRows(title=f"changes of {table}", limit=limit, vertical=format_ is ChangeFormat.vertical)
                print_rows([c.name for c in changes.columns], flat(changes.columns), rows, page, _ORDER)


def _versions(schemas: Path, feed: str, table: str, ts: int | None, format_: ChangeFormat, limit: int) -> None:
    from tidelake.query.scd2 import scd2_frame
    from tidelake.spark.fetch import fetched

    with opened(schemas, feed, quiet=True) as lake, tempfile.TemporaryDirectory(prefix="tidelake-scd2-") as folder:
        frame, columns = scd2_frame(lake, table, ts, lake.spark)
        rows = local(fetched(frame, Path(folder)), lake.feed.time_zone)
        if format_ is ChangeFormat.jsonl:
            to_stdout(rows, expressions(columns), " ORDER BY ALL")
        else:
            page = ShownRows(title=f"versions of {table}", limit=limit, vertical=format_ is ChangeFormat.vertical)
            print_rows([c.name for c in columns], flat(columns), rows, page, " ORDER BY ALL")


def _one(lake: Lake, table: str, ts: int | None, format_: Format, output: Path | None, limit: int) -> None:
    with _asof(lake, table, ts) as found:
        if format_ in (Format.table, Format.vertical):
            names = [c.name for c in found.columns]
            page = ShownRows(title=f"{found.name} at {show(found.ts)}", limit=limit, vertical=format_ is Format.vertical)
            print_rows(names, flat(found.columns), local(found.rows, lake.feed.time_zone), page)
        elif format_ is Format.jsonl and output is None:
            to_stdout(local(found.rows, lake.feed.time_zone), expressions(found.columns))
        else:
            path = output or Path(_file_name(table, format_))
            rows = _write(found, lake.feed.time_zone, format_, path)
            errors.print(f"{path}: {plural(rows, 'row')} of {found.name} at {show(found.ts)}")


def _all(lake: Lake, ts: int | None, format_: Format, folder: Path, limit: int) -> None:
    from tidelake.query.asof import tables_at

    moment, names = tables_at(lake, ts)
    if format_ in (Format.table, Format.vertical):
        for name in names:
            _one(lake, name, moment, format_, None, limit)
        return
    files = {name: _file_name(name, format_) for name in names}
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in files.items():
        _one(lake, name, moment, format_, folder / file, limit)


def _file_name(table: str, format_: Format) -> str:
    """Return the file name of a table if the user gives none. Raises ConfigError (TABLE_NAME) if the name is too long."""
    name = f"{file_stem(*parse(table))}.{format_.value}"
    if len(name.encode()) > FILE_BYTES:
        raise ConfigError(
            f"{table}: its file would have a name of {len(name.encode())} bytes, and file systems take {FILE_BYTES}",
            code="TABLE_NAME",
            remedy="write this table alone, into a file that you name: --table and -o FILE",
        )
    return name


@contextmanager
def _asof(lake: Lake, table: str, ts: int | None) -> Iterator[AsOf]:
    from tidelake.query.asof import table_asof

    with table_asof(lake, table, ts) as found:
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
