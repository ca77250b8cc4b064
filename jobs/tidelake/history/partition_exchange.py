"""ALTER TABLE p EXCHANGE PARTITION … WITH TABLE t: whose rows change places, and whether it can be told (docs/architecture.md 8.3). Pure.

The rows themselves are of the order stage, which writes them to both changelogs (order/exchanged_rows.py).
"""

from __future__ import annotations

from dataclasses import replace

from tidelake.errors import OrderError
from tidelake.history.incarnations import Catalog, Exchange, Incarnation
from tidelake.history.partitions import members


def exchanged(catalog: Catalog, p: Incarnation, partition: str, t: Incarnation, ts: int) -> Catalog:
    """The catalog in which the rows of a partition of p and all rows of t have changed places after ts; two tables without rows have none
    to change. A statement that says it again, in other words, is the same. Raises OrderError (UNSUPPORTED_DDL)."""
    if p.empty and t.empty:
        return catalog
    part = members(p, partition, ts)
    if any((e.ts, e.other, e.part) == (ts, t.id, part) for e in p.exchanges):
        return catalog
    _check_alike(p, partition, t)
    number = sum(e.ts == ts and e.part is not None for i in catalog.incarnations.values() for e in i.exchanges)
    left = Exchange(ts=ts, number=number, other=t.id, partition=partition, part=part)
    came = Exchange(ts=ts, number=number, other=p.id, partition=partition)
    known = catalog.with_(replace(p, exchanges=(*p.exchanges, left), empty=False))
    return known.with_(replace(t, exchanges=(*t.exchanges, came), empty=False))


def _check_alike(p: Incarnation, partition: str, t: Incarnation) -> None:
    """Columns, their types and the key are the same, whatever the order of columns."""
    one, other = ({c.name.lower(): c.type for c in i.columns} for i in (p, t))
    keys = [[c.name.lower() for k in i.key for c in i.columns if c.id == k] for i in (p, t)]
    unlike = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
    if not unlike and keys[0] == keys[1] and p.id != t.id:
        return
    said = f"columns {', '.join(unlike)}" if unlike else "keys"
    raise OrderError(f"rows of {t.name} do not fit partition {partition!r} of {p.name}: {said} differ", code="UNSUPPORTED_DDL")
