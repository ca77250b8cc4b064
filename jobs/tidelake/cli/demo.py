"""`tidelake demo`: the whole pipeline on generated data."""

from __future__ import annotations

import logging
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.status import Status
from rich.table import Table

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, SchemasFolder, errors, logged, out, stage_of
from tidelake.io.texts import plural

if TYPE_CHECKING:
    from tidelake.demo.play import FeedResult

FOLDER = Path(".tidelake/demo")
BRIEF_ROWS = 50_000  # up to this many rows, Spark's code generation takes longer than it saves


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Start here")(demo)


def demo(
    rows: Annotated[int, typer.Option("--rows", min=100, metavar="N", help="Approximate number of row events per hour and feed.")] = 2000,
    hours: Annotated[int, typer.Option("--hours", min=1, max=24, metavar="N", help="Number of hours to generate.")] = 3,
    folder: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Folder for the S3 data, the catalog and the reports.")] = FOLDER,
    serve: Annotated[bool, typer.Option("--serve", help="Keep the S3 server running afterwards, until Ctrl-C.")] = False,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    debug: Debug = False,
) -> None:
    """Run the whole pipeline on generated data and compare every table with the truth.

    The demo starts an S3 server of its own and generates four feeds of one marketplace in four protocols.
    Each run starts from scratch.
    """
    from tidelake.demo.memory import peaks
    from tidelake.demo.play import FEEDS, demo_lake, demo_schemas, make_archives, play
    from tidelake.run import kept_session

    where, started = demo_schemas(schemas), time.monotonic()
    with demo_lake(folder, fresh=True) as variables:
        with errors.status("making the archives of four changefeeds"):
            workload = make_archives(hours, rows)
        results: list[FeedResult] = []
        with kept_session("tidelake demo", brief=rows <= BRIEF_ROWS):
            for number, feed in enumerate(FEEDS, 1):
                with errors.status(f"{feed} ({number} of {len(FEEDS)})") as status, logged(_StatusLine(status, feed)):
                    results.append(play(folder, where, feed, workload))
                _print_result(results[-1])
            used = peaks()
        _summary(results, folder, time.monotonic() - started, used)
        if serve:
            _serve(variables, where, folder)
        else:
            out.print("to query the tables: `tidelake demo --serve` does the same and keeps the S3 server running", soft_wrap=True)
    if any(r.equal < r.tables for r in results):
        raise typer.Exit(1)


class _StatusLine(logging.Handler):
    """Shows a feed's log records in the status line."""

    def __init__(self, status: Status, feed: str) -> None:
        super().__init__()
        self._status, self._feed = status, feed

    def emit(self, record: logging.LogRecord) -> None:
        """Show one record."""
        self._status.update(f"{self._feed}  {stage_of(record)}: {record.getMessage()}")


def _print_result(result: FeedResult) -> None:
    """Print one line for a feed where no terminal shows the status."""
    if not errors.is_terminal:
        errors.print(f"{result.feed}: {plural(result.cuts, 'cut')}, {result.seconds:.0f} s")


def _summary(results: list[FeedResult], folder: Path, seconds: float, used: dict[str, int]) -> None:
    grid = Table("feed", "protocol", "messages", "row events", "cuts", "rows", "equal the truth", "seconds", box=None, pad_edge=False)
    for column in grid.columns[2:]:
        column.justify, column.no_wrap = "right", True
    for r in results:
        numbers = (r.messages, r.events, r.cuts, r.rows)
        grid.add_row(r.feed, r.protocol, *(f"{n:,}" for n in numbers), f"{r.equal} of {plural(r.tables, 'table')}", f"{r.seconds:.1f}")
    out.print(grid)
    for r in results:
        for line in r.differences[:5]:
            out.print(f"  differs: {r.feed} {line}", soft_wrap=True)
    out.print(f"{seconds:.0f} s in all; most memory of a process: {_said(used)}", soft_wrap=True)
    out.print(f"report: {results[0].report}  (all: {folder / 'reports'})", soft_wrap=True)


def _said(used: dict[str, int]) -> str:
    return ", ".join(f"{name} {used[name] / 2**20:,.0f} MiB" for name in ("python", "java", "weed") if name in used) or "not known here"


def _serve(variables: dict[str, str], schemas: Path, folder: Path) -> None:
    from tidelake.demo.play import write_variables

    script = write_variables(folder, variables)
    out.print("the S3 server is running; in another terminal:")
    out.print(f"  source {script}", soft_wrap=True)
    out.print(f"  tidelake asof --feed bazaar-open --table bazaar.merchants --schemas {schemas}", soft_wrap=True)
    out.print("Ctrl-C ends it")
    signal.pause()
