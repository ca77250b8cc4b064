"""Names of tables and columns as messages have them: in any case, or sanitised; and lookups by them that take all tables at once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Generic, TypeVar

_T = TypeVar("_T")


def sanitised(name: str) -> str:
    """Return a name as Avro schemas write it (docs/reference/protocols.md 4.2)."""
    safe = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{safe}" if safe[:1].isdigit() else safe


def same_name(sent: str, name: str) -> bool:
    """Whether a name in a message is this name: ignoring case, or sanitised."""
    return sent.lower() in _forms(name)


def _forms(name: str) -> set[str]:
    return {name.lower(), sanitised(name).lower()}


def _keys(database: str, table: str) -> list[tuple[str, str]]:
    return sorted((d, t) for d in _forms(database) for t in _forms(table))


class KnownNames(Generic[_T]):
    """Items by the names of tables, found by a name in a message.

    Args:
        items: Database, table and item.
    """

    def __init__(self, items: Iterable[tuple[str, str, _T]]) -> None:
        self._items = dict[tuple[str, str], list[_T]]()
        for database, table, item in items:
            for key in _keys(database, table):
                self._items.setdefault(key, []).append(item)

    def with_(self, database: str, table: str, item: _T, instead: _T | None = None) -> KnownNames[_T]:
        """Return a copy with an item more, or with an item instead of another one of this name."""
        out = KnownNames[_T](())
        out._items = dict(self._items)
        for key in _keys(database, table):
            before = out._items.get(key, [])
            out._items[key] = [item if b is instead else b for b in before] if instead is not None else [*before, item]
        return out

    def meant(self, database: str, table: str) -> list[_T]:
        """Return the items that a message means by this name, in their order."""
        return self._items.get((database.lower(), table.lower()), [])


class SentNames(Generic[_T]):
    """Items by names in messages, found by the name of a table.

    Args:
        items: Database and table as sent, and item.
    """

    def __init__(self, items: Iterable[tuple[str, str, _T]]) -> None:
        self._items = dict[tuple[str, str], list[_T]]()
        for database, table, item in items:
            self._items.setdefault((database.lower(), table.lower()), []).append(item)

    def of(self, database: str, table: str) -> list[_T]:
        """Return the items that were sent under the name of this table."""
        return [item for key in _keys(database, table) for item in self._items.get(key, ())]
