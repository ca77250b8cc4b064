"""Command lines in one process, then all that Spark's UI shows: `python -m tests.lake.watched PORT FILE '[["run", "--feed", …], …]'`.

FILE gets the pages of Spark's UI on that port, HTML and REST, one after another, with the addresses of the pages.
"""

from __future__ import annotations

import json
import os
import re
import sys
from html import unescape
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from tidelake import cli
from tidelake.lake import opened
from tidelake.run import kept_session
from tidelake.spark import run_parts

_REST = ("environment", "sql?details=true&planDescription=true&length=1000", "jobs", "stages?details=true", "allexecutors")
_PAGES = ("environment", "SQL", "connect", "jobs", "stages", "storage", "executors")
_DETAILS = re.compile(r"/(?:SQL/execution|connect/session|jobs/job|stages/stage)/\?[A-Za-z0-9=&;_\-]+")


def main(port: int, out: Path, commands: list[list[str]]) -> int:
    """The exit code of the last command. However little there is to do, Spark does it."""
    run_parts.SMALL_BYTES, opened.BRIEF_BYTES = -1, 0
    if os.environ.get("TIDELAKE_SPARK_SERVER"):
        return _watched(port, out, commands)
    with kept_session("tidelake watched", brief=True):
        return _watched(port, out, commands)


def _watched(port: int, out: Path, commands: list[list[str]]) -> int:
    for command in commands:
        if code := cli.run(command):
            return code
    out.write_text("\n".join(f"== {path}\n{text}" for path, text in _pages(f"http://127.0.0.1:{port}").items()))
    return 0


def _pages(ui: str) -> dict[str, str]:
    found: dict[str, str] = {}
    (application,) = json.loads(_read(f"{ui}/api/v1/applications"))
    paths = [f"/api/v1/applications/{application['id']}/{name}" for name in _REST] + [f"/{name}/" for name in _PAGES]
    while paths:
        path = paths.pop()
        found[path] = text = _read(ui + path)
        paths += [p for p in set(_DETAILS.findall(unescape(text))) if p not in found and p not in paths]
    return found


def _read(url: str) -> str:
    try:
        with urlopen(url) as answer:  # of this machine
            return str(answer.read().decode())
    except HTTPError as e:
        if e.code == 404:  # a page that this mode does not have
            return ""
        raise


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])))
