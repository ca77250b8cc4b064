"""Places Avro deletes, which have no commit ts, in commit order (docs/architecture.md 8.2, docs/reference/protocols.md 4.1).

In a partition, the first delivery of a table's rows never goes back in commit ts. So a delete lies between the ts of the row before it and
the ts of the row after it. Replay epochs separate deliveries: a row whose ts steps back, or that repeats a row of the same ts, begins a new
replay epoch. A delete between two replay epochs is a repeat, or is sent again at its place: it is skipped.

A delete gets the ts of the row before it (or the first ts of the window). It belongs to the first window whose cut is at or after both that
ts and the message's time, because a checkpoint guarantees that all rows up to it were sent before it was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidelake.history.incarnations import Name
from tidelake.history.window import Window
from tidelake.spark.sql_casts import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def dated(rows: DataFrame, window: Window, applied_at_ms: int | None, resolved_at_ms: int, names: Sequence[Name]) -> DataFrame:
    """Return the deletes of the window with a commit ts in it, and `unsettled`: whether the delete may be after the cut.

    Args:
        rows: Row events of the hours to scan, deletes and others.
        window: The window.
        applied_at_ms: When the checkpoint at its start was recorded (ms); None if there is none.
        resolved_at_ms: When the checkpoint at its end was recorded (ms).
        names: Names as sent. A table that got its name in the window has no earlier rows under it.
    """
    found = _between(_with_epochs(rows))
    applied, resolved = window.applied_ts, window.resolved_ts
    taken_before = f"(timestamp_ms <= {applied_at_ms} AND coalesce(lower, 0) <= {applied})" if applied_at_ms is not None else "false"
    mine = found.where(
        f"""op = 'delete' AND commit_ts IS NULL
        AND (epoch_after IS NULL OR epoch_before IS NULL OR epoch_after = epoch_before)
        AND (upper IS NULL OR upper > {applied})
        AND NOT {taken_before}
        AND timestamp_ms <= {resolved_at_ms} AND coalesce(lower, 0) <= {resolved}"""
    )
    born = " ".join(
        f"WHEN database = {literal(n.database)} AND table = {literal(n.table)} THEN {n.after_ts + 1}" for n in _young(names, resolved)
    )
    start = f"coalesce(CASE {born} END, 0)" if born else "0"
    ts = f"greatest(coalesce(lower, {start}), {applied + 1})"
    unsettled = f"((upper IS NULL OR upper > {resolved}) AND timestamp_ms > {resolved >> 18})"
    return mine.selectExpr("* EXCEPT (commit_ts)", f"{ts} AS commit_ts", f"{unsettled} AS unsettled")


def _young(names: Sequence[Name], resolved: int) -> list[Name]:
    """Names that statements up to the resolved ts gave, the latest interval first."""
    return sorted((n for n in names if 0 <= n.after_ts < resolved), key=lambda n: -n.after_ts)


def _with_epochs(rows: DataFrame) -> DataFrame:
    """Add `replay_epoch`, counted per partition over rows that have a commit ts; NULL on deletes."""
    from pyspark.sql import Window as Over
    from pyspark.sql import functions as F

    arrival = Over.partitionBy("topic", "partition", "dated").orderBy("offset", "ordinal")
    marked = rows.withColumn("dated", F.col("commit_ts").isNotNull())
    back = F.coalesce(F.col("commit_ts") < F.lag("commit_ts").over(arrival), F.lit(False))
    marked = marked.withColumn("_leg", F.sum(back.cast("int")).over(arrival))
    same = Over.partitionBy("topic", "partition", "dated", "_leg", "commit_ts", F.xxhash64("after")).orderBy("offset", "ordinal")
    repeat = (F.row_number().over(same) > 1) & F.col("dated")
    marked = marked.withColumn("_begins", (back | repeat).cast("int"))
    return marked.withColumn("replay_epoch", F.when(F.col("dated"), F.sum("_begins").over(arrival)))


def _between(rows: DataFrame) -> DataFrame:
    """Add the commit ts and replay epoch of the nearest dated rows before and after."""
    from pyspark.sql import Window as Over
    from pyspark.sql import functions as F

    of_partition = Over.partitionBy("topic", "partition")
    down = [F.desc("offset"), F.desc("ordinal")]  # descending: a growing frame is linear in its length, a shrinking one quadratic
    before = of_partition.orderBy("offset", "ordinal").rowsBetween(Over.unboundedPreceding, -1)
    behind = of_partition.orderBy(*down).rowsBetween(Over.unboundedPreceding, -1)
    near = rows
    for name, column in (("lower", "commit_ts"), ("epoch_before", "replay_epoch")):
        near = near.withColumn(name, F.last(column, ignorenulls=True).over(before))
    for name, column in (("upper", "commit_ts"), ("epoch_after", "replay_epoch")):
        near = near.withColumn(name, F.last(column, ignorenulls=True).over(behind))
    return near
