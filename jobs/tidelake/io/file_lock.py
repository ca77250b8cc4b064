"""A lock on a file of this machine during a block. The file is removed afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file during the block. Raises OSError if it cannot be created."""
    import fcntl

    while True:
        with path.open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_there(path, lock.fileno()):
                continue  # the previous holder removed it: another process may hold a new one
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _is_there(path: Path, opened: int) -> bool:
    """Whether the path is still the open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(opened))
    except FileNotFoundError:
        return False
