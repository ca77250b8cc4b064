"""A command line that SIGKILLs itself: `python -m tests.e2e.killed module:function NTH tidelake-arguments…`.

The nth call of the function (`module:Class.method` too) does not begin.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from typing import Any

from tidelake import cli


def arm(place: str, nth: int) -> None:
    """Replace the function."""
    module, _, path = place.partition(":")
    owner: Any = import_module(module)
    *classes, name = path.split(".")
    for part in classes:
        owner = getattr(owner, part)
    original, calls = getattr(owner, name), [0]

    def guarded(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == nth:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **named)

    setattr(owner, name, guarded)


if __name__ == "__main__":
    arm(sys.argv[1], int(sys.argv[2]))
    sys.exit(cli.run(sys.argv[3:]))
