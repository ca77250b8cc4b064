"""What must hold of a feed whose changes are ordered by offsets, window by window: `[watermark] from = "offsets"` (docs/offsets.md).

An offset orders within its partition and hour only. So all changes of a table (or of a key) come from one partition in one hour, a
statement from that of the rows it changes, and no later hour brings earlier offsets. What breaks this is named; `one_partition_per =
"none"` goes on with what there is, and the cuts are incomplete.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidelake.config.feed import Feed
from tidelake.errors import ContractError, Coordinates, OrderError, TopicPartition
from tidelake.history.ddl.changes import AddColumn, Change, CreateTable, DropColumn, ExchangePartition, NoEffect, RenameTable
from tidelake.history.ddl.statement import parse
from tidelake.land.store.manifest import Manifest
from tidelake.land.store.ranges import Ranges, common, minus, show, union
from tidelake.spark.sql_casts import literal, quote
from tidelake.tso import at, begin_ts, end_ts, format_hour, parse_hour

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TablePlaces = Mapping[tuple[str, str, str], frozenset[TopicPartition]]  # hour, database, table (lower case) → where its rows come from
DOCS = "docs/offsets.md"


def findings(feed: Feed) -> list[dict[str, str]]:
    """What every certificate of such a feed says: members of validate.quality.facts.FindingFacts."""
    if not feed.by_offsets:
        return []
    detail = "offsets order the changes, and the closed hour is the cut; what the source sent twice counts twice in tables without a key"
    remedy = f"nothing, if the source says no commit ts; of TiCDC, enable-tidb-extension gives more. {DOCS} says what is not promised"
    return [{"code": "ORDERED_BY_OFFSETS", "severity": "info", "where": "", "detail": detail, "remedy": remedy}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Offsets that an earlier hour has, too: their messages count there."""

    hour: str
    topic: str
    partition: int
    offsets: Ranges

    @property
    def sql(self) -> str:
        """A condition on events."""
        spans = " OR ".join(f"offset BETWEEN {a} AND {b}" for a, b in self.offsets)
        return f"(hour = {literal(self.hour)} AND topic = {literal(self.topic)} AND partition = {self.partition} AND ({spans}))"

    def has(self, event: Mapping[str, Any]) -> bool:
        """Whether it is one of these."""
        mine = (event["hour"], event["topic"], event["partition"]) == (self.hour, self.topic, self.partition)
        return mine and any(a <= event["offset"] <= b for a, b in self.offsets)


def repeated(
    feed: Feed, hours: Sequence[str], manifests: Mapping[str, Manifest], prefixes: Mapping[str, Mapping[int, tuple[int, int]]]
) -> tuple[Again, ...]:
    """The offsets of these hours, ascending, that came with earlier ones. manifests: of them and of earlier hours; prefixes: known before.

    Raises OrderError (OFFSETS_WENT_BACK) for offsets that are new and lie before those of an earlier hour.
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
    """That changes of a table come from two partitions of an hour and what they are may be out of order, None where it is not so.

    Raises OrderError (TWO_PARTITIONS) where they must not.
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
        f"…:$pk$), else have a table's changes sent to one partition; {DOCS}",
    )


def placed_statements(feed: Feed, sent: Iterable[dict[str, Any]], places: TablePlaces) -> list[dict[str, Any]]:
    """Statements (topic, partition, commit_ts, database, ddl) with the commit ts at which they hold.

    One from another partition than rows of its tables in its hour is not in order with them. What makes a table or a column then holds
    from the hour's begin, what drops a column at its end: rows say their columns. Raises OrderError (UNPLACED_DDL) for any other.
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
        f"a statement on {'.'.join(foreign)} stands in {_said(here)}, rows of the table in {_said(min(elsewhere[foreign]))} in the same "
        f"hour {hour}: whether they come before or after it is not known: {s['ddl']!r}",
        code="UNPLACED_DDL",
        at=Coordinates(s["topic"], s["partition"], s["offset"]),
        remedy=f"decide: ignore_ddl = [{ts}] under [policy], and the statement in ddl.jsonl with commit_ts {begin} (before all rows of the "
        f"hour) or {end} (after them); {DOCS}",
    )


def _changes(query: str, database: str) -> list[Change]:
    try:
        return [c for c in parse(query, database) if not isinstance(c, NoEffect)]
    except ContractError:
        return []  # the window says what is wrong with it


def _names(change: Change) -> list[tuple[str, str]]:
    names = [(change.database, change.table)]
    names += [(change.to_database, change.to_table)] if isinstance(change, RenameTable) else []
    names += [(change.with_database, change.with_table)] if isinstance(change, ExchangePartition) else []
    return [(d.lower(), t.lower()) for d, t in names]


def _may_come_early(change: Change) -> bool:
    """Rows from before it read the same after it."""
    if isinstance(change, AddColumn):
        return change.column.default is None and change.column.default_known and change.column.nullable
    return isinstance(change, CreateTable)


def refuse_keys_in_two_partitions(changes: DataFrame, key: Sequence[str], name: str) -> None:
    """changes: what the window adds to a table's changelog. Raises OrderError (TWO_PARTITIONS)."""
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
        f"{worst['n']} keys of {name} have changes in {_said(tuple(worst['one']))} and in {_said(tuple(worst['other']))} "
        f"in one hour, the first in {hour_of}: offsets do not order them",
        code="TWO_PARTITIONS",
        remedy="rows are not spread by the primary key alone, or an update changed a key: have the table's changes sent to one partition; "
        f"{DOCS}",
    )


def _said(place: TopicPartition) -> str:
    return str(Coordinates(*place))
