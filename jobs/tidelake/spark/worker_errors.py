"""Our errors on their way from a Spark worker to the driver: Spark hands over the text of a traceback only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from tidelake import errors
from tidelake.errors import Coordinates, TidelakeError

_MARK = "tidelake error "
_TOLD = re.compile(re.escape(_MARK) + r"(\{.*\})")


@contextmanager
def errors_as_text() -> Iterator[None]:
    """In a worker: an error of ours becomes one whose text says all of it."""
    try:
        yield
    except TidelakeError as e:
        at = asdict(e.at) if e.at else None
        said = {"type": type(e).__name__, "message": e.message, "code": e.code, "at": at, "remedy": e.remedy}
        raise RuntimeError(_MARK + json.dumps(said)) from e


@contextmanager
def errors_of_workers() -> Iterator[None]:
    """In the driver: an error of Spark whose text holds one of ours becomes that one again. Raises TidelakeError, or Spark's as it is."""
    try:
        yield
    except Exception as e:
        found = _TOLD.search(str(e))
        if found is None:
            raise
        said = json.loads(found[1])
        kind: type[TidelakeError] = getattr(errors, said["type"])
        at = Coordinates(**said["at"]) if said["at"] else None
        raise kind(said["message"], code=said["code"], at=at, remedy=said["remedy"]) from e
