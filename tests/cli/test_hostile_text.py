"""Names and messages from outside on terminals and in logs: nothing leaves its line, colours it, or looks like an error of ours."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.progress import Progress, TextColumn
from rich.table import Table
from rich.text import Text

from tests.cli.calls import call
from tests.cli.lakes import TS, failing, lake_of
from tidelake.cli import common
from tidelake.cli.terminal import Terminal
from tidelake.config.feed import Feed
from tidelake.errors import StorageError
from tidelake.io.printable import printable, printable_json, printable_lines

HOSTILE = "x\nerror: STORAGE: all is lost\r\x1b[2J\x1b[31mred\x9b1m\u202egnp.exe\u200b\u2028[bold][/nothing]\x07"
ESCAPED = "x\\nerror: STORAGE: all is lost\\r\\x1b[2J\\x1b[31mred\\x9b1m\\u202egnp.exe\\u200b\\u2028[bold][/nothing]\\x07"


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Feed:
    """A lake in which database and table are called so."""
    return lake_of(tmp_path_factory.mktemp("hostile"), [(HOSTILE, HOSTILE), ("d", "t")])


def plain(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


@given(st.text(st.characters(exclude_categories=())))
def test_what_is_printable_is_one_line_and_is_not_escaped_twice(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)
    assert plain(printable_lines(text))
    assert all(line.startswith("    ") for line in printable_lines(text).split("\n")[1:])


@given(st.text(st.characters(exclude_categories=())))
def test_json_says_the_same_in_characters_that_print(text: str) -> None:
    for indent in (None, 2):
        assert json.loads(printable_json({"a": [text]}, indent)) == {"a": [text]}
        assert plain(printable_json({text: 1}, indent))


def test_the_hostile_text_is_shown_as_it_is_written() -> None:
    assert printable(HOSTILE) == ESCAPED


def printed(what: Any, *, terminal: bool = False) -> str:
    out = io.StringIO()
    console = Terminal(file=out, force_terminal=terminal, width=600, color_system=None)
    what(console)
    return out.getvalue()


def table(console: Terminal) -> None:
    grid = Table(HOSTILE, title=HOSTILE, caption=HOSTILE)
    grid.add_row(HOSTILE)
    grid.add_row(Text(HOSTILE))
    console.print(grid)


@pytest.mark.parametrize(
    "what",
    [
        lambda console: console.print(HOSTILE),
        lambda console: console.print(HOSTILE, soft_wrap=True, style="dim"),
        lambda console: console.print(Text(HOSTILE.replace("\n", ""))),
        lambda console: console.lines(HOSTILE),
        table,
    ],
)
def test_a_console_prints_nothing_else(what: Any) -> None:
    said = printed(what)
    assert plain(said)
    assert "\\x1b[2J" in said
    assert "[bold][/nothing]" in said, "markup is text"
    assert not [line for line in said.splitlines() if line.startswith("error:")]


def test_a_progress_bar_and_a_status_print_nothing_else() -> None:
    def show(console: Terminal) -> None:
        with Progress(TextColumn("{task.description}", markup=False), console=console) as progress:
            progress.add_task(HOSTILE, total=1)
        with console.status("x") as status:
            status.update(Text(HOSTILE))

    assert "\x1b[31mred" not in printed(show, terminal=True)
    assert "\u202e" not in printed(show, terminal=True)


def test_an_error_of_several_lines_is_printed_and_forges_none(schemas: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, StorageError(f"the log ends with:\nfirst\nerror: forged\x1b[2J\n{HOSTILE}"))
    for debug in ([], ["--debug"]):
        done = call("status", "--feed", "shop", *debug)
        assert done.code == 1
        assert plain(done.err)
        lines = done.err.splitlines()
        assert [line for line in lines if line.startswith("error:")] == ["error: STORAGE: the log ends with:"]
        assert lines[lines.index("error: STORAGE: the log ends with:") + 1 :][:2] == ["    first", "    error: forged\\x1b[2J"]


def test_wrong_use_repeats_nothing_that_does_not_print() -> None:
    done = call("asof", "--feed", HOSTILE, "--table", "a.b")
    assert done.code == 2
    assert plain(done.err)
    assert len([line for line in done.err.splitlines() if line.startswith("error:")]) == 1


@pytest.mark.parametrize(
    "command",
    [
        ["status"],
        ["status", "--json"],
        ["asof", "--table", "all"],
        ["asof", "--table", "all", "--format", "parquet"],
        ["diff", "--ts", str(TS), "--ts", str(TS)],
        ["verify", "--table", "d.nothing"],
    ],
)
def test_no_command_prints_a_name_that_is_not_escaped(
    feed: Feed, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call(*command, "--feed", "shop", "--schemas", feed.folder.parent)
    assert plain(done.out)
    assert plain(done.err)
    assert "error: STORAGE: all is lost" not in [line.strip() for line in (done.out + done.err).splitlines()]


def test_the_consoles_of_commands_are_such() -> None:
    assert isinstance(common.out, Terminal)
    assert isinstance(common.errors, Terminal)
