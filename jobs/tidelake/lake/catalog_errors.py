"""What goes wrong at the catalog, as StorageError: who was first, what is there already, what cannot be reached, what is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from pyiceberg import exceptions

from tidelake.errors import StorageError

_ATTEMPTS = 8
_T = TypeVar("_T")


def retried(identifier: str, attempt: Callable[[], _T]) -> _T:
    """What an attempt at a commit returns; it is tried again where another writer was first. Raises StorageError."""
    for left in reversed(range(_ATTEMPTS)):
        try:
            return attempt()
        except (exceptions.CommitFailedException, exceptions.ValidationException, ValueError) as e:
            if isinstance(e, ValueError) and "sequence number" not in str(e):  # that is how a commit on another branch meanwhile is told
                raise
            if left == 0:
                raise StorageError(f"{identifier}: {e}", remedy="another writer keeps changing the table; try again") from e
    raise AssertionError("unreachable")


@contextmanager
def named(identifier: str) -> Iterator[None]:
    """Raises StorageError (TABLE_MOVED, TABLE_EXISTS) that names the table."""
    try:
        yield
    except exceptions.CommitFailedException as e:
        raise StorageError(f"{identifier} was changed by someone else: {e}", code="TABLE_MOVED") from e
    except exceptions.NoSuchNamespaceError as e:
        raise StorageError(f"{identifier}: its namespace was dropped by someone else", code="TABLE_MOVED", remedy="run again") from e
    except exceptions.TableAlreadyExistsError as e:
        raise StorageError(f"{identifier} is there already", code="TABLE_EXISTS") from e
