"""Send Tidelake's errors from a Spark worker to the driver. Spark sends only the text of a traceback."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from tidelake import errors
from tidelake.errors import Coordinates, TidelakeError

_MARK = "tidelake error "
_ENCODED = re.compile(re.escape(_MARK) + r"(\{.*\})")


@contextmanager
def errors_as_text() -> Iterator[None]:
    """Raise a Tidelake error, in a worker, as an error whose text holds all its members."""
    try:
        yield
    except TidelakeError as e:
        at = asdict(e.at) if e.at else None
        said = {"type": type(e).__name__, "message": e.message, "code": e.code, "at": at, "remedy": e.remedy}
        raise RuntimeError(_MARK + json.dumps(said)) from e


@contextmanager
def errors_of_workers() -> Iterator[None]:
    """Restore, in the driver, a worker's Tidelake error from the text of Spark's error. Raises TidelakeError, or Spark's error as is."""
    try:
        yield
    except Exception as e:
        found = _ENCODED.search(str(e))
        if found is None:
            raise
        said = json.loads(found[1])
        kind: type[TidelakeError] = getattr(errors, said["type"])
        at = Coordinates(**said["at"]) if said["at"] else None
        raise kind(said["message"], code=said["code"], at=at, remedy=said["remedy"]) from e
