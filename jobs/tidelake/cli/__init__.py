"""The command line: the only door for a terminal.

Exit codes: 0 done, 1 failed, 2 wrong use, 3 blocked (the data is safe, someone must decide).
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import typer
from typer.exceptions import TyperException

from tidelake.cli import archive, ddl, demo, diff, feeds, inspect, late, quarantine, rewind, seed, sniff, stages, tables, upkeep, verify
from tidelake.cli.common import errors, print_json, wants_json, wants_traceback
from tidelake.errors import ConfigError, TidelakeError

INTERRUPTED = 130  # 128 + SIGINT, as shells say it

app = typer.Typer(
    name="tidelake",
    help="TiCDC and Canal changes from Kafka archives into Iceberg tables: complete, in order, and provably so.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (demo, feeds, archive, seed, stages, rewind, upkeep, tables, diff, verify, inspect, sniff, quarantine, late, ddl):
    module.register(app)


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """A command line; the exit code. Errors go to stderr, without a traceback unless --debug is among the arguments; with --json stdout has
    them, too."""
    told = Told(debug=wants_traceback(arguments), as_json=wants_json(arguments))
    try:
        done = app(arguments, prog_name="tidelake", standalone_mode=False)
        if done == INTERRUPTED:  # typer's answer to Ctrl-C
            raise KeyboardInterrupt
        sys.stdout.flush()
        return done if isinstance(done, int) else 0  # what a command exits with is returned here, not raised
    except TyperException as e:  # wrong use of the command line itself
        if e.format_message():
            told.error(ConfigError(e.format_message(), code="USAGE", remedy="`tidelake COMMAND --help` says what there is"))
        return 2
    except (KeyboardInterrupt, typer.Abort):
        errors.print("interrupted; running the same command again goes on from there")
        told.object({"error": {"code": "INTERRUPTED", "message": "interrupted", "remedy": "run it again", "exit_code": INTERRUPTED}})
        return INTERRUPTED
    except SystemExit as e:  # typer's answer to a closed pipe, and to nothing else
        if not isinstance(e.__context__, BrokenPipeError):
            raise
        return 0
    except BrokenPipeError:  # `tidelake … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nor may the interpreter's last flush fail
        return 0
    except TidelakeError as e:
        return told.error(e)
    except Exception as e:  # noqa: BLE001  # the outermost edge: whatever it is, people get one line and programs a code
        said = f"unexpected {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
        return told.error(TidelakeError(said, code="UNEXPECTED", remedy="--debug shows where"), f"{said}; --debug shows where")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Where errors are told: one line on stderr for people; as_json: an object on stdout for programs, beside it; debug: the traceback."""

    debug: bool
    as_json: bool

    def error(self, e: TidelakeError, line: str = "") -> int:
        """Tell an error, in its own words unless others are given; its exit code."""
        if self.debug:
            traceback.print_exc()
        errors.print(f"error: {line or e}", style="bold red", markup=False, highlight=False, soft_wrap=True)
        self.object(e.as_json())
        return e.exit_code

    def object(self, value: Mapping[str, Any]) -> None:
        """An object for programs, where they asked for one."""
        if self.as_json:
            print_json(value)
            sys.stdout.flush()
