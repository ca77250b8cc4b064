"""The late ledger: row events that arrived after the cut that covers their commit ts (docs/architecture.md 7).

exact replay   an equal event was published: nothing to do
conflict       another event of the same row and commit ts was published: one of the two is wrong
truly late     no event of that row and commit ts was published: the tables lack it

Conflicts and truly late rows are stored in a table of their own; replays are only counted. Events are compared as they were sent, by table
name, commit ts and cells, with the published events as the events table had them at that time. An update equals its split delete and
insert: the row after it and the key that a delete frees are compared separately. Equal rows of a table without a key are counted by
replay_epoch. Avro deletes have no commit ts and are not judged here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import CATALOG, SYSTEM, late_table
from tidelake.config.table_name import written
from tidelake.errors import OrderError
from tidelake.history.event import RowSchema
from tidelake.lake.catalog import LakeCatalog, LakeColumn, LakeTable
from tidelake.lake.cut import Cut, LateCounts
from tidelake.lake.cuts import Base
from tidelake.lake.events import control_rows
from tidelake.lake.opened import Lake
from tidelake.lake.owner import OWNER, SYSTEM_OWNER
from tidelake.order.observed_tables import WindowRows
from tidelake.order.replay_epochs import Steps, steps_back, with_replay_epoch
from tidelake.spark.sql_text import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = (
    LakeColumn(name="seq", type="int", doc="of the cut at which it was found"),
    LakeColumn(name="verdict", type="string", doc="conflict, or late (no such change is published)"),
    LakeColumn(name="hour", type="string", doc="of the archive"),
    LakeColumn(name="topic", type="string", doc="Kafka coordinates of the event"),
    LakeColumn(name="partition", type="int"),
    LakeColumn(name="offset", type="bigint"),
    LakeColumn(name="ordinal", type="int", doc="position of the event in its message"),
    LakeColumn(name="commit_ts", type="bigint", doc="TSO"),
    LakeColumn(name="database", type="string"),
    LakeColumn(name="table", type="string"),
    LakeColumn(name="op", type="string"),
)
_NAME = ("database", "table", "commit_ts")
_COUNTED = {"replay": "replays", "conflict": "conflicts", "late": "late"}  # verdict → its counter


def judge_late(lake: Lake, events: LakeTable, base: Base, seen: WindowRows) -> dict[str, LateCounts]:
    """Judge the late rows. Return counts by table as sent.

    The ledger then has the conflicts and truly late rows under the number of the next cut, and nothing else of that number.

    Raises:
        OrderError: LATE_ROWS: there are some and the feed's policy is to block.
    """
    catalog, feed, cut = lake.catalog, lake.feed, base.cut
    judged = _judged(lake.spark, events, cut, seen) if seen.late and cut is not None else None
    counts: dict[str, dict[str, int]] = {}
    for row in judged.groupBy("database", "table", "verdict").count().collect() if judged else ():
        counts.setdefault(written(row["database"], row["table"]), {})[_COUNTED[row["verdict"]]] = row["count"]
    out = {name: LateCounts.model_validate(counts[name]) for name in sorted(counts)}
    if judged is None or not any(c.conflicts or c.late for c in out.values()):
        forget(catalog, feed.name, base.seq)
        return out
    _write(catalog, feed, judged.where("verdict != 'replay'"), base.seq)
    if feed.policy.on_late == "block":
        raise _blocked(feed, out)
    return out


def late_rows(catalog: LakeCatalog, feed: Feed) -> list[dict[str, Any]]:
    """Return the ledger in the order of cuts and coordinates. It includes the rows of a window that was blocked and is not published."""
    found = catalog.find_own(late_table(feed.name), feed.name)
    rows = found.scan().read_all().to_pylist() if found is not None else []
    return sorted(rows, key=lambda r: (r["seq"], r["topic"], r["partition"], r["offset"], r["ordinal"]))


def _judged(session: SparkSession, events: LakeTable, cut: Cut, seen: WindowRows) -> DataFrame:
    """The late events with their verdict."""
    now = session.read.option("versionAsOf", events.main).table(f"{CATALOG}.{events.identifier}").where(seen.where_late)
    then = session.read.option("versionAsOf", cut.events_snapshot_id or events.main).table(f"{CATALOG}.{events.identifier}")
    then = then.where(f"kind = 'row' AND hour <= {literal(cut.hour)} AND commit_ts BETWEEN {seen.late_from} AND {cut.resolved_ts}")
    then = then.where(" OR ".join(f"(database = {literal(d)} AND table = {literal(t)})" for d, t in seen.late_names))
    hours = sorted({r["hour"] for frame in (now, then) for r in frame.select("hour").distinct().collect()})
    row_schemas = {
        r["row_schema"]: RowSchema.from_json(r["columns"]) for r in control_rows(events, "row_schema", hours, ["row_schema", "columns"])
    }
    back = steps_back(events, hours)
    return _verdicts(_facts(now, back, row_schemas, gone="op = 'delete'"), _facts(then, back, row_schemas, gone="before IS NOT NULL"))


def _facts(rows: DataFrame, back: Steps, row_schemas: Mapping[int, RowSchema], gone: str) -> DataFrame:
    """Facts that row events state, as (mark, content, nth, key).

    `+` a row is so after the event · `-` a row is gone · `=` an event of a table without key, the nth equal one in its replay_epoch.

    gone: SQL for the events that state that the row before them is gone. All published ones do; of late ones only deletes must be found so.
    """
    keys = {i: [k for k, c in enumerate(s.columns) if c.key] for i, s in row_schemas.items()}
    keyed = ", ".join(str(i) for i, k in keys.items() if k) or "NULL"
    has_key = f"coalesce(row_schema IN ({keyed}) OR before_schema IN ({keyed}), false)"
    after, before = _key("row_schema", "after", keys), _key("before_schema", "before", keys)
    plus = f"IF(after IS NULL, NULL, named_struct('mark', '+', 'content', xxhash64(row_schema, after), 'key', xxhash64({after})))"
    minus = f"IF({gone}, named_struct('mark', '-', 'content', xxhash64(key_before), 'key', xxhash64(key_before)), NULL)"
    there = rows.where(has_key).withColumn("key_before", _expr(f"coalesce({before}, {after})"))
    one = there.selectExpr(*_AT, f"inline(array_compact(array({plus}, {minus})))").selectExpr("*", "1 AS nth")
    bare = with_replay_epoch(rows.where(f"NOT {has_key}"), back)
    order = "PARTITION BY database, table, commit_ts, op, content, topic, partition, replay_epoch ORDER BY offset, ordinal"
    content = "xxhash64(op, content.after, content.before)"
    many = bare.selectExpr(*_AT, "'=' AS mark", f"{content} AS content", "0L AS key", f"row_number() OVER ({order}) AS nth")
    return one.unionByName(many)


_AT = ("hour", "topic", "partition", "offset", "ordinal", "database", "table", "commit_ts", "op")


def _key(row_schema: str, cells: str, keys: Mapping[int, Sequence[int]]) -> str:
    """SQL for the key's cells in an image; NULL if the schema has no key. An update's old image may lack unchanged cells."""
    most = max((len(k) for k in keys.values()), default=0)
    cases = " ".join(f"WHEN {i} THEN array({', '.join(f'get({cells}, {p})' for p in k)})" for i, k in keys.items() if k)
    return f"CASE {row_schema} {cases} END" if most else "CAST(NULL AS array<binary>)"


def _verdicts(late: DataFrame, said: DataFrame) -> DataFrame:
    """Late events with their verdict: `replay` if all their facts are published, `conflict` if their row has another change."""
    same = said.selectExpr(*_NAME, "mark", "content", "nth", "true AS same").distinct()
    row = said.where("mark != '='").selectExpr(*_NAME, "key", "true AS known").distinct()
    wanted = late.join(same, [*_NAME, "mark", "content", "nth"], "left").join(row, [*_NAME, "key"], "left")
    verdict = "CASE WHEN same THEN 'replay' WHEN known THEN 'conflict' ELSE 'late' END AS verdict"
    return wanted.selectExpr(*_AT, verdict)


def _expr(sql: str) -> Any:
    from pyspark.sql import functions as F

    return F.expr(sql)


def _write(catalog: LakeCatalog, feed: Feed, rows: DataFrame, seq: int) -> None:
    """Write the rows of a cut; replaces what an earlier attempt at this cut wrote."""
    identifier = late_table(feed.name)
    if catalog.find_own(identifier, feed.name) is None:
        catalog.claim_namespace(SYSTEM, SYSTEM_OWNER)
        properties = {OWNER: feed.name, "write.distribution-mode": "none"}
        catalog.create(identifier, list(_COLUMNS), partition=(("seq", "identity"),), properties=properties)
    named = rows.selectExpr(f"{seq} AS seq", *(f"`{c.name}`" for c in _COLUMNS[1:]))
    named.writeTo(f"{CATALOG}.{identifier}").overwrite(_expr(f"seq = {seq}"))


def forget(catalog: LakeCatalog, feed: str, seq: int) -> None:
    """Remove the ledger rows that an earlier attempt at this cut wrote."""
    table = catalog.find_own(late_table(feed), feed)
    if table is not None and any(table.files({"seq": seq}, (), table.main)):
        catalog.remove(table.identifier, {"seq": seq})


def _blocked(feed: Feed, counts: Mapping[str, LateCounts]) -> OrderError:
    said = (f"{name}: {c.late} truly late, {c.conflicts} in conflict" for name, c in counts.items() if c.late or c.conflicts)
    return OrderError(
        f"feed {feed.name}: rows arrived after the cut that should contain them: {'; '.join(said)}",
        code="LATE_ROWS",
        remedy=f"list them with `tidelake late --feed {feed.name}`; to continue without them, as incomplete cuts, "
        'set [policy] on_late = "publish_incomplete"',
    )
