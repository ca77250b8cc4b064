"""The command line, called in this process."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

from tidelake.cli import run


@dataclass(frozen=True, slots=True)
class Called:
    """What a command left: its exit code, stdout and stderr."""

    code: int
    out: str
    err: str


def call(*arguments: object) -> Called:
    """`tidelake …`, writing into files as it would for a program."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        code = run([str(a) for a in arguments])
    for stream in (out, err):
        stream.seek(0)
    return Called(code, out.read(), err.read())
