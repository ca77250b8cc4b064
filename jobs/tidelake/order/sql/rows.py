"""Row events of a window to typed, deduplicated changelog rows of one table, as one lazy frame (docs/architecture.md 8.2).

There is one shuffle: rows are distributed by the bucket of their key, for both deduplication and the write.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import CATALOG, EVENT
from tidelake.decode.late_types import PROTOCOLS, late_text
from tidelake.history.ddl.column_types import MysqlType, lake_type
from tidelake.history.event import RowSchema
from tidelake.history.incarnations import Column, Incarnation, Name
from tidelake.history.ordering import CLASS
from tidelake.history.projection import CellPlace, Projection, lived, project
from tidelake.history.window import same_name
from tidelake.lake.tables import kept, lake_column, value_rules
from tidelake.order.change_sequence import ChangeSequence
from tidelake.spark.spread import bucket_and, by_bucket
from tidelake.spark.sql_casts import NAMES_SENT, CastRules, cast, converted, literal, losses, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AT = ("topic", "partition", "offset", "ordinal")
_SIDES = ("after", "before")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    """What is known of one table's rows in a window. names: as sent, each with the interval in which it belongs to this table."""

    feed: Feed
    incarnation: Incarnation
    names: tuple[Name, ...]
    row_schemas: tuple[RowSchema, ...]
    bucket: str | None  # the changelog column that rows are bucketed by
    buckets: int
    hours: int  # from the first to the last commit ts
    sequence: ChangeSequence
    few: bool = False  # one task takes all rows
    images: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())  # schemas after changes, schemas of deletes

    @property
    def projections(self) -> list[Projection]:
        """Return all columns that existed in the window, except those that the feed drops."""
        known = {c.id for c in kept(self.feed, self.incarnation, lived(self.incarnation))}
        return [p for p in project(self.incarnation, self.row_schemas) if p.column.id in known]

    @property
    def key_only_deletes(self) -> bool:
        """Whether deletes lack columns that other changes have (`delete-only-output-handle-key-columns`; no message states the option)."""
        after, deletes = self.images
        alive = {c.id for c in self.incarnation.columns}
        carried = [{place.row_schema for place in p.places} for p in self.projections if p.column.id in alive]
        return any(not deletes <= row_schemas for row_schemas in carried if not after or after & row_schemas)

    def rules(self, column: Column) -> CastRules:
        """Return how a column's text becomes a value."""
        values = value_rules(self.feed, self.incarnation, column)
        return CastRules(time_zone=self.feed.time_zone, values=values, names_sent=self.feed.protocol in NAMES_SENT)


def sent_names(incarnation: Incarnation, sent: Sequence[tuple[str, str]]) -> tuple[Name, ...]:
    """Return the names in messages that belong to this table, each with its interval."""
    return tuple(
        Name(database=d, table=t, after_ts=n.after_ts, until_ts=n.until_ts)
        for n in incarnation.names
        for d, t in sent
        if same_name(d, n.database) and same_name(t, n.table)
    )


def of_table(rows: DataFrame, names: Sequence[Name]) -> DataFrame:
    """Return the rows sent under these names, each in its interval."""
    return rows.where(" OR ".join(_in_interval(n) for n in names) or "false")


def at_once(rows: DataFrame, table: TableRows) -> DataFrame:
    """Put few rows into one partition, so that deduplication and write need no shuffle: planning one costs more than the rows."""
    return rows.coalesce(1) if table.few else rows


def _in_interval(n: Name) -> str:
    until = "" if n.until_ts is None else f" AND commit_ts <= {n.until_ts}"
    return f"(database = {literal(n.database)} AND table = {literal(n.table)} AND commit_ts > {n.after_ts}{until})"


def typed(rows: DataFrame, table: TableRows) -> DataFrame:
    """Return events with typed columns.

    Added columns: `a` and `b` (structs of typed columns `c<id>` after and before), `key_<id>` (cells of the key that an event belongs to),
    `moved` (an update of the key), `class`, `partial` (only the handle was sent), and the counters `<one of casts.LOSSES>_<id>` of the
    columns where something may be lost.
    """
    projections = table.projections
    values = with_values(rows, table)
    key = table.incarnation.key
    same = " AND ".join(f"a{k} <=> b{k}" for k in key) or "true"
    classes = " ".join(f"WHEN {literal(op)} THEN {n}" for op, n in CLASS.items())
    counters = [f"{sql} AS {name}" for p in projections for name, sql in _lost(p, table).items()]
    return values.selectExpr(
        *AT,
        "op",
        "commit_ts",
        f"CASE op {classes} END AS class",
        f"named_struct({_struct(projections, 'a')}) AS a",
        f"named_struct({_struct(projections, 'b')}) AS b",
        *(f"IF(op = 'delete', b{k}, a{k}) AS key_{k}" for k in key),
        f"coalesce(op = 'update' AND before_schema IS NOT NULL AND NOT ({same}), false) AS moved",
        "before_schema IS NOT NULL AS has_before",
        "coalesce(handle_only, false) AS partial",
        *(["replay_epoch", "content"] if "replay_epoch" in values.columns else []),
        *counters,
    )


