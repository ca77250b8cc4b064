"""The command line.

Exit codes: 0 done, 1 failed, 2 wrong use, 3 blocked (the data is safe, a person must decide).
"""

from __future__ import annotations

import gc
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

ALLOCATIONS = 10_000  # between two garbage collections; with Python's 700, looking for garbage is a fifth of what imports cost
INTERRUPTED = 130  # 128 + SIGINT, the shells' convention
MODULES = {  # this package's modules in the order of the help, with the commands that each registers
    "demo": ("demo",),
    "feeds": ("check", "status", "report"),
    "health": ("doctor", "metrics"),
    "archive": ("archive",),
    "seed": ("seed",),
    "stages": ("land", "decode", "order", "validate", "compact", "run"),
    "rollback": ("rollback", "redo"),
    "recovery": ("abandon", "unlock"),
    "maintain": ("maintain",),
    "tables": ("asof", "changelog"),
    "diff": ("diff",),
    "verify": ("verify",),
    "audit": ("audit",),
    "inspect": ("inspect",),
    "sniff": ("sniff",),
    "quarantine": ("quarantine",),
    "late": ("late",),
    "ddl": ("ddl",),
    "expectations": ("expectations",),
}


def main() -> None:
    """Run the command line with the process's arguments and exit with its code. Entry point of the console script."""
    code = run(sys.argv[1:])
    if "duckdb" not in sys.modules:  # which would report everything that was not collected
        gc.freeze()  # Python looks for garbage when it ends; without this, that is a fifth of a small command
    sys.exit(code)


def application(arguments: Sequence[str]) -> typer.Typer:
    """Return the command line with the commands that the arguments need.

    If the first argument is a command, only its module is imported: one module imports quickly, all of them take seconds.

    Args:
        arguments: Arguments after the program name.
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
    """Build Iceberg tables from TiCDC and Canal changes in Kafka archives: complete, in order, with a certificate for every cut."""
    if version:
        out.print(f"tidelake {__version__}")
        raise typer.Exit


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code.

    Errors go to stderr, with a traceback only if --debug is given. With --json, stdout gets the error as an object as well.

    Args:
        arguments: Arguments after the program name.
    """
    gc.set_threshold(ALLOCATIONS)
    output = ErrorOutput(debug=wants_traceback(arguments), as_json=wants_json(arguments))
    try:
        done = application(arguments)(arguments, prog_name="tidelake", standalone_mode=False)
        if done == INTERRUPTED:  # typer returns it after Ctrl-C
            raise KeyboardInterrupt
        sys.stdout.flush()
        return done if isinstance(done, int) else 0  # with standalone_mode off, typer returns a command's exit code
    except TyperException as e:  # wrong use of the command line itself
        if e.format_message():
            remedy = "`tidelake COMMAND --help` lists arguments and options"
            output.error(ConfigError(e.format_message().rstrip("."), code="USAGE", remedy=remedy))
        return 2
    except (KeyboardInterrupt, typer.Abort):
        errors.print("interrupted; run the same command again to continue")
        output.object({"error": {"code": "INTERRUPTED", "message": "interrupted", "remedy": "run it again", "exit_code": INTERRUPTED}})
        return INTERRUPTED
    except SystemExit as e:  # typer raises it only for a closed pipe
        if not isinstance(e.__context__, BrokenPipeError):
            raise
        return 0
    except BrokenPipeError:  # `tidelake … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the interpreter's last flush does not fail
        return 0
    except TidelakeError as e:
        return output.error(e)
    except Exception as e:  # noqa: BLE001  # outermost handler: people get one line, programs a code
        said = f"unexpected {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
        return output.error(TidelakeError(said, code="UNEXPECTED", remedy="--debug shows where"), f"{said}; --debug shows where")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorOutput:
    """Prints errors: one line on stderr.

    Attributes:
        debug: Print the traceback as well.
        as_json: Print an object on stdout as well.
    """

    debug: bool
    as_json: bool

    def error(self, e: TidelakeError, line: str = "") -> int:
        """Print an error and return its exit code.

        Args:
            e: The error.
            line: Text to print instead of the error's own.
        """
        if self.debug:
            errors.lines(traceback.format_exc())
        errors.lines(f"error: {line or e}", style="bold red")
        self.object(e.as_json())
        return e.exit_code

    def object(self, value: Mapping[str, Any]) -> None:
        """Print an object on stdout if as_json is set."""
        if self.as_json:
            print_json(value)
            sys.stdout.flush()
