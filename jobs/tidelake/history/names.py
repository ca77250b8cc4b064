"""Names of tables and columns as messages have them: in any case, or sanitised; and lookups by them that take all tables at once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Generic, TypeVar

_T = TypeVar("_T")
_KEPT = 1 << 16  # names whose forms are kept in memory
Named = tuple[str, str, _T]  # database, table and item


def sanitised(name: str) -> str:
    """Return a name as Avro schemas write it (docs/reference/protocols.md 4.2)."""
    safe = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{safe}" if safe[:1].isdigit() else safe


def same_name(sent: str, name: str) -> bool:
    """Whether a name in a message is this name: ignoring case, or sanitised."""
    return sent.lower() in _forms(name)


def unmeant(sent: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the names in a message that are none of these names (`same_name`)."""
    forms = {form for name in names for form in _forms(name)}
    return [s for s in sent if s.lower() not in forms]


@lru_cache(_KEPT)
def _forms(name: str) -> frozenset[str]:
    return frozenset({name.lower(), sanitised(name).lower()})


def _keys(database: str, table: str) -> list[tuple[str, str]]:
    return sorted((d, t) for d in _forms(database) for t in _forms(table))


class KnownNames(Generic[_T]):
    """Items by the names of tables, found by a name in a message.

    Args:
        items: Database, table and item.
    """

    def __init__(self, items: Iterable[Named[_T]]) -> None:
        self._items = dict[tuple[str, str], list[_T]]()
        for database, table, item in items:
            for key in _keys(database, table):
                self._items.setdefault(key, []).append(item)

    def moved(self, old: Named[_T] | None, new: Named[_T] | None) -> KnownNames[_T] | None:
        """Return a copy with one item in the place of another; None if it gets a name that others have: their order is unknown here.

        old: None for one item more, which comes last; new: None for one less.
        """
        out = KnownNames[_T](())
        out._items = dict(self._items)
        was, now = (_keys(*named[:2]) if named else [] for named in (old, new))
        for key in dict.fromkeys(was + now):
            items = list(self._items.get(key, ()))
            if old and new and items and key not in was:
                return None
            at = next((n for n, item in enumerate(items) if old and item is old[2]), len(items))
            items[at : at + 1] = [new[2]] if new and key in now else []
            out._items[key] = items
        return out

    def meant(self, database: str, table: str) -> list[_T]:
        """Return the items that a message means by this name, in their order."""
        return self._items.get((database.lower(), table.lower()), [])


class SentNames(Generic[_T]):
    """Items by names in messages, found by the name of a table.

    Args:
        items: Database and table as sent, and item.
    """

    def __init__(self, items: Iterable[Named[_T]]) -> None:
        self._items = dict[tuple[str, str], list[_T]]()
        for database, table, item in items:
            self._items.setdefault((database.lower(), table.lower()), []).append(item)

    def of(self, database: str, table: str) -> list[_T]:
        """Return the items that were sent under the name of this table."""
        return [item for key in _keys(database, table) for item in self._items.get(key, ())]
