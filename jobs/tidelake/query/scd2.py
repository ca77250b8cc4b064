"""Row versions with the time each was valid (slowly changing dimension of type 2), built from a changelog.

A version is valid at ts if `_valid_from_ts <= ts` and `ts < _valid_to_ts` (NULL: still valid). The versions that are valid at ts are the
table as of ts. Of several changes of a row at one commit ts the last one counts, as in a snapshot. A version ends with the next change of
its key, a delete, the next TRUNCATE of the table or of its partition, or the table's DROP.

If maintenance removed changes, the view begins at the first cut after which no change is missing. It has the rows of that cut, each valid
from the change that wrote it. Versions that ended before that cut are not in it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidelake.errors import ConfigError, StorageError
from tidelake.history.ddl.changes import Change, EmptyPartitions, TruncateTable
from tidelake.history.ddl.statement import parse
from tidelake.history.incarnations import Incarnation
from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import read_cut
from tidelake.lake.cuts import KEEP_CHANGES, changelog_retained_after, cut_for, lineage, newest_cut, statements
from tidelake.lake.folding.fold import Fold
from tidelake.lake.folding.folded_frame import changes_frame, snapshot_frame
from tidelake.lake.folding.table_fold import TableAt
from tidelake.lake.opened import Lake
from tidelake.lake.tables import PARTIAL, kept, lake_column, shown_type
from tidelake.query.asof import alive_at, first_whole, placed_now
from tidelake.query.render import Rendered
from tidelake.spark.sql_text import quote
from tidelake.tso import show

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VALIDITY = {
    "_valid_from_ts": "BIGINT",
    "_valid_to_ts": "BIGINT",
    "_valid_from": "TIMESTAMP",
    "_valid_to": "TIMESTAMP",
    "_current": "BOOLEAN",
}
_FIRST = ("'INSERT' AS _change_type", "CAST(-1 AS DECIMAL(38, 0)) AS _change_seq")  # before all changes


def scd2_frame(lake: Lake, table: str, ts: int | None, spark: SparkSession) -> tuple[DataFrame, list[Rendered]]:
    """Return (versions, their columns in order) of the table that has the name at a TSO, as known at that TSO.

    A version that ended after the TSO is still valid in the result. Versions from before a column was added have the column's default.

    Args:
        lake: The feed's lake.
        table: Name, db.table.
        ts: The TSO; None means the newest cut.
        spark: The session.

    Returns:
        Columns: the source's as of ts, `_valid_from_ts` and `_valid_to_ts` (TSO), `_valid_from` and `_valid_to` (their times), `_current`;
            and `_partial` if rows came with their key alone.

    Raises:
        ConfigError: UNKNOWN_TABLE; NO_KEY: without a key it is not known which rows are versions of one another.
        StorageError: NOT_PUBLISHED, NOT_RETAINED.
    """
    ts, after, incarnation = alive_at(lake, table, ts)
    if not incarnation.key:
        raise ConfigError(
            f"table {table} has no key, so its rows have no versions",
            code="NO_KEY",
            remedy="--scd2 is not needed to read its changes; a table with a unique key in tables.sql has versions",
        )
    whole = replace(incarnation, truncations=(), removals=())  # rows that a statement removed are versions as well
    own = kept(lake.feed, incarnation, incarnation.columns_at(ts))
    start = _start(lake, incarnation, ts)
    since = start.resolved_ts if start else 0
    fold = Fold(feed=lake.feed, incarnation=whole, columns=own, applied_ts=since, until_ts=ts)
    columns = [Rendered(name=c.lake_name, type=shown_type(lake.feed, incarnation, c)) for c in own]
    validity = [Rendered(name=n, type=None) for n in VALIDITY]
    began = _began(lake, spark, after, start, fold) if start else _seeded(lake, spark, after, fold)
    if incarnation.id not in after.changelogs and began is None:
        kinds = {quote(c.lake_name): lake_column(lake.feed, incarnation, c).type for c in fold.columns} | VALIDITY
        nulls = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in kinds.items())
        return spark.sql(f"SELECT {nulls}").where("false"), [*columns, *validity]
    changes = _changes(lake, spark, after, fold) if incarnation.id in after.changelogs else None
    marks = [PARTIAL.name] if changes is not None and PARTIAL.name in changes.columns else []
    if began is not None:
        first = began.selectExpr("*", *_FIRST, *(f"false AS {m}" for m in marks))
        changes = first if changes is None else changes.select(*first.columns).unionByName(first)
    assert changes is not None
    versions = _versions(changes, fold, marks, _ends(lake, incarnation, fold))
    return versions, [*columns, *(Rendered(name=m, type=None) for m in marks), *validity]


def _changes(lake: Lake, spark: SparkSession, after: Cut, fold: Fold) -> DataFrame:
    at = placed_now(newest_cut(lake.catalog, lake.store, lake.feed.name) or after, after.changelogs[fold.incarnation.id])
    return changes_frame(spark, fold, TableAt(lake.catalog.load(at.identifier), at.snapshot_id))


def _seeded(lake: Lake, spark: SparkSession, after: Cut, fold: Fold) -> DataFrame | None:
    """Return the rows that the table began with, if it began with a full export. Raises StorageError (NOT_RETAINED)."""
    if not after.seeded_ts or fold.incarnation.from_ts != after.seeded_ts:
        return None
    cuts = (read_cut(lake.store, lake.feed.name, seq) for seq in sorted(lineage(lake.catalog, lake.feed.name)))
    seed = next(cuts, after)
    if not seed.is_seed or fold.incarnation.id not in seed.snapshots:
        raise StorageError(
            f"feed {lake.feed.name}: the cut of the export that {fold.incarnation.name} began with is not kept any more",
            code="NOT_RETAINED",
            remedy="--scd2 is not needed to read its changes; keep_cuts and keep_daily under [maintenance] in feed.toml "
            "set how long cuts are kept",
        )
    return _began(lake, spark, after, seed, fold)


def _start(lake: Lake, i: Incarnation, ts: int) -> Cut | None:
    """Return the cut that the view begins with if older changes are gone, else None. Raises StorageError (NOT_RETAINED)."""
    gone = changelog_retained_after(lake.catalog, lake.feed.name)
    if not gone or i.changes_after >= gone:
        return None
    first = first_whole(lake, gone)
    cut = cut_for(lake.catalog, lake.store, lake.feed.name, first)[1] if first is not None and first <= ts else None
    if cut is None or (i.recovered and i.id not in cut.snapshots):
        raise StorageError(
            f"feed {lake.feed.name}: versions of {i.name} are not known at TSO {show(ts)}: changes up to {show(gone)} are not all kept",
            code="NOT_RETAINED",
            remedy=f"{f'they are from TSO {show(first)} on; ' if first is not None and cut is None else ''}{KEEP_CHANGES}",
        )
    return cut


def _began(lake: Lake, spark: SparkSession, after: Cut, cut: Cut, fold: Fold) -> DataFrame | None:
    """Return the rows of the cut that the view begins with; None if the table is younger."""
    if fold.incarnation.id not in cut.snapshots:
        return None
    at = placed_now(newest_cut(lake.catalog, lake.store, lake.feed.name) or after, cut.snapshots[fold.incarnation.id])
    return snapshot_frame(spark, fold, TableAt(lake.catalog.load(at.identifier), at.snapshot_id))


def _versions(changes: DataFrame, fold: Fold, marks: list[str], ends: list[str]) -> DataFrame:
    """Build the versions. ends: SQL for the TSOs at which a statement removed the row, NULL if none did."""
    from pyspark.sql import functions as F

    key, names = [quote(k) for k in fold.key], [quote(c.lake_name) for c in fold.columns]
    rest = [n for n in names if n not in key]
    one = F.expr(f"max_by(struct({', '.join([*rest, *marks, '_change_type'])}), _change_seq)").alias("_row")
    last = changes.where("_change_type != 'UPDATE_BEFORE'").groupBy(*key, "_commit_ts").agg(one)
    following = f"lead(_commit_ts) OVER (PARTITION BY {', '.join(key)} ORDER BY _commit_ts)"
    ended = last.withColumn("_to", F.expr(f"least({following}, array_min(array({', '.join(ends)})))" if ends else following))
    valid = ended.where("_row._change_type != 'DELETE' AND (_to IS NULL OR _to > _commit_ts)")
    return valid.selectExpr(
        *(f"_row.{n} AS {n}" if n in rest else n for n in names),
        *(f"coalesce(_row.{m}, false) AS {m}" for m in marks),
        "_commit_ts AS _valid_from_ts",
        "_to AS _valid_to_ts",
        "timestamp_millis(shiftright(_commit_ts, 18)) AS _valid_from",
        "timestamp_millis(shiftright(_to, 18)) AS _valid_to",
        "_to IS NULL AS _current",
    )


def _ends(lake: Lake, i: Incarnation, fold: Fold) -> list[str]:
    """SQL for the times at which rows left, up to fold.until_ts.

    The ledger has the statements that emptied the table, the incarnation all removed partitions.
    """
    sent = (e for e in statements(lake.catalog, lake.feed.name) if e["incarnation"] == i.id and e["effect"] == "applied" and e["statement"])
    emptied = {e["commit_ts"] for e in sent if any(map(_empties, parse(e["statement"], e["database"] or "")))}
    whole = {t: "true" for t in emptied if t <= fold.until_ts}
    parts = [(r.ts, f"coalesce({fold.left(r)}, false)") for r in {*i.past_removals, *i.removals} if r.ts <= fold.until_ts]
    return [f"IF(_commit_ts <= {t} AND {left}, {t}L, NULL)" for t, left in sorted([*whole.items(), *parts])]


def _empties(change: Change) -> bool:
    return isinstance(change, TruncateTable) or (isinstance(change, EmptyPartitions) and not change.names)
