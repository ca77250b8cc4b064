"""Reads a quality page for Airflow's web server.

A child process with the environment of a stage renders the page from the lake on request. The web server itself has neither a client nor
credentials of the object store.
"""

from __future__ import annotations

import base64
import hashlib
import html
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import BoundedSemaphore
from typing import NamedTuple

from tidelake.airflow.connections import given, stage_environment
from tidelake.airflow.stage import dag_id, error_in
from tidelake.config.feed import load_feed
from tidelake.errors import ConfigError, StorageError

READ_SECONDS = 60
READERS = 4  # processes at a time: each needs up to 250 MiB
_free = BoundedSemaphore(READERS)
_STYLE = """:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 44rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere }"""
_NOTE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · Tidelake</title><style>{style}</style></head><body><main><h1>{title}</h1><p>{text}</p></main></body></html>"""


class Answer(NamedTuple):
    """A page, its HTTP status, and the Content-Security-Policy that it works under."""

    status: int
    policy: str
    content: str


def page_answer(schemas: Path, path: str, feeds: Sequence[str], root: str) -> Answer:
    """Return the page at a path: 404 if it does not exist, 502 if the lake cannot be read.

    Args:
        schemas: Folder that holds the feeds.
        path: Path of a page (pages/addresses.py).
        feeds: Feeds that the page is made of.
        root: Path of Airflow's first page.
    """
    command = [sys.executable, "-P", "-m", "tidelake.pages.page", str(schemas), path, "--feeds", ",".join(feeds)]
    command += ["--home", root, "--dag", f"{root}dags/{dag_id('{feed}')}"]
    try:
        return _read(command, _environment(schemas, feeds))
    except StorageError as e:
        return note(502, "The lake cannot be read", str(e))


def note(status: int, title: str, text: str) -> Answer:
    """Return a page of one sentence."""
    style = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    content = _NOTE.format(title=html.escape(title), text=html.escape(text), style=_STYLE)
    return Answer(status, f"default-src 'none'; style-src 'sha256-{style}'", content)


def _environment(schemas: Path, feeds: Sequence[str]) -> dict[str, str]:
    """Return the environment of a stage of any of these feeds. A feed with wrong settings adds nothing: its page says what is wrong."""
    connected = dict[str, str]()
    for name in feeds:
        try:
            connected |= given(load_feed(schemas, name, expand=False))
        except ConfigError:
            continue
    return stage_environment(connected)


def _read(command: Sequence[str], environment: dict[str, str]) -> Answer:
    if not _free.acquire(timeout=READ_SECONDS):
        raise StorageError(f"{READERS} other pages were read for {READ_SECONDS} s", remedy="reload the page")
    try:
        done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", timeout=READ_SECONDS, check=False)
    except subprocess.TimeoutExpired as e:
        raise StorageError(f"no answer within {READ_SECONDS} s", remedy="check that the object store is running") from e
    finally:
        _free.release()
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        code, _, message = error_in(lines).partition(": ")
        if message:
            raise StorageError(message, code=code)
        raise StorageError(f"the reader ended with status {done.returncode}: {lines[-1] if lines else 'no output'}")
    status, policy, content = done.stdout.split("\n", 2)
    return Answer(int(status), policy, content)
