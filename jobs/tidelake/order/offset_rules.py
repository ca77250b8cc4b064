"""Rules for a feed whose changes are ordered by offsets, checked in every window: `[watermark] from = "offsets"` (docs/offsets.md).

An offset gives an order only within its partition and hour. So all changes of a table (or of a key) must come from one partition in an
hour, a statement from the partition of the rows it changes, and no later hour may bring earlier offsets. A violation is an error.
`one_partition_per = "none"` continues with what there is, and the cuts are incomplete.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidelake.config.feed import Feed
from tidelake.errors import ContractError, Coordinates, OrderError, TopicPartition
from tidelake.history.ddl.changes import AddColumn, Change, CreateTable, DropColumn, ExchangePartition, NoEffect, RenameTable
from tidelake.history.ddl.statement import parse
from tidelake.io.texts import plural
from tidelake.land.store.manifest import Manifest
from tidelake.land.store.ranges import Ranges, common, minus, show, union
from tidelake.order.repeated_offsets import Again
from tidelake.spark.sql_text import quote
from tidelake.tso import at, begin_ts, end_ts, format_hour, parse_hour

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TablePlaces = Mapping[tuple[str, str, str], frozenset[TopicPartition]]  # (hour, database, table), lower case → partitions of its rows
DOCS = "docs/offsets.md"


def findings(feed: Feed) -> list[dict[str, str]]:
    """Return the findings of every certificate of such a feed: the fields of validate.quality.facts.FindingFacts."""
    if not feed.by_offsets:
        return []
    detail = (
        "offsets order the changes, and the closed hour is the cut; an event sent twice that does not say its place in the binlog counts "
        "twice in tables without a key"
    )
    remedy = (
        f"nothing, if the source sends no commit ts; with TiCDC, enable-tidb-extension gives stronger guarantees. {DOCS} lists the limits"
    )
    return [{"code": "ORDERED_BY_OFFSETS", "severity": "info", "where": "", "detail": detail, "remedy": remedy}]


def repeated(
    feed: Feed, hours: Sequence[str], manifests: Mapping[str, Manifest], prefixes: Mapping[str, Mapping[int, tuple[int, int]]]
) -> tuple[Again, ...]:
    """Return the offsets of these hours that also came with earlier ones.

    Args:
        feed: The feed.
        hours: The hours, ascending.
        manifests: Manifests of these hours and of earlier ones.
        prefixes: Offsets known before.

    Raises:
        OrderError: OFFSETS_WENT_BACK: new offsets are lower than those of an earlier hour.
    """
    known: dict[TopicPartition, Ranges] = {(t, p): (span,) for t, ps in prefixes.items() for p, span in ps.items()}
    out = []
    for hour in sorted(manifests):
        for topic, partitions in manifests[hour].partitions.items():
            for number, partition in partitions.items():
                before = known.get((topic, number), ())
                again, new = common(partition.ranges, before), minus(partition.ranges, before)
                if hour in hours and before and new and new[0][0] < before[-1][1] and feed.watermark.one_partition_per != "none":
                    raise _went_back(hour, topic, number, new, before[-1][1])
                if hour in hours and again:
                    out.append(Again(hour=hour, topic=topic, partition=number, offsets=again))
                known[topic, number] = union([before, partition.covered])
    return tuple(out)


def _went_back(hour: str, topic: str, number: int, new: Ranges, end: int) -> OrderError:
    return OrderError(
        f"hour {hour} brings offset {new[0][0]} ({show(new)}), and an earlier hour has offset {end}: hours do not order this partition",
        code="OFFSETS_WENT_BACK",
        at=Coordinates(topic, number),
        remedy=f'let hours be ranges of offsets: hours = "timestamps" under [source], in a new feed; {DOCS} has other ways',
    )


def mixed(feed: Feed, places: TablePlaces) -> str | None:
    """Describe changes of a table that come from two partitions in an hour, so that their order is not known; None if there are none.

    Raises:
        OrderError: TWO_PARTITIONS: the feed does not allow it.
    """
    found = next((item for item in sorted(places.items()) if len(item[1]) > 1), None)
    if found is None or feed.watermark.one_partition_per == "key":
        return None
    (hour, database, table), where = found
    one, other = sorted(where)[:2]
    if feed.watermark.one_partition_per == "none":
        return f"rows of {database}.{table} come from {_said(one)} and from {_said(other)} in hour {hour}, in no certain order"
    raise OrderError(
        f"rows of {database}.{table} come from {_said(one)} and from {_said(other)} in hour {hour}: offsets do not order them",
        code="TWO_PARTITIONS",
        remedy='one_partition_per = "key" under [watermark] if rows are spread by the whole primary key (canal.mq.partitionHash '
        f"…:$pk$), else send a table's changes to one partition; {DOCS}",
    )


def placed_statements(feed: Feed, sent: Iterable[dict[str, Any]], places: TablePlaces) -> list[dict[str, Any]]:
    """Return the statements with the commit ts from which they apply.

    A statement from a partition other than that of its tables' rows in its hour has no order relative to them. If it creates a table or
    adds a column, it then applies from the start of the hour; if it drops a column, from the end: rows name their columns.

    Args:
        feed: The feed.
        sent: Statements (topic, partition, commit_ts, database, ddl).
        places: Partitions of the rows.

    Raises:
        OrderError: UNPLACED_DDL: any other statement.
    """
    return [s | {"commit_ts": _ts_of(feed, s, places)} for s in sent]


def _ts_of(feed: Feed, s: dict[str, Any], places: TablePlaces) -> int:
    ts: int = s["commit_ts"]
    hour, here = format_hour(at(ts)), (s["topic"], s["partition"])
    if ts in feed.policy.ignore_ddl or feed.watermark.one_partition_per == "none":
        return ts
    changes = _changes(s["ddl"], s["database"] or "")
    elsewhere = {name: places.get((hour, *name), frozenset()) - {here} for c in changes for name in _names(c)}
    foreign = next((name for name, where in sorted(elsewhere.items()) if where), None)
    if foreign is None:
        return ts
    begin, end = begin_ts(parse_hour(hour)), end_ts(parse_hour(hour))
    if all(map(_may_come_early, changes)):
        return begin
    if all(isinstance(c, DropColumn) for c in changes):
        return end
    raise OrderError(
        f"a statement on {'.'.join(foreign)} is in {_said(here)}, rows of the table in {_said(min(elsewhere[foreign]))} in the same "
        f"hour {hour}: whether they come before or after it is unknown: {s['ddl']!r}",
        code="UNPLACED_DDL",
        at=Coordinates(s["topic"], s["partition"], s["offset"]),
        remedy=f"decide: ignore_ddl = [{ts}] under [policy], and the statement in ddl.jsonl with commit_ts {begin} (before all rows of the "
        f"hour) or {end} (after them); {DOCS}",
    )


def _changes(query: str, database: str) -> list[Change]:
    try:
        return [c for c in parse(query, database) if not isinstance(c, NoEffect)]
    except ContractError:
        return []  # the window reports the mistake


def _names(change: Change) -> list[tuple[str, str]]:
    names = [(change.database, change.table)]
    names += [(change.to_database, change.to_table)] if isinstance(change, RenameTable) else []
    names += [(change.with_database, change.with_table)] if isinstance(change, ExchangePartition) else []
    return [(d.lower(), t.lower()) for d, t in names]


def _may_come_early(change: Change) -> bool:
    """Whether rows from before the change read the same after it."""
    if isinstance(change, AddColumn):
        return change.column.default is None and change.column.default_known and change.column.nullable
    return isinstance(change, CreateTable)


def refuse_keys_in_two_partitions(changes: DataFrame, key: Sequence[str], name: str) -> None:
    """Raise OrderError (TWO_PARTITIONS) if changes of one key come from two partitions in an hour.

    Args:
        changes: What the window adds to a table's changelog.
        key: Columns of the key.
        name: The table.
    """
    from pyspark.sql import functions as F

    hour = F.expr("shiftright(_commit_ts, 18) div 3600000").alias("_hour_of")
    place = F.struct("_topic", "_kafka_partition")
    of_key = changes.groupBy(hour, *(F.col(quote(k)) for k in key)).agg(F.min(place).alias("one"), F.max(place).alias("other"))
    where = of_key.where("one != other").groupBy("one", "other").agg(F.count("*").alias("n"), F.min("_hour_of").alias("hour"))
    found = where.orderBy(F.desc("n")).limit(1).collect()
    if not found:
        return
    worst = found[0]
    hour_of = format_hour(datetime.fromtimestamp(worst["hour"] * 3600, tz=at(0).tzinfo))
    raise OrderError(
        f"{plural(worst['n'], 'key')} of {name} with changes in {_said(tuple(worst['one']))} and in {_said(tuple(worst['other']))} "
        f"in one hour, the first in {hour_of}: offsets do not order them",
        code="TWO_PARTITIONS",
        remedy="rows are not spread by the primary key alone, or an update changed a key: send the table's changes to one partition; "
        f"{DOCS}",
    )


def _said(place: TopicPartition) -> str:
    return str(Coordinates(*place))
