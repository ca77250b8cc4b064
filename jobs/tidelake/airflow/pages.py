"""Reads a quality page for Airflow's web server.

A process of its own, with the environment of a stage, renders each page from the lake on request. A process that is kept for all pages
forks it. The web server itself has neither a client nor credentials of the object store.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, NamedTuple

from tidelake.airflow.connections import given, stage_environment
from tidelake.airflow.kept_reader import KeptReader
from tidelake.airflow.stage import dag_id
from tidelake.config.feed import load_feed
from tidelake.errors import ConfigError, StorageError

READ_SECONDS = 60
READERS = 4  # processes at a time: each needs up to 250 MiB
UNREAD = "The lake cannot be read"
reader = KeptReader()
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
    links = {"home": root, "dag": f"{root}dags/{dag_id('{feed}')}"}
    request = {"schemas": str(schemas), "path": path, "feeds": list(feeds), "environment": _environment(schemas, feeds), **links}
    try:
        return _read(request)
    except StorageError as e:
        return note(502, UNREAD, str(e))


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


def _read(request: Mapping[str, Any]) -> Answer:
    if not _free.acquire(timeout=READ_SECONDS):
        raise StorageError(f"{READERS} other pages were read for {READ_SECONDS} s", remedy="reload the page")
    try:
        found = reader.read(request, stage_environment({}), READ_SECONDS)
    finally:
        _free.release()
    return note(502, UNREAD, found["error"]) if "error" in found else Answer(**found)
