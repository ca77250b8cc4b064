"""The DDL ledger (docs/architecture.md 8.3): every statement of every published cut, its effect, and the snapshots before and after.

One table for all feeds and engines, written when a cut is published, read without Spark.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tidelake.config.lake_paths import SYSTEM, ddl_table
from tidelake.errors import StorageError
from tidelake.lake.catalog import LakeCatalog, LakeColumn
from tidelake.lake.cut import Cut
from tidelake.lake.owner import SYSTEM_OWNER
from tidelake.tso import at

_COLUMNS = (
    LakeColumn(name="feed", type="string"),
    LakeColumn(name="seq", type="bigint", doc="of the cut that holds it"),
    LakeColumn(name="number", type="int", doc="place among the cut's statements, from 1"),
    LakeColumn(name="commit_ts", type="bigint", doc="TSO"),
    LakeColumn(name="committed_at", type="timestamp", doc="time of the TSO"),
    LakeColumn(name="database", type="string", doc="for unqualified names"),
    LakeColumn(name="statement", type="string", doc="as sent; NULL for a table or column first seen in rows"),
    LakeColumn(name="effect", type="string", doc="applied, no effect, ignored, or the table or column first seen in rows"),
    LakeColumn(name="why", type="string", doc="reason why it was ignored"),
    LakeColumn(name="table", type="string", doc="table that it changed, by its name after the cut; a row for each, NULL if none"),
    LakeColumn(name="incarnation", type="string"),
    LakeColumn(name="snapshot_before", type="bigint", doc="of the table at the previous cut; NULL if it did not exist"),
    LakeColumn(name="snapshot_after", type="bigint", doc="of the table at the cut; NULL if it does not exist"),
)


def enter(catalog: LakeCatalog, cut: Cut, before: Cut | None) -> None:
    """Add a cut's statements to the ledger, in one commit. Repeatable. before: the cut that this one continues."""
    rows = _rows(cut, before)
    if not rows:
        return
    table = catalog.find(ddl_table())
    if table is None:
        _create(catalog)
    elif any(batch.num_rows for batch in table.scan({"feed": cut.feed, "seq": cut.seq}, ["seq"])):
        return
    batch = pa.Table.from_pylist(rows, schema=catalog.load(ddl_table()).table.schema().as_arrow())
    catalog.append(ddl_table(), batch, {"tidelake.feed": cut.feed, "tidelake.cut": str(cut.seq)})


def entries(catalog: LakeCatalog, feed: str) -> list[dict[str, Any]]:
    """Return the feed's ledger, ordered by cut and statement."""
    table = catalog.find(ddl_table())
    rows = table.scan({"feed": feed}).read_all().to_pylist() if table is not None else []
    return sorted(rows, key=lambda r: (r["seq"], r["number"], r["table"] or ""))


def _create(catalog: LakeCatalog) -> None:
    catalog.claim_namespace(SYSTEM, SYSTEM_OWNER)
    try:
        catalog.create(ddl_table(), list(_COLUMNS), partition=(("feed", "identity"),))
    except StorageError as e:
        if e.code != "TABLE_EXISTS":  # another feed created it first
            raise


def _rows(cut: Cut, before: Cut | None) -> list[dict[str, object]]:
    known = {(e.commit_ts, e.query, e.effect) for e in before.ledger} if before else set()
    lives, was = cut.catalog.incarnations, before.snapshots if before else {}
    out: list[dict[str, object]] = []
    for number, e in enumerate((e for e in cut.ledger if (e.commit_ts, e.query, e.effect) not in known), 1):
        common: dict[str, object] = {
            "feed": cut.feed,
            "seq": cut.seq,
            "number": number,
            "commit_ts": e.commit_ts,
            "committed_at": at(e.commit_ts),
            "database": e.database,
            "statement": e.query or None,
            "effect": e.effect,
            "why": e.why or None,
        }
        tables: list[dict[str, object]] = [
            {
                "table": lives[i].name,
                "incarnation": i,
                "snapshot_before": was[i].snapshot_id if i in was else None,
                "snapshot_after": cut.snapshots[i].snapshot_id if i in cut.snapshots else None,
            }
            for i in e.tables
        ]
        out += [common | t for t in tables or [{}]]
    return out
