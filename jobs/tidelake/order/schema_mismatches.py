"""Rows that fit no schema of their table, or whose table is not defined (window.SchemaMismatch). They are put aside and need a decision.

A row fits no schema if it fits its table neither before nor after any statement. The rows form groups: rows of one hour with the same name
and schema, so they lack the same statement. The coordinates of a group's first row identify it. The document of a cut's mismatches is
written before the cut, so it also shows those that block the window.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, TypeAdapter

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import mismatches, mismatches_key
from tidelake.errors import SCHEMA_MISMATCH, UNDEFINED_TABLE, Coordinates, OrderError
from tidelake.history.window import SchemaMismatch
from tidelake.io.documents import Document, parsed
from tidelake.io.storage import Store
from tidelake.io.texts import plural
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut_documents import next_seq
from tidelake.lake.cuts import lineage, published
from tidelake.lake.decisions import Rejected, by_decision
from tidelake.lake.opened import Lake
from tidelake.land.store.landed import read_landed
from tidelake.land.store.manifest import newest
from tidelake.order.event_keys import event_keys
from tidelake.order.mismatch_reader import GROUPS, MismatchJob, MismatchReader, merged
from tidelake.order.observed_tables import WindowRows
from tidelake.order.rows_aside import RowsAside
from tidelake.spark.spread import in_parts
from tidelake.tso import show

_NAMED = 10  # tables that an error names


class MismatchGroup(BaseModel):
    """Rows of one hour that are put aside together, identified by the first one. first_ts: their lowest commit ts (TSO)."""

    hour: str
    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    first_ts: int
    rows: int
    table: str
    error: str
    code: str = SCHEMA_MISMATCH

    def rejected(self) -> Rejected:
        """Return the group in the form of the quarantine."""
        at = Coordinates(self.topic, self.partition, self.offset)
        return Rejected(
            hour=self.hour,
            at=at,
            timestamp_ms=self.timestamp_ms,
            code=self.code,
            error=self.error,
            commit_ts=self.first_ts,
            rows=self.rows,
            table=self.table,
        )


class Aside(NamedTuple):
    """Result of putting rows aside.

    Attributes:
        seen: The window's rows without mismatches.
        rows: Number of mismatches by code.
        accepted: What the cut records about mismatches whose loss is accepted.
        places: Which rows they are.
        tables: Number of mismatches by table.
    """

    seen: WindowRows
    rows: dict[str, int]
    accepted: list[str]
    places: list[RowsAside]
    tables: dict[str, int] = {}  # noqa: RUF012 - a NamedTuple's default


class _Groups(Document):
    groups: list[MismatchGroup]


_OF_0_1 = TypeAdapter(list[MismatchGroup])  # the whole document, as 0.1.0 wrote it


def put_aside(lake: Lake, events: LakeTable, hours: Sequence[str], seen: WindowRows, found: Sequence[SchemaMismatch], seq: int) -> Aside:
    """Take the mismatches out of the window's rows and store their groups.

    Args:
        lake: The feed's lake.
        events: The events table; read only if there are mismatches.
        hours: Its hours to read.
        seen: The window's rows.
        found: The mismatches.
        seq: Number of the next cut.

    Raises:
        OrderError: SCHEMA_MISMATCH or UNDEFINED_TABLE, at the first row: a group has no decision and the feed's policy is `on_reject =
            "block"`.
    """
    feed, store = lake.feed, lake.store
    groups = _groups(lake, events, hours, seen, found) if found else []
    key = mismatches_key(feed.name, seq)
    if groups or store.head(key) is not None:  # an earlier attempt may have written groups that are solved now
        store.write(key, _Groups(groups=groups).model_dump_json(indent=1).encode())
    undecided, accepted = by_decision(store, feed.name, [g.rejected() for g in groups])
    if undecided and feed.policy.on_reject == "block":
        raise _refused(feed, undecided, found)
    rows, tables = Counter[str](), Counter[str]()
    for g in groups:
        rows[g.code] += g.rows
        tables[g.table] += g.rows
    said = [f"{r.at} ({plural(r.rows, 'row')})" for r in accepted]
    return Aside(seen.without(rows.total()), dict(rows), said, [_place(m) for m in found], dict(tables))


def mismatch_groups(catalog: LakeCatalog, store: Store, feed: str, hours: Sequence[str] | None = None) -> list[Rejected]:
    """Return the groups that published cuts lack and those that block the next window. hours: only groups of these hours."""
    keys = {o.key for o in store.objects(mismatches(feed))}
    if not keys:
        return []
    seqs = [*lineage(catalog, feed), next_seq(store, feed, max(published(catalog, feed), default=0))]
    documents = (parsed(store, key, store.read(key), _groups_of) for seq in sorted(seqs) if (key := mismatches_key(feed, seq)) in keys)
    return [g.rejected() for groups in documents for g in groups if hours is None or g.hour in hours]


def _groups_of(data: bytes) -> list[MismatchGroup]:
    return _OF_0_1.validate_json(data) if data.lstrip()[:1] == b"[" else _Groups.model_validate_json(data).groups


def raw_message(store: Store, feed: str, hour: str, at: Coordinates) -> tuple[bytes | None, bytes | None]:
    """Return (key, value) of a message as landed; (None, None) if it is not landed any more. Raises OrderError (LANDED_DAMAGED)."""
    manifest = newest(store, feed, hour)
    objects = [o for o in manifest.objects if (o.topic, o.partition) == (at.topic, at.partition)] if manifest else []
    for o in objects:
        if o.first <= (at.offset or 0) <= o.last and store.head(o.key) is not None:
            messages = pq.read_table(io.BytesIO(read_landed(store, feed, o)), columns=["offset", "key", "value"])
            for row in messages.filter(pc.field("offset") == at.offset).to_pylist():
                return row["key"], row["value"]
    return None, None


def _groups(lake: Lake, events: LakeTable, hours: Sequence[str], seen: WindowRows, found: Sequence[SchemaMismatch]) -> list[MismatchGroup]:
    """The groups, from one job of workers."""
    files = event_keys(events, hours)
    workers = lake.workers(files.values())
    parts, aside = in_parts(workers.tasks, files), [_place(m) for m in found]
    job = MismatchJob(events=events.table.location(), parts=parts, rules=seen.rules, aside=aside)
    grouped = merged([pa.Table.from_pylist(workers.rows(MismatchReader(job)), schema=GROUPS)]).to_pylist()
    said = {(m.observed_table.database, m.observed_table.table, m.observed_table.row_schema.id): m for m in reversed(found)}
    groups = [_group(lake.feed, r, said[r["database"], r["table"], r["sent"]]) for r in grouped]
    return sorted(groups, key=lambda g: (g.hour, g.topic, g.partition, g.offset))


def _group(feed: Feed, row: dict[str, Any], m: SchemaMismatch) -> MismatchGroup:
    mine = {name: row[name] for name in ("hour", "topic", "partition", "offset", "timestamp_ms", "first_ts", "rows")}
    return MismatchGroup(**mine, table=m.table, error=_error(feed, m, row["rows"], row["first_ts"]), code=_code(m))


def _place(m: SchemaMismatch) -> RowsAside:
    s = m.observed_table
    return RowsAside(database=s.database, table=s.table, row_schema=s.row_schema.id, first_ts=m.first_ts, until_ts=m.until_ts)


def _code(m: SchemaMismatch) -> str:
    return UNDEFINED_TABLE if m.unsaid else SCHEMA_MISMATCH


def _error(feed: Feed, m: SchemaMismatch, rows: int, first_ts: int) -> str:
    if m.unsaid:
        missing = ", ".join(f"{name} ({what})" for name, what in m.unsaid)
        return (
            f"neither tables.sql nor a CREATE TABLE statement defines {m.table}, and {feed.protocol} messages do not carry the types of "
            f"its columns: {missing}; {plural(rows, 'row')} from TSO {show(first_ts)} on"
        )
    return (
        f"the schema of {m.table}, before and after every statement, does not fit {plural(rows, 'row')} from TSO {show(first_ts)} on: "
        f"sent ({m.sent}), known ({m.known})"
    )


def _refused(feed: Feed, undecided: Sequence[Rejected], found: Sequence[SchemaMismatch]) -> OrderError:
    first, more = undecided[0], len(undecided) - 1
    if first.code == UNDEFINED_TABLE:
        raise _undefined(feed, first, undecided, found)
    columns = ", ".join(dict.fromkeys(name for m in found for name in m.columns))
    return OrderError(
        first.error + (f"; and {more} more such groups" if more else ""),
        code=SCHEMA_MISMATCH,
        at=first.at,
        remedy=f"nothing is lost: the window waits. Write the statement that added {columns} into ddl.jsonl, with a commit_ts before those "
        'rows, or correct tables.sql; `ddl = "ignore"` under [policy] in feed.toml takes columns from rows. `tidelake quarantine accept '
        f"--feed {feed.name}` continues without the rows",
    )


def _undefined(feed: Feed, first: Rejected, undecided: Sequence[Rejected], found: Sequence[SchemaMismatch]) -> OrderError:
    """Error that names all undefined tables, so that they can be defined in one go."""
    tables = list(dict.fromkeys(m.table for m in found if m.unsaid))
    others = f"; the same applies to {', '.join(tables[1:_NAMED])}{' …' if len(tables) > _NAMED else ''}" if len(tables) > 1 else ""
    known = [m.table for m in found if m.unsaid and m.known]
    again = (
        f"; {known[0]} is published with the types of its first messages: `tidelake redo` from then on uses the definition" if known else ""
    )
    return OrderError(
        first.error + others,
        code=UNDEFINED_TABLE,
        at=first.at,
        remedy=f"nothing is lost: the window waits. Write CREATE TABLE (SHOW CREATE TABLE prints it) of "
        f"{plural(len(tables), 'table')} into {feed.folder / 'tables.sql'}, as of before those rows, and run again{again}. `tidelake "
        f'quarantine accept --feed {feed.name}`, or [policy] on_reject = "publish_incomplete", continues without the rows',
    )
