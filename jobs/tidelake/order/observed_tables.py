"""What rows a window has: names, schemas, counts, first and last commit ts, from one job of workers (observed_source)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from tidelake.config.feed import Feed
from tidelake.config.table_name import written
from tidelake.errors import OrderError
from tidelake.history.event import RowSchema
from tidelake.history.incarnations import Name
from tidelake.history.names import SentNames
from tidelake.history.window import ObservedTable, Window
from tidelake.lake.catalog import LakeTable
from tidelake.lake.events import control_rows
from tidelake.order.change_sequence import ChangeSequence, sequence_of
from tidelake.order.event_keys import event_keys
from tidelake.order.observed_source import OBSERVED, PLACES, ObservedJob, ObservedReader, PlaceRules, merged
from tidelake.order.offset_rules import TablePlaces
from tidelake.order.progress import WindowProgress
from tidelake.order.repeated_offsets import Again
from tidelake.spark.run_parts import Workers, WorkersFor
from tidelake.spark.spread import in_parts

_OBSERVED = ("database", "table", "row_schema", "before_schema", "rows", "first_ts", "last_ts")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRows:
    """Rows of the window with the same names and schemas. first_ts, last_ts: TSO; None for Avro deletes, which have no commit ts."""

    database: str
    table: str
    row_schema: int | None
    before_schema: int | None
    rows: int
    first_ts: int | None
    last_ts: int | None


@dataclass(frozen=True, kw_only=True)
class WindowRows:
    """The rows of a window.

    Attributes:
        groups: Groups of rows with the same names and schemas.
        schemas: Schemas by number.
        inside: Number of rows in the window.
        seeded: Rows at or before the export that the tables began with; the export has them already.
        late: Rows that arrived after the cut that covers them.
        waiting: Rows after the window.
        undated: Rows without a commit ts.
        repeated: Rows that the producer had sent before, by table name as sent.
        rules: Which rows are the window's, which are late, among others.
        late_from: Lowest commit ts of the late rows.
        late_names: Tables of the late rows, as sent.
        partitions: Where the window's rows come from, if the feed is ordered by offsets.
        sequence: How the window's changes are numbered.
    """

    groups: tuple[ObservedRows, ...]
    row_schemas: dict[int, RowSchema]
    inside: int
    seeded: int
    late: int
    waiting: int
    undated: int
    repeated: dict[str, int]
    rules: PlaceRules
    late_from: int
    late_names: list[tuple[str, str]]
    partitions: TablePlaces
    sequence: ChangeSequence

    @cached_property
    def sent(self) -> SentNames[tuple[str, str]]:
        """Every (database, table) that was sent."""
        return SentNames((d, t, (d, t)) for d, t in self._by_name)

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], list[ObservedRows]]:
        found = dict[tuple[str, str], list[ObservedRows]]()
        for g in self.groups:
            found.setdefault((g.database, g.table), []).append(g)
        return found

    def groups_of(self, names: Iterable[tuple[str, str]]) -> list[ObservedRows]:
        """Return the groups of rows that were sent under one of these names."""
        return [g for name in sorted(set(names)) for g in self._by_name.get(name, ())]

    @property
    def observed(self) -> list[ObservedTable]:
        """Return one entry per name and schema, for rows that have a commit ts."""
        return [
            ObservedTable(
                database=g.database, table=g.table, row_schema=self.row_schemas[s], first_ts=g.first_ts, last_ts=g.last_ts, rows=g.rows
            )
            for g in self.groups
            if (s := g.before_schema if g.row_schema is None else g.row_schema) is not None
            and g.first_ts is not None
            and g.last_ts is not None
        ]

    def without(self, rows: int) -> WindowRows:
        """Return a copy with so many rows less in the window."""
        return replace(self, inside=self.inside - rows)

    def rows_of(self, names: Sequence[Name]) -> int:
        """Return the approximate number of rows sent under these names."""
        return sum(g.rows for g in self._of(names))

    def schemas_of(self, names: Sequence[Name]) -> tuple[RowSchema, ...]:
        """Return the schemas of rows under these names."""
        ids = {i for g in self._of(names) for i in (g.row_schema, g.before_schema) if i is not None}
        return tuple(self.row_schemas[i] for i in sorted(ids))

    def images_of(self, names: Sequence[Name]) -> tuple[frozenset[int], frozenset[int]]:
        """Return (schemas of rows after a change, schemas of deleted rows) under these names."""
        mine = self._of(names)
        return (
            frozenset(g.row_schema for g in mine if g.row_schema is not None),
            frozenset(g.before_schema for g in mine if g.row_schema is None and g.before_schema is not None),
        )

    def _of(self, names: Sequence[Name]) -> list[ObservedRows]:
        return self.groups_of((n.database, n.table) for n in names)


def look(
    workers: WorkersFor,
    events: LakeTable,
    window: Window,
    done: WindowProgress,
    feed: Feed,
    seeded_ts: int = 0,
    repeated: Sequence[Again] = (),
) -> WindowRows:
    """Read the row events of the hours to scan and return what they are.

    Args:
        workers: Read the events' files.
        events: The events table.
        window: The window.
        done: The progress of the feed.
        feed: The feed.
        seeded_ts: TSO of the export that the last cut builds on, else 0.
        repeated: Rows of the window that the producer had sent before.

    Raises:
        OrderError: TSO_TOO_LARGE, NO_COMMIT_TS, TOO_MANY_POSITIONS.
        StorageError: TABLE_MOVED: a file of the events table is not in its folder.
    """
    files = event_keys(events, done.scan)
    reading = workers(files.values())
    rules = PlaceRules(
        again=list(done.again),
        new=[*done.changed, *done.hours],
        applied_ts=window.applied_ts,
        resolved_ts=window.resolved_ts,
        seeded_ts=seeded_ts,
        repeated=list(repeated),
    )
    parts = in_parts(reading.tasks, files)
    found = _groups(reading, ObservedJob(events=events.table.location(), parts=parts, rules=rules, by_offsets=feed.by_offsets))
    _refuse(found)
    places = ("window", "seeded", "late", "waiting", "undated")
    inside, seeded, late, waiting, undated = (sum(r["rows"] for r in found if r["place"] == p) for p in places)
    mine, behind = [r for r in found if r["place"] in ("window", "undated")], [r for r in found if r["place"] == "late"]
    return WindowRows(
        groups=tuple(ObservedRows(**{k: v for k, v in r.items() if k in _OBSERVED}) for r in mine),
        row_schemas=_row_schemas(events, done.scan),
        inside=inside,
        seeded=seeded,
        late=late,
        waiting=waiting,
        undated=undated,
        repeated=dict(_by_table(r for r in found if r["place"] == "repeated")),
        rules=rules,
        late_from=min((r["first_ts"] for r in behind), default=0),
        late_names=sorted({(r["database"], r["table"]) for r in behind}),
        partitions=_partitions(mine) if feed.by_offsets else {},
        sequence=sequence_of(
            min((r["first_offset"] for r in mine), default=0),
            max((r["last_offset"] for r in mine), default=0),
            max((r["last_ordinal"] for r in mine), default=0),
            by_arrival=feed.by_arrival,
        ),
    )


def _by_table(found: Iterable[dict[str, Any]]) -> Counter[str]:
    out = Counter[str]()
    for r in found:
        out[written(r["database"], r["table"])] += r["rows"]
    return out


def _partitions(found: list[dict[str, Any]]) -> TablePlaces:
    out: dict[tuple[str, str, str], set[tuple[str, int]]] = {}
    for r in found:
        out.setdefault((r["hour"], r["database"].lower(), r["table"].lower()), set()).add((r["topic"], r["partition"]))
    return {name: frozenset(where) for name, where in out.items()}


def _groups(workers: Workers, job: ObservedJob) -> list[dict[str, Any]]:
    if not job.parts:
        return []
    groups = merged([pa.Table.from_pylist(workers.rows(ObservedReader(job)), schema=OBSERVED)]).to_pylist()
    return [r | {"place": PLACES[r["place"]]} for r in groups]


def _refuse(found: list[dict[str, Any]]) -> None:
    huge = [r for r in found if r["place"] == "huge"]
    if huge:
        raise OrderError(f"a row of {huge[0]['database']}.{huge[0]['table']} has a commit ts of 2^63 or more", code="TSO_TOO_LARGE")
    undated = [r for r in found if r["place"] == "undated" and r["rows"] > r["deletes"]]
    if undated:
        raise OrderError(
            f"rows of {undated[0]['database']}.{undated[0]['table']} have no commit ts",
            code="NO_COMMIT_TS",
            remedy="set enable-tidb-extension=true in the changefeed's sink URI; a source that has none is ordered by its offsets: "
            '[watermark] from = "offsets" (docs/offsets.md)',
        )


def _row_schemas(events: LakeTable, hours: Sequence[str]) -> dict[int, RowSchema]:
    return {
        r["row_schema"]: RowSchema.from_json(r["columns"]) for r in control_rows(events, "row_schema", hours, ["row_schema", "columns"])
    }
