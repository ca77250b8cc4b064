"""Runs audit.py, the independent reader, as a program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tidelake.lake.opened import Lake

SCRIPT = Path(__file__).with_name("audit.py")


def ran(lake: str, *options: str, feed: str = "shop") -> tuple[int, list[str]]:
    """Exit code and lines of output of audit.py on the lake at a place."""
    done = subprocess.run([sys.executable, str(SCRIPT), lake, feed, *options], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def audited(lake: Lake, *options: str) -> tuple[int, list[str]]:
    """Exit code and lines of output on a lake."""
    return ran(lake.store.uri, *options)


def first_wrong(lake: Lake, *options: str) -> tuple[int, str, str]:
    """(cut, key, what) of the first wrong place."""
    code, lines = audited(lake, *options)
    assert (code, lines[0]) == (3, "shop: not as certified")
    found = re.fullmatch(r"  WRONG cut (\d+), (.+?): (.+)", lines[1])
    assert found, lines
    return int(found[1]), found[2], found[3]
