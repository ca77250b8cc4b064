"""Options, consoles and helpers that several commands use."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from tidelake.cli.terminal import Terminal
from tidelake.config.feed import load_feed
from tidelake.config.table_name import same
from tidelake.io.printable import printable_json

if TYPE_CHECKING:
    from tidelake.lake.opened import Lake

errors = Terminal(stderr=True)
out = Terminal(width=None if sys.stdout.isatty() else 200)  # in a file or pipe: wide enough not to wrap

SchemasFolder = Annotated[
    Path,
    typer.Option(
        "--schemas", envvar="TIDELAKE_SCHEMAS", metavar="DIR", help="Folder that holds the feeds.", show_default=True, rich_help_panel=None
    ),
]
FeedName = Annotated[str, typer.Option("--feed", metavar="F", help="Name of the feed: its folder under schemas/.")]
Hour = Annotated[str, typer.Option("--hour", metavar="H", help="Hour to process (UTC), for example 2026-01-05T10.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs. If the command fails, print the error as a JSON object.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done and change nothing.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks and Spark's log.")]

ALL = "all"  # value of --table: every table
DEFAULT_SCHEMAS = Path("schemas")


def wants_traceback(arguments: list[str]) -> bool:
    """Whether --debug is among the arguments. Every command has the option, but errors are printed outside of commands."""
    return "--debug" in arguments


def wants_json(arguments: list[str]) -> bool:
    """Whether --json is among the arguments: a command that fails then prints the error as an object on stdout."""
    return "--json" in arguments


def table_or_all(text: str) -> str:
    """Return the value of --table in the spelling of lakes and reports: `all` or a table name.

    Raises:
        ConfigError: TABLE_NAME: not a table name.
    """
    return text if text == ALL else same(text)


def print_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    sys.stdout.write(printable_json(value, indent=2) + "\n")


def say(line: str) -> None:
    """Print one line on stdout without wrapping it."""
    out.print(line, soft_wrap=True)


@contextmanager
def opened(schemas: Path, feed: str, quiet: bool = False, begins: bool = False) -> Iterator[Lake]:
    """Open a feed's lake and log its progress on stderr.

    Args:
        schemas: Folder that holds the feeds.
        feed: Name of the feed.
        quiet: Do not log progress.
        begins: The command may create the lake. Otherwise the lake must exist.
    """
    from tidelake.io.storage import open_store
    from tidelake.lake.identity import refuse_missing
    from tidelake.lake.opened import Lake

    loaded = load_feed(schemas, feed)
    if not begins:
        refuse_missing(open_store(loaded.lake.uri))
    with nullcontext() if quiet else logged(LogLines()), Lake.of(loaded) as lake:
        yield lake


class LogLines(logging.Handler):
    """Prints log records as `stage  message` on stderr, above a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        errors.print(f"{stage_of(record):>11}  {record.getMessage()}", style="dim", soft_wrap=True)


def stage_of(record: logging.LogRecord) -> str:
    """Return the stage that logs: the second part of the logger's name, `order` in tidelake.order.staging."""
    return record.name.split(".")[1]


@contextmanager
def logged(handler: logging.Handler) -> Iterator[None]:
    """Send the package's log to a handler inside the block."""
    package = logging.getLogger("tidelake")
    before = package.level
    package.addHandler(handler)
    package.setLevel(logging.INFO)
    try:
        yield
    finally:
        package.removeHandler(handler)
        package.setLevel(before)


class Bar(logging.Handler):
    """Progress bar with the share of work that is done, where it is known, and the time it has taken.

    As a log handler it shows the stage that a record with the attribute `begins` names.
    """

    def __init__(self, progress: Progress, what: str) -> None:
        super().__init__()
        self._progress, self._task = progress, progress.add_task(what, total=None)

    def __call__(self, done: int, total: int) -> None:
        self._progress.update(self._task, completed=done, total=total)

    def emit(self, record: logging.LogRecord) -> None:
        """Show the stage that begins."""
        if stage := getattr(record, "begins", None):
            self._progress.remove_task(self._task)
            self._task = self._progress.add_task(f"{stage} {record.getMessage()}", total=None)


@contextmanager
def working(what: str) -> Iterator[Bar | None]:
    """Yield a progress bar on a terminal, None elsewhere."""
    if not errors.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True) as progress:
        bar = Bar(progress, what)
        with logged(bar):
            yield bar
