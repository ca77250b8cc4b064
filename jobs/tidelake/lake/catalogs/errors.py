"""Translate catalog errors to StorageError: lost races, existing tables, dropped namespaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from pyiceberg import exceptions

from tidelake.errors import StorageError

_ATTEMPTS = 8
_T = TypeVar("_T")


def retried(identifier: str, attempt: Callable[[], _T]) -> _T:
    """Return the result of a commit attempt; retry an attempt that lost a race. Raises StorageError after the last attempt."""
    for left in reversed(range(_ATTEMPTS)):
        try:
            return attempt()
        except (exceptions.CommitFailedException, exceptions.ValidationException, ValueError) as e:
            if isinstance(e, ValueError) and "sequence number" not in str(e):  # pyiceberg's error for a concurrent commit on another branch
                raise
            if left == 0:
                raise StorageError(f"{identifier}: {e}", remedy="another writer keeps changing the table; try again") from e
    raise AssertionError("unreachable")


@contextmanager
def named(identifier: str) -> Iterator[None]:
    """Raise pyiceberg's errors as StorageError (TABLE_MOVED, TABLE_EXISTS) that names the table."""
    try:
        yield
    except exceptions.CommitFailedException as e:
        raise StorageError(f"{identifier} was changed by another client: {e}", code="TABLE_MOVED") from e
    except exceptions.NoSuchNamespaceError as e:
        raise StorageError(f"{identifier}: its namespace was dropped by another client", code="TABLE_MOVED", remedy="run again") from e
    except exceptions.NoSuchTableError as e:  # a REST catalog's answer to a rename, also where the new name's namespace is gone
        raise StorageError(
            f"{identifier}: the table or its namespace was dropped by another client", code="TABLE_MOVED", remedy="run again"
        ) from e
    except exceptions.TableAlreadyExistsError as e:
        raise StorageError(f"{identifier} already exists", code="TABLE_EXISTS") from e
