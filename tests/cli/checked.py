"""What `tidelake check` says is wrong."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.calls import call


def errors(schemas: Path) -> list[str]:
    """What check says is wrong, feed by feed; the exit code fits."""
    done = call("check", "--schemas", schemas, "--json")
    found = [e for feed in json.loads(done.out).values() for e in feed["errors"]]
    assert (done.code, done.err) == (2 if found else 0, "")
    return found


def error(schemas: Path) -> str:
    (only,) = errors(schemas)
    return only
