"""The command line as a whole: its version, completion, and that a command imports no more than it needs."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest
import typer

from tests.cli.calls import call
from tidelake import __version__
from tidelake.cli import MODULES, application

HEAVY = ("pyspark", "pandas", "great_expectations", "numba", "sqlglot", "boto3", "confluent_kafka")


@pytest.mark.parametrize("module", MODULES)
def test_a_module_s_commands_are_those_that_the_command_line_looks_for(module: str) -> None:
    app = typer.Typer()
    import_module(f"tidelake.cli.{module}").register(app)
    commands = [c.name or getattr(c.callback, "__name__", "") for c in app.registered_commands]
    assert tuple(name.rstrip("_") for name in [*commands, *(g.name or "" for g in app.registered_groups)]) == MODULES[module]


def test_a_command_is_found_without_importing_others() -> None:
    (command,) = application(["status", "--feed", "shop"]).registered_commands[:1]
    assert getattr(command.callback, "__module__", "") == "tidelake.cli.feeds"
    assert len(application([]).registered_commands) + len(application([]).registered_groups) == sum(map(len, MODULES.values()))


@pytest.mark.parametrize("command", ["--version", "status --help", "run --help"])
def test_help_and_version_import_nothing_heavy(command: str) -> None:
    code = f"import sys; from tidelake.cli import run; run({command.split()}); print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_command_line_looks_for_garbage_seldom_and_not_when_it_ends() -> None:
    code = "import atexit, gc; atexit.register(lambda: print(gc.get_threshold()[0], gc.get_freeze_count() > 10_000))"
    command = [sys.executable, "-c", f"{code}; from tidelake.cli import main; main()", "decode", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "10000 True"


def test_the_end_of_a_command_that_used_duckdb_is_quiet() -> None:
    command = [sys.executable, "-c", "import duckdb; duckdb.sql('SELECT 1'); from tidelake.cli import main; main()", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"tidelake {__version__}\n", "")


@pytest.mark.parametrize("module", ["query.status", "query.asof", "query.changes", "maintenance.maintain"])
def test_what_starts_no_spark_imports_neither_it_nor_the_decoders(module: str) -> None:
    code = f"import sys, tidelake.{module}; print([m for m in ('pyspark', 'numba', 'great_expectations') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_version_is_printed() -> None:
    assert call("--version") == type(call("--version"))(0, f"tidelake {__version__}\n", "")


def test_a_mistyped_command_is_answered_with_the_nearest() -> None:
    done = call("statsu")
    assert (done.code, done.out) == (2, "")
    assert (
        done.err
        == "error: USAGE: No such command 'statsu'. Did you mean 'status'?; `tidelake COMMAND --help` lists arguments and options\n"
    )


def test_a_missing_option_is_named() -> None:
    done = call("asof", "--table", "shop.orders")
    assert (done.code, done.err) == (2, "error: USAGE: Missing option '--feed'; `tidelake COMMAND --help` lists arguments and options\n")


def test_a_shell_s_completion_knows_every_command() -> None:
    variables = {"_TIDELAKE_COMPLETE": "complete_bash", "COMP_WORDS": "tidelake ", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-m", "tidelake"], env=variables, capture_output=True, text=True, check=False)
    assert set(done.stdout.split()) >= {name for names in MODULES.values() for name in names}
