"""The command line: the only door for a terminal.

Exit codes: 0 done, 1 failed, 2 wrong use, 3 blocked (the data is safe, someone must decide).
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from tidelake import __version__
from tidelake.cli.common import errors, out, print_json, wants_json, wants_traceback
from tidelake.errors import ConfigError, TidelakeError

INTERRUPTED = 130  # 128 + SIGINT, as shells say it
MODULES = {  # of this package, in the order of the help, with the commands that each registers
    "demo": ("demo",),
    "feeds": ("check", "status", "report"),
    "archive": ("archive",),
    "seed": ("seed",),
    "stages": ("land", "decode", "order", "validate", "compact", "run"),
    "rollback": ("rollback", "redo"),
    "recovery": ("abandon", "unlock"),
    "maintain": ("maintain",),
    "tables": ("asof", "changelog"),
    "diff": ("diff",),
    "verify": ("verify",),
    "inspect": ("inspect",),
    "sniff": ("sniff",),
    "quarantine": ("quarantine",),
    "late": ("late",),
    "ddl": ("ddl",),
}


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


def application(arguments: Sequence[str]) -> typer.Typer:
    """The command line with the command that the arguments begin with; with all commands where they begin with none.

    One command's module imports quickly, all of them take seconds.
    """
    app = typer.Typer(
        name="tidelake",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_tidelake)
    asked = [module for module, commands in MODULES.items() if arguments[:1] and arguments[0] in commands]
    for module in asked or MODULES:
        import_module(f"{__name__}.{module}").register(app)
    return app


def _tidelake(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    """TiCDC and Canal changes from Kafka archives into Iceberg tables: complete, in order, and provably so."""
    if version:
        out.print(f"tidelake {__version__}")
        raise typer.Exit


def run(arguments: list[str]) -> int:
    """A command line; the exit code. Errors go to stderr, without a traceback unless --debug is among the arguments; with --json stdout has
    them, too."""
    told = ErrorOutput(debug=wants_traceback(arguments), as_json=wants_json(arguments))
    try:
        done = application(arguments)(arguments, prog_name="tidelake", standalone_mode=False)
        if done == INTERRUPTED:  # typer's answer to Ctrl-C
            raise KeyboardInterrupt
        sys.stdout.flush()
        return done if isinstance(done, int) else 0  # what a command exits with is returned here, not raised
    except TyperException as e:  # wrong use of the command line itself
        if e.format_message():
            remedy = "`tidelake COMMAND --help` says what there is"
            told.error(ConfigError(e.format_message().rstrip("."), code="USAGE", remedy=remedy))
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
class ErrorOutput:
    """Where errors are told: one line on stderr for people; as_json: an object on stdout for programs, beside it; debug: the traceback."""

    debug: bool
    as_json: bool

    def error(self, e: TidelakeError, line: str = "") -> int:
        """Tell an error, in its own words unless others are given; its exit code."""
        if self.debug:
            errors.lines(traceback.format_exc())
        errors.lines(f"error: {line or e}", style="bold red")
        self.object(e.as_json())
        return e.exit_code

    def object(self, value: Mapping[str, Any]) -> None:
        """An object for programs, where they asked for one."""
        if self.as_json:
            print_json(value)
            sys.stdout.flush()
