"""Every `tidelake` command line in README.md and docs/ names a command and options that exist, and gives what the command requires."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.generate import commands
from tests.checkout import CHECKOUT

PAGES = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
COMMANDS = {name: command for name, command in commands() if not name.startswith("--")}
_BLOCK = re.compile(r"^( *)```(?:sh|console)[^\n]*\n(?P<body>.*?)^\1```", re.MULTILINE | re.DOTALL)
_VARIABLE = re.compile(r"[A-Z_]+=.*")
_ENDS = {"|", ">", "<", "&&", "||", ";", "&", "2>"}
_OF_ALL = {"--help", "-h", "--version", "--install-completion", "--show-completion"}


def lines(markdown: str) -> Iterator[str]:
    """The command lines of sh and console blocks that call `tidelake`, joined where they go on after a backslash."""
    for block in _BLOCK.finditer(markdown):
        for line in block["body"].replace("\\\n", " ").splitlines():
            words = shlex.split(line.strip().removeprefix("$ "), comments=True) if "tidelake" in line else []
            while words and _VARIABLE.fullmatch(words[0]):
                words = words[1:]
            if words[:1] == ["tidelake"]:
                yield shlex.join(words)


def wrong(line: str) -> Iterator[str]:
    """What the command line says that the program does not know, and what it lacks."""
    words = shlex.split(line)[1:]
    words = words[: next((n for n, word in enumerate(words) if word in _ENDS), len(words))]
    if not words or words[0] in _OF_ALL:
        return
    name = next((n for n in (" ".join(words[:2]), words[0]) if n in COMMANDS), None)
    if name is None:
        yield f"{words[0]}: no such command"
        return
    options: dict[str, Any] = {o: p for p in COMMANDS[name].params for o in (*p.opts, *p.secondary_opts) if o.startswith("-")}
    given, left = set(), iter(words[len(name.split()) :])
    for word in left:
        option = options.get(word.partition("=")[0])
        if word.startswith("-") and word != "-" and word not in _OF_ALL and option is None:
            yield f"{name} {word}: no such option"
        if option is not None:
            given.add(option.name)
            if not option.is_flag and "=" not in word and next(left, None) is None:
                yield f"{name} {word}: no value"
    if not _OF_ALL & set(words):
        yield from (f"{name}: {p.opts[0]} is missing" for p in set(options.values()) if p.required and p.name not in given)


FOUND = [(page, line) for page in PAGES for line in lines(page.read_text(encoding="utf-8"))]


def test_there_are_command_lines() -> None:
    assert len(FOUND) > 60
    assert {line.split()[1] for _, line in FOUND} >= {"demo", "sniff", "land", "run", "status", "asof", "verify", "seed"}


@pytest.mark.parametrize(("page", "line"), FOUND, ids=[f"{page.relative_to(CHECKOUT)}: {line}" for page, line in FOUND])
def test_a_command_line_is_known(page: Path, line: str) -> None:
    assert list(wrong(line)) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tidelake runs --feed shop", ["runs: no such command"]),
        ("tidelake run --feed shop --hour 2026-01-05T10 --hour-count 3", ["run --hour-count: no such option"]),
        ("tidelake run --feed shop", ["run: --hour is missing"]),
        ("tidelake run --hour 2026-01-05T10 --feed", ["run --feed: no value"]),
        ("tidelake quarantine list --feed shop --hours", ["quarantine list --hours: no such option"]),
        ("tidelake verify --feed shop > out.sql --nothing", []),
    ],
)
def test_a_wrong_command_line_is_told(line: str, expected: list[str]) -> None:
    assert list(wrong(line)) == expected


def test_lines_are_found_in_blocks_alone() -> None:
    shell = "```sh\nA=1 tidelake run --feed f \\\n  --hour h # why\necho tidelake\n```\n"
    console = "```console\n$ tidelake check\nout\n```\n"
    assert list(lines(f"{shell}\ntidelake nope\n\n{console}")) == ["tidelake run --feed f --hour h", "tidelake check"]
