"""What commands share: options, consoles, opening a feed's lake, output for programs."""

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
out = Terminal(width=None if sys.stdout.isatty() else 200)  # into a file or pipe: no wrapping at 80

SchemasFolder = Annotated[
    Path,
    typer.Option("--schemas", envvar="TIDELAKE_SCHEMAS", metavar="DIR", help="Folder of feeds.", show_default=True, rich_help_panel=None),
]
FeedName = Annotated[str, typer.Option("--feed", metavar="F", help="The feed: a folder's name under schemas/.")]
Hour = Annotated[str, typer.Option("--hour", metavar="H", help="The hour, UTC, like 2026-01-05T10.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs; of a command that fails, the error as an object.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done; change nothing.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks and Spark's own log.")]

ALL = "all"  # of --table: every one
DEFAULT_SCHEMAS = Path("schemas")


def wants_traceback(arguments: list[str]) -> bool:
    """Whether --debug is given; it is every command's option, but errors are told outside of commands."""
    return "--debug" in arguments


def wants_json(arguments: list[str]) -> bool:
    """Whether --json is given: then a command that fails leaves an object on stdout, too."""
    return "--json" in arguments


def table_or_all(text: str) -> str:
    """What --table names, as lakes and reports call it: `all`, or a table. Raises ConfigError (TABLE_NAME)."""
    return text if text == ALL else same(text)


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(printable_json(value, indent=2) + "\n")


def say(line: str) -> None:
    """One line on stdout, not wrapped."""
    out.print(line, soft_wrap=True)


@contextmanager
def opened(schemas: Path, feed: str, quiet: bool = False, begins: bool = False) -> Iterator[Lake]:
    """A feed's lake; what it does is told on stderr. begins: the command may be the first one; else there must be a lake."""
    from tidelake.io.storage import open_store
    from tidelake.lake.identity import refuse_missing
    from tidelake.lake.opened import Lake

    loaded = load_feed(schemas, feed)
    if not begins:
        refuse_missing(open_store(loaded.lake.uri))
    with nullcontext() if quiet else logged(LogLines()), Lake.of(loaded) as lake:
        yield lake


class LogLines(logging.Handler):
    """Prints a record as `stage  message` on stderr, above a progress bar. The stage is the second part of the logger's name."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        errors.print(f"{stage_of(record):>11}  {record.getMessage()}", style="dim", soft_wrap=True)


def stage_of(record: logging.LogRecord) -> str:
    """The stage that logs: the second part of the logger's name, as in tidelake.order.staging."""
    return record.name.split(".")[1]


@contextmanager
def logged(handler: logging.Handler) -> Iterator[None]:
    """Hand the package's log to a handler meanwhile."""
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
    """A progress bar: how much of its work is done, where that is known, and for how long it has been at it.

    As a log handler it takes the stage that a record `begins` for its work.
    """

    def __init__(self, progress: Progress, what: str) -> None:
        super().__init__()
        self._progress, self._task = progress, progress.add_task(what, total=None)

    def __call__(self, done: int, total: int) -> None:
        self._progress.update(self._task, completed=done, total=total)

    def emit(self, record: logging.LogRecord) -> None:
        """Name the stage that begins."""
        if stage := getattr(record, "begins", None):
            self._progress.remove_task(self._task)
            self._task = self._progress.add_task(f"{stage} {record.getMessage()}", total=None)


@contextmanager
def working(what: str) -> Iterator[Bar | None]:
    """A progress bar on a terminal, nothing elsewhere."""
    if not errors.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True) as progress:
        bar = Bar(progress, what)
        with logged(bar):
            yield bar
