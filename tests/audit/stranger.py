"""Runs audit.py, the independent reader: as a program, or for one of many lakes in the test's process."""

from __future__ import annotations

import io
import re
import runpy
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from unittest import mock

import pytest

from tidelake.lake.opened import Lake

SCRIPT = Path(__file__).with_name("audit.py")


def ran(lake: str, *options: str, feed: str = "shop") -> tuple[int, list[str]]:
    """Exit code and lines of output of audit.py on the lake at a place."""
    done = subprocess.run([sys.executable, str(SCRIPT), lake, feed, *options], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def audited(lake: Lake, *options: str) -> tuple[int, list[str]]:
    """Exit code and lines of output on a lake. The script is loaded anew each time, without a process of its own."""
    arguments, out = [str(SCRIPT), lake.store.uri, "shop", *options], io.StringIO()
    with mock.patch.object(sys, "argv", arguments), redirect_stdout(out), pytest.raises(SystemExit) as left:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert isinstance(left.value.code, int)
    return left.value.code, out.getvalue().splitlines()


def first_wrong(lake: Lake, *options: str) -> tuple[int, str, str]:
    """(cut, key, what) of the first wrong place."""
    code, lines = audited(lake, *options)
    assert (code, lines[0]) == (3, "shop: not as certified")
    found = re.fullmatch(r"  WRONG cut (\d+), (.+?): (.+)", lines[1])
    assert found, lines
    return int(found[1]), found[2], found[3]
