"""A lock on a file of this machine, for the time of a block; nothing is left behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file. Raises OSError where it cannot be made."""
    import fcntl

    while True:
        with path.open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_there(path, lock.fileno()):
                continue  # who held it before removed it: another process may hold a new one
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _is_there(path: Path, opened: int) -> bool:
    """Whether the path still is the file that is open."""
    try:
        return os.path.samestat(path.stat(), os.fstat(opened))
    except FileNotFoundError:
        return False