def with_values(rows: DataFrame, table: TableRows) -> DataFrame:
    """Add `a<id>` and `b<id>`, the cells of columns after and before, and `va<id>` and `vb<id>`, their values."""
    from pyspark.sql import functions as F

    projections = table.projections
    images = ((p, side) for p in projections for side in _SIDES)
    cells = rows.selectExpr("*", *(f"{_masked(_cell(p, side), p, table)} AS {side[0]}{p.column.id}" for p, side in images))
    if late := {name: F.expr(sql) for p in projections for name, sql in late_cells(p, table).items()}:
        cells = cells.withColumns(late)
    return cells.selectExpr("*", *(f"{_value(p, table, side)} AS v{side[0]}{p.column.id}" for p in projections for side in _SIDES))


def deduplicated(events: DataFrame, table: TableRows) -> DataFrame:
    """Keep one of each change (history.ordering.deduplicated).

    A whole event goes before a partial one, then the one with the lowest coordinates. In each bucket the events are sorted by commit ts, as
    the changelog keeps them: the sort compares numbers before keys, and the write uses the same order.

    If offsets order the feed, repeats cannot be told from changes: every event is kept, in no order.
    """
    from pyspark.sql import Window as Over
    from pyspark.sql import functions as F

    identity = ["commit_ts", *(f"key_{k}" for k in table.incarnation.key), "class"]
    if not table.incarnation.key and not table.feed.by_offsets:
        of_epoch = Over.partitionBy("content", "commit_ts", "op", "topic", "partition", "replay_epoch").orderBy("offset", "ordinal")
        events = events.withColumn("nth", F.row_number().over(of_epoch))
        identity = ["commit_ts", "content", "op", "nth"]
    distributed = events
    if table.bucket:
        number = next(c.id for c in table.incarnation.columns if c.lake_name == table.bucket)
        of = f"IF(op = 'delete', b.c{number}, a.c{number})"
        distributed = events.withColumn("_bucket", F.expr(f"{CATALOG}.system.bucket({table.buckets}, {of})"))
        distributed = distributed if table.few else by_bucket(distributed, table.buckets)
        identity = bucket_and(identity, table.buckets, None if table.few else events.sparkSession)
    if table.feed.by_offsets:
        return distributed
    copies = Over.partitionBy(*identity).orderBy("partial", *AT)
    return distributed.withColumn("_copy", F.row_number().over(copies)).where("_copy = 1")


def changes(events: DataFrame, table: TableRows, names: dict[int, str]) -> DataFrame:
    """Return changelog rows. An update of the key becomes a delete and an insert; an upsert becomes UPDATE_AFTER.

    names: source column id → the changelog's column.
    """
    exploded = events.selectExpr(
        *AT,
        "commit_ts",
        "partial",
        """inline(CASE
            WHEN op = 'insert' THEN array(named_struct('t', 'INSERT', 'v', a))
            WHEN op = 'upsert' THEN array(named_struct('t', 'UPDATE_AFTER', 'v', a))
            WHEN op = 'delete' THEN array(named_struct('t', 'DELETE', 'v', b))
            WHEN moved THEN array(named_struct('t', 'DELETE', 'v', b), named_struct('t', 'INSERT', 'v', a))
            WHEN has_before THEN array(named_struct('t', 'UPDATE_BEFORE', 'v', b), named_struct('t', 'UPDATE_AFTER', 'v', a))
            ELSE array(named_struct('t', 'UPDATE_AFTER', 'v', a)) END)""",
    )
    return exploded.selectExpr(
        *(f"v.c{p.column.id} AS {quote(names[p.column.id])}" for p in table.projections if p.column.id in names),
        "t AS _change_type",
        f"{table.sequence.sql('t')} AS _change_seq",
        "commit_ts AS _commit_ts",
        "timestamp_millis(shiftright(commit_ts, 18)) AS _commit_at",
        f"'{EVENT}' AS _origin",
        "topic AS _topic",
        "partition AS _kafka_partition",
        "offset AS _offset",
        "ordinal AS _ordinal",
        "partial AND t != 'DELETE' AS _partial",
    )


