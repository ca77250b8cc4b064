"""What the package logs, as lists of texts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Calls(logging.Handler):
    def __init__(self, call: Callable[[str, str], None]) -> None:
        super().__init__()
        self._call = call

    def emit(self, record: logging.LogRecord) -> None:
        self._call(record.name.split(".")[1], record.getMessage())


@contextmanager
def log_calls(call: Callable[[str, str], None]) -> Iterator[None]:
    """Call with (stage, message) for each record meanwhile."""
    package, handler = logging.getLogger("tidelake"), _Calls(call)
    before = package.level
    package.addHandler(handler)
    package.setLevel(logging.INFO)
    try:
        yield
    finally:
        package.removeHandler(handler)
        package.setLevel(before)


@contextmanager
def messages_of(stage: str | None = None) -> Iterator[list[str]]:
    """The messages that a stage, or any, logs meanwhile."""
    found: list[str] = []
    with log_calls(lambda by, message: found.append(message) if stage in (None, by) else None):
        yield found
