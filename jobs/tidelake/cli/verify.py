"""`tidelake verify`: compare the lake's tables with their source."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tidelake.cli.common import ALL, DEFAULT_SCHEMAS, Debug, FeedName, Json, SchemasFolder, errors, opened, print_json, say, table_or_all
from tidelake.errors import ConfigError
from tidelake.io.texts import plural
from tidelake.query.verify.cell_texts import SourceCell
from tidelake.tso import parse_ts, show

if TYPE_CHECKING:
    from tidelake.lake.opened import Lake
    from tidelake.query.verify.compare import ComparedTable, OnCompared, RowDifference
    from tidelake.query.verify.table import Verified
    from tidelake.query.verify.upstream import Recorded, UpstreamDatabase

SHOWN = 50
DIFFERENT = 3
Answers = Annotated[
    list[Path] | None, typer.Option("--answers", metavar="FILE", help="Output of `mysql -N -B` for the SQL. Repeat for several files.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Tables")(verify)


def verify(
    feed: FeedName,
    table: Annotated[
        str, typer.Option("--table", metavar="db.t", help="The table, by its name at that time; `all` for every table.")
    ] = "all",
    at: Annotated[str | None, typer.Option("--at", metavar="TSO", help="TSO or time to compare at. Default: the newest cut.")] = None,
    source: Annotated[
        SourceCell | None, typer.Option("--source", help="Kind of source. Default: what the source reports, else tidb.")
    ] = None,
    connect: Annotated[
        str | None,
        typer.Option(
            "--connect", envvar="TIDELAKE_UPSTREAM", show_envvar=True, metavar="URL", help="Source to ask: mysql://user:password@host:4000"
        ),
    ] = None,
    answers: Answers = None,
    sql: Annotated[Path | None, typer.Option("--sql", metavar="FILE", help="Write the SQL to this file instead of stdout.")] = None,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare tables with their source at one TSO, by checksums over key ranges. Ranges that differ are narrowed down to rows.

    With --connect the command queries the source.
    Without it, the command prints SQL to run at the source.
    Give the output back with --answers; the command then writes the next SQL for the ranges that differ.
    The command only reads.
    At a published cut it does not start Spark.
    Exit code 0: equal; 3: different.
    """
    if connect and (answers or sql):
        raise ConfigError("--connect queries the source directly", remedy="leave out --answers and --sql, or unset TIDELAKE_UPSTREAM")
    wanted = table_or_all(table)
    with ExitStack() as stack:
        lake = stack.enter_context(opened(schemas, feed, quiet=True))
        ts, names = _tables(lake, wanted, None if at is None else parse_ts(at))
        recorded = None if connect else _recorded(answers)
        kind, upstream = (source or SourceCell.tidb, recorded) if recorded else _connected(stack, connect or "", source, ts)
        assert upstream is not None
        found = [_verified(lake, name, ts, kind, upstream) for name in names]
    if recorded is not None and recorded.open:
        _ask(recorded, found, kind, ts, sql, first=not answers)
        if not answers:
            return
    _report(found, as_json)
    if any(not v.compared.equal for v in found):
        raise typer.Exit(DIFFERENT)


def _tables(lake: Lake, table: str, ts: int | None) -> tuple[int, list[str]]:
    from tidelake.query.asof import life_at, tables_at

    if table == ALL:
        return tables_at(lake, ts)
    return life_at(lake, table, ts)[0], [table]


def _recorded(answers: Sequence[Path] | None) -> Recorded:
    from tidelake.query.verify.upstream import read_answers

    return read_answers(answers or ())


def _connected(stack: ExitStack, url: str, source: SourceCell | None, ts: int) -> tuple[SourceCell, UpstreamDatabase]:
    from tidelake.io.mysql import reader
    from tidelake.query.verify.questions import session
    from tidelake.query.verify.upstream import Connected

    reading = stack.enter_context(reader(url))
    kind = source or _kind(str(reading.query("SELECT VERSION()")[0][0]))
    for statement in session(kind, ts):
        reading.query(statement)
    return kind, Connected(reading)


def _kind(version: str) -> SourceCell:
    return next((s for s in (SourceCell.tidb, SourceCell.mariadb) if s.value in version.lower()), SourceCell.mysql)


def _verified(lake: Lake, name: str, ts: int, source: SourceCell, upstream: UpstreamDatabase) -> Verified:
    from tidelake.query.verify.table import verify_table

    with _progress(name) as advance:
        return verify_table(lake, name, ts, source, upstream, advance=advance)


@contextmanager
def _progress(what: str) -> Iterator[OnCompared | None]:
    if not errors.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TextColumn("ranges"), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _ask(recorded: Recorded, found: Sequence[Verified], source: SourceCell, ts: int, sql: Path | None, *, first: bool) -> None:
    """Write the SQL to run at the source. Raises ConfigError if the answers belong to other questions."""
    from tidelake.query.verify.upstream import script

    missing = [v.table for v in found if v.compared.unanswered and not v.compared.different]
    if missing and not first:
        raise ConfigError(
            f"the answers lack ranges of {', '.join(missing)}",
            remedy="they are of another cut, table or --source, or were cut short: run the SQL again, and give every file of answers",
        )
    text = script(source, ts, list(recorded.open.values()))
    if sql is not None:
        sql.write_text(text, encoding="utf-8")
    elif first:
        sys.stdout.write(text)
    where = f"{sql}: " if sql is not None else ""
    todo = "run the SQL there, then give --answers" if sql is not None or first else "give --sql FILE to write them"
    errors.print(f"{where}{plural(len(recorded.open), 'question')} to {source} at {show(ts)}; {todo}", soft_wrap=True)
    for v in found if first else ():
        for line in _reservations(v):
            errors.print(f"{v.table}: {line}", soft_wrap=True)


def _report(found: Sequence[Verified], as_json: bool) -> None:
    if as_json:
        print_json([asdict(v) | {"equal": v.compared.equal} for v in found])
        return
    for v in found:
        c = v.compared
        say(f"{v.table} at {show(v.ts)}: {_verdict(c)}")
        for line in _reservations(v):
            say(f"  {line}")
        for row in c.rows[:SHOWN]:
            say(f"  {_row(row)}")
        if len(c.rows) > SHOWN:
            say(f"  and {plural(len(c.rows) - SHOWN, 'more row')}; --json has all")
        for rest in c.unlisted:
            say(f"  not examined: {rest}")
        if c.unanswered:
            say(f"  {plural(c.unanswered, 'question')} about the differences {'is' if c.unanswered == 1 else 'are'} not answered yet")


def _verdict(c: ComparedTable) -> str:
    ranges = plural(c.ranges, "range")
    if not c.ranges:
        return "no column can be compared"
    if c.equal:
        return f"equal, {plural(c.rows_here, 'row')} in {ranges}"
    return f"different in {c.different} of {ranges}: {plural(c.rows_here, 'row')} here, {c.rows_upstream:,} upstream"


def _reservations(v: Verified) -> list[str]:
    return [*(f"not compared: {name}: {why}" for name, why in v.uncompared.items()), *v.notes]


def _row(row: RowDifference) -> str:
    key = ", ".join(f"{name}={_cell(value)}" for name, value in row.key.items())
    cells = "; ".join(f"{name}: {_cell(a)} here, {_cell(b)} upstream" for name, (a, b) in row.columns.items())
    return f"{row.kind}: {key}{f': {cells}' if cells else ''}"


def _cell(value: str | None) -> str:
    return "∅" if value is None else value
