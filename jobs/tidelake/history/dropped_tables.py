"""How long a catalog keeps tables that were dropped (docs/maintenance.md). Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace

from tidelake.history.incarnations import Catalog, Incarnation

Names = set[tuple[str, str]]  # database and table, in lower case


def outdated(catalog: Catalog, ts: int, defined: Iterable[tuple[str, str]]) -> list[str]:
    """Return the ids of the lives that ended at or before ts (TSO), oldest first.

    The last table that had a name of tables.sql is not among them: without it, the definition would describe a new table.

    Args:
        catalog: The catalog.
        ts: The TSO.
        defined: Database and table of the definitions in tables.sql.
    """
    wanted = {(database.lower(), table.lower()) for database, table in defined}
    ended = sorted(((i.dropped_ts, i) for i in catalog.incarnations.values() if i.dropped_ts is not None), key=lambda x: x[0])
    old = [i for dropped_ts, i in ended if dropped_ts <= ts]
    known = Names().union(*(_names(i) for i in catalog.alive()), *(_names(i) for _, i in ended[len(old) :]))
    out = list[str]()
    for i in reversed(old):
        if (_names(i) & wanted) <= known:
            out.append(i.id)
        else:
            known |= _names(i)
    return out[::-1]


def without(catalog: Catalog, lives: Container[str], ts: int) -> Catalog:
    """Return the catalog without these lives, and without removed partitions that only changes at or before ts (TSO) belong to."""
    kept = (i for i in catalog.incarnations.values() if i.id not in lives)
    incarnations = {i.id: replace(i, past_removals=tuple(r for r in i.past_removals if r.ts > ts)) for i in kept}
    return Catalog(incarnations, max(ts, catalog.dropped_retained_after))


def _names(i: Incarnation) -> Names:
    return {(n.database.lower(), n.table.lower()) for n in i.names}