def _struct(projections: Sequence[Projection], side: str) -> str:
    """Struct by column id: several columns of a window can have the same name, one after the other."""
    return ", ".join(f"'c{p.column.id}', v{side}{p.column.id}" for p in projections)


def _cell(p: Projection, side: str) -> str:
    """The raw cell. If the old image of an update lacks a column, its cell is the one after (docs/reference/protocols.md 5.4)."""
    after = f"get(after, {_position(p.places, 'row_schema')})"
    if side == "after":
        return after
    position = _position(p.places, "before_schema")
    return f"IF({position} IS NOT NULL, get(before, {position}), IF(op = 'update', {after}, NULL))"


def _masked(cell: str, p: Projection, table: TableRows) -> str:
    """Apply masks that need no secret, again where decode did it; hashes are made before (order_masks)."""
    mask, mysql = table.rules(p.column).values.mask, p.column.type
    if mask == "null":
        return "CAST(NULL AS BINARY)"
    if mask is None or not (size := re.fullmatch(r"truncate\((\d+)\)", mask)):
        return cell
    return f"substring({cell}, 1, {size[1]})" if mysql.is_binary else f"CAST(substring(CAST({cell} AS STRING), 1, {size[1]}) AS BINARY)"


def late_cells(p: Projection, table: TableRows) -> dict[str, str]:
    """Return SQL for the canonical text of cells whose type the messages did not state, by the cells' names."""
    if table.feed.protocol not in PROTOCOLS or table.rules(p.column).values.mask is not None:
        return {}
    columns = {s.id: s.columns for s in table.row_schemas}
    bare = [place for place in p.places if columns[place.row_schema][place.position].type is None]
    out = dict[str, str]()
    for name, row_schema in ((f"a{p.column.id}", "row_schema"), (f"b{p.column.id}", "coalesce(before_schema, row_schema)")):
        texts = ((place, late_text(name, place.type, table.feed.time_zone)) for place in bare)
        cases = " ".join(f"WHEN {row_schema} = {place.row_schema}{_bounds(place)} THEN {text}" for place, text in texts if text)
        out |= {name: f"CASE {cases} ELSE {name} END"} if cases else {}
    return out


def _position(places: Sequence[CellPlace], row_schema: str) -> str:
    cases = " ".join(f"WHEN {row_schema} = {p.row_schema}{_bounds(p)} THEN {p.position}" for p in places)
    return f"CASE {cases} END" if cases else "CAST(NULL AS INT)"


def _bounds(p: CellPlace) -> str:
    """SQL condition on the commit ts, for schemas with several places; -1 is before every row."""
    low = f" AND commit_ts > {p.after_ts}" if p.after_ts >= 0 else ""
    return low + (f" AND commit_ts <= {p.until_ts}" if p.until_ts is not None else "")


def _value(p: Projection, table: TableRows, side: str) -> str:
    """The typed value, in the column's last type; cells from before a MODIFY are read in their type of that time."""
    cell, rules = f"{side[0]}{p.column.id}", table.rules(p.column)
    to = lake_column(table.feed, table.incarnation, p.column).type
    default = _converted(cell, p.column.type, to, rules)
    others = [place for place in p.places if _other(place.type, p.column.type, rules)]
    cases = " ".join(f"WHEN {_then(place)} THEN {_converted(cell, place.type, to, rules)}" for place in others)
    return f"CASE {cases} ELSE {default} END" if cases else default


def _other(then: MysqlType, now: MysqlType, rules: CastRules) -> bool:
    return cast("x", then, rules) != cast("x", now, rules)


def _then(p: CellPlace) -> str:
    return f"coalesce(row_schema, before_schema) = {p.row_schema}{_bounds(p)}"


def _converted(cell: str, then: MysqlType, to: str, rules: CastRules) -> str:
    return converted(cast(cell, then, rules), lake_type(then, rules.values), to)


def counters(table: TableRows) -> list[str]:
    """Return the names of the counters that `typed` adds."""
    return [name for p in table.projections for name in _lost(p, table)]


def _lost(p: Projection, table: TableRows) -> dict[str, str]:
    """Counters of a column: name → SQL for how many of a row's two cells count."""
    rules, mysql, k = table.rules(p.column), p.column.type, p.column.id
    a, b = (losses(f"{s}{k}", f"v{s}{k}", mysql, rules) for s in "ab")
    return {f"{kind}_{k}": f"CAST({a[kind]} AS INT) + CAST({b[kind]} AS INT)" for kind in a}
