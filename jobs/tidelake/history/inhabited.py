"""Which tables can have rows by a statement, judging by the first and last rows of a window. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from heapq import heappop, heappush
from typing import Protocol

from tidelake.history.incarnations import Catalog, Incarnation
from tidelake.history.names import SentNames


class SeenRows(Protocol):
    """Rows under one name: first and last commit ts (TSO)."""

    @property
    def database(self) -> str: ...
    @property
    def table(self) -> str: ...
    @property
    def first_ts(self) -> int: ...
    @property
    def last_ts(self) -> int: ...


class Inhabited:
    """Marks empty tables once they can have rows. Each table is looked at when a statement changed it, not at every statement.

    Args:
        seen: Rows of the window.
    """

    def __init__(self, seen: Iterable[SeenRows]) -> None:
        self._seen = SentNames((s.database, s.table, s) for s in seen)
        self._first = list[tuple[int, str]]()  # a heap of (the first row that a table can have, its id)

    def expect(self, incarnations: Iterable[Incarnation]) -> None:
        """Look for rows of these tables."""
        for i in incarnations:
            rows = (s for n in i.names for s in self._seen.of(n.database, n.table)) if i.empty else ()
            first = min((s.first_ts for s in rows if s.last_ts > i.from_ts), default=None)
            if first is not None:
                heappush(self._first, (first, i.id))

    def marked(self, catalog: Catalog, ts: int) -> Catalog:
        """Return the catalog in which tables that can have rows up to ts are not empty."""
        while self._first and self._first[0][0] <= ts:
            i = catalog.incarnations[heappop(self._first)[1]]
            if i.empty:
                catalog = catalog.with_(replace(i, empty=False))
        return catalog
