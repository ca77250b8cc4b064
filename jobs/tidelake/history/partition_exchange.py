"""ALTER TABLE p EXCHANGE PARTITION … WITH TABLE t: which rows are exchanged (docs/architecture.md 8.3). Pure.

A statement is refused if columns do not determine the rows. The order stage writes the rows to both changelogs (order/exchanged_rows.py).
"""

from __future__ import annotations

from dataclasses import replace

from tidelake.errors import OrderError
from tidelake.history.incarnations import Catalog, Exchange, Incarnation
from tidelake.history.partitions import members


def exchanged(catalog: Catalog, p: Incarnation, partition: str, t: Incarnation, ts: int) -> Catalog:
    """Return the catalog in which the rows of a partition of p and all rows of t are exchanged after ts.

    Two tables without rows do not change. A repeated statement, even if worded differently, has no effect. Raises OrderError
    (UNSUPPORTED_DDL).
    """
    if p.empty and t.empty:
        return catalog
    part, *more = members(p, partition, ts)
    if more:
        why = "they are several ranges of its columns"
        raise OrderError(f"the rows of partition {partition!r} of {p.name} cannot be exchanged: {why}", code="UNSUPPORTED_DDL")
    if any((e.ts, e.other, e.part) == (ts, t.id, part) for e in p.exchanges):
        return catalog
    _check_alike(p, partition, t)
    number = moves_at(catalog, ts)
    left = Exchange(ts=ts, number=number, other=t.id, partition=partition, part=part)
    came = Exchange(ts=ts, number=number, other=p.id, partition=partition)
    known = catalog.with_(replace(p, exchanges=(*p.exchanges, left), empty=False))
    return known.with_(replace(t, exchanges=(*t.exchanges, came), empty=False))


def moves_at(catalog: Catalog, ts: int) -> int:
    """Return the number of statements of this ts that move rows: from one table to another, or into a new life."""
    lives = catalog.incarnations.values()
    return sum(e.ts == ts and e.part is not None for i in lives for e in i.exchanges) + sum(
        i.rekey is not None and i.rekey.ts == ts for i in lives
    )


def _check_alike(p: Incarnation, partition: str, t: Incarnation) -> None:
    """Check that columns, types and key are equal, in any column order."""
    one, other = ({c.name.lower(): c.type for c in i.columns} for i in (p, t))
    keys = [[c.name.lower() for k in i.key for c in i.columns if c.id == k] for i in (p, t)]
    unlike = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
    if not unlike and keys[0] == keys[1] and p.id != t.id:
        return
    said = f"columns {', '.join(unlike)}" if unlike else "keys"
    raise OrderError(f"rows of {t.name} do not fit partition {partition!r} of {p.name}: {said} differ", code="UNSUPPORTED_DDL")
