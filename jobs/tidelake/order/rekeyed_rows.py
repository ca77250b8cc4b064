"""A new key of a table with rows, in the order stage: its next life begins with an INSERT of each row as of the statement (moved_rows).

A row of the lake whose new key is NULL or not its own shows that lake and source differ, because the source has checked the key. The window
then stops.
"""

from __future__ import annotations

import logging

from tidelake.config.lake_paths import NEW_KEY
from tidelake.errors import OrderError
from tidelake.history.incarnations import Incarnation, Rekey
from tidelake.io.texts import plural
from tidelake.lake.branches import sql_name
from tidelake.lake.cut import Advance
from tidelake.lake.folding.table_fold import TableAt
from tidelake.lake.tables import holders, kept, mask_of
from tidelake.order.moved_rows import Side, StagedTables, append, known, moment, side, since, standing, types_of, with_moved
from tidelake.order.planning import PlannedWindow, first_buckets
from tidelake.spark.observed_counts import Observed
from tidelake.spark.sql_text import quote
from tidelake.tso import show
from tidelake.wire.masks import check_mask

log = logging.getLogger(__name__)


def rekey_rows(plan: PlannedWindow, r: Rekey, i: Incarnation, staged: StagedTables) -> StagedTables:
    """Return what is staged with the rows that a life begins with.

    Args:
        plan: The window.
        r: The statement.
        i: The life that begins.
        staged: What is staged of row events and of earlier statements.

    Raises:
        ConfigError: A column of the key has a mask that makes different rows one.
        OrderError: UNSUPPORTED_DDL: rows of the lake do not have the key, or lack the default of a column.
    """
    from pyspark.sql import functions as F

    feed, former = plan.lake.feed, plan.tables.incarnations[i.former]
    for c in (c for c in i.columns_at(r.ts) if c.id in i.key):
        if (mask := mask_of(feed, i, c)) is not None:
            check_mask(i.name, c.name, mask, in_key=True, mysql=c.type)
    changes = _changes(plan, former, staged)
    if changes is None and since(plan, former)[1] is None:
        return staged
    to, columns = side(plan, i, r, staged, first_buckets(plan, i)), kept(feed, former, former.columns_at(r.ts))
    _check_defaults(plan, r, to, former)
    names = {c.id: c.lake_name for c in to.columns}
    taken = [f"{quote(c.lake_name)} AS {quote(names[c.id])}" for c in columns if c.id in names]
    rows = standing(plan, former, changes, r).selectExpr(*taken, "'INSERT' AS _change_type")
    found = Observed(rows, F.count("*").alias("came"))
    append(plan, found.rows, to, r, NEW_KEY, types_of(feed, former, columns))
    came = int(found.values()["came"])
    moved = with_moved(plan, to, staged, came=came)
    if came:
        _check_key(plan, r, to, moved.changelogs[i.id])
    log.info(f"{i.name}: {plural(came, 'row')} under another key")
    return moved


def _changes(plan: PlannedWindow, former: Incarnation, staged: StagedTables) -> TableAt | None:
    """The changes of the life that ended."""
    advance, at = staged.changelogs.get(former.id), known(plan, former)
    if advance is not None:
        return TableAt(plan.lake.catalog.load(advance.identifier), advance.to)
    return TableAt(plan.lake.catalog.load(at.identifier), at.snapshot_id) if at is not None else None


def _check_defaults(plan: PlannedWindow, r: Rekey, to: Side, former: Incarnation) -> None:
    """Refuse a column that came with the key, in a statement that came late: its default holds for rows up to the statement's ts only."""
    there = {c.id for c in former.columns_at(r.ts)}
    new = next((c for c in to.columns if c.id not in there and c.default is not None), None)
    if new is not None and moment(plan, r) > r.ts:
        raise OrderError(
            f"column {new.name!r} of {to.table.incarnation.name} came with the key of TSO {show(r.ts)}, after the cut of that TSO: "
            f"{_said(plan, r, to)}",
            code="UNSUPPORTED_DDL",
            remedy="nothing is lost: write the new column and the key as two statements into ddl.jsonl, in that order (docs/ddl.md)",
        )


def _check_key(plan: PlannedWindow, r: Rekey, to: Side, advance: Advance) -> None:
    """Refuse rows whose key is NULL or not their own. Reads the key's columns of what was staged."""
    from pyspark.sql import functions as F

    i, have = to.table.incarnation, holders(to.changelog.columns())
    key = [quote(have[k][0].name) for k in i.key]
    rows = plan.lake.spark.table(sql_name(advance.identifier, advance.branch)).where(
        f"_commit_ts = {moment(plan, r)} AND _origin = '{NEW_KEY}'"
    )
    wrong = rows.groupBy(*key).count().where(" OR ".join(["count > 1", *(f"{k} IS NULL" for k in key)]))
    found = wrong.agg(F.count("*").alias("keys"), F.min(F.struct(*key, "count")).alias("first")).first()
    if found is None or not found["keys"]:
        return
    *cells, count = found["first"]
    names = {c.id: c.name for c in to.columns}
    first = ", ".join(f"{names[k]} = {_shown(cell)}" for k, cell in zip(i.key, cells, strict=True))
    raise OrderError(
        f"{plural(found['keys'], 'key')} of {i.name} {'is' if found['keys'] == 1 else 'are'} NULL or not unique in the lake at TSO "
        f"{show(r.ts)}, the first {first} in {plural(count, 'row')}: {_said(plan, r, to)}",
        code="UNSUPPORTED_DDL",
        remedy="nothing is lost: the window waits. The source has the key, so its rows and those of the lake differ: compare them as of a "
        "TSO before the statement with `tidelake verify`; docs/ddl.md lists the options (a new key)",
    )


def _said(plan: PlannedWindow, r: Rekey, to: Side) -> str:
    """The statement."""
    of_life = (e.query for e in plan.ledger if e.commit_ts == r.ts and to.table.incarnation.id in e.tables)
    return repr(next(of_life, ""))


def _shown(cell: object) -> str:
    return "NULL" if cell is None else f"0x{cell.hex()}" if isinstance(cell, bytes | bytearray) else str(cell)
