"""Rows that wait for their table's schema (Simple, docs/reference/protocols.md 9.1): find them, check for the schema, hold back the
resolved ts.

Such a row is among the rejected messages, with its commit ts and the schema version that it names. The resolved ts stays below it until the
schema has come, its loss is accepted, or it has waited for `wait_hours`. After that it blocks like any message that is not decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from pydantic import BaseModel

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import table_schema_key
from tidelake.io.storage import Store
from tidelake.lake.catalog import LakeTable
from tidelake.lake.decisions import Rejected, undecided
from tidelake.lake.events import control_rows
from tidelake.tso import parse_hour, unwrap

CODE = "NO_TABLE_SCHEMA"


class WaitingFor(BaseModel):
    """A version of a table's schema that rows of an hour wait for. max_commit_ts: TSO of the last of these rows."""

    database: str
    table: str
    version: int
    rows: int
    max_commit_ts: int


def waiting_for(events: LakeTable, hour: str, snapshot_id: int) -> list[WaitingFor]:
    """Return the schemas that the rows of an hour wait for, sorted."""
    found: dict[tuple[str, str, int], WaitingFor] = {}
    columns = ["error_code", "database", "table", "schema_version", "commit_ts"]
    for row in control_rows(events, "rejected", [hour], columns, snapshot_id):
        if row["error_code"] == CODE:
            name = row["database"], row["table"], unwrap(row["schema_version"])
            before = found.get(name) or WaitingFor(database=name[0], table=name[1], version=name[2], rows=0, max_commit_ts=0)
            ts = max(before.max_commit_ts, row["commit_ts"])
            found[name] = before.model_copy(update={"rows": before.rows + 1, "max_commit_ts": ts})
    return [found[name] for name in sorted(found)]


def has_come(store: Store, feed: str, wanted: Iterable[WaitingFor]) -> bool:
    """Return whether a message has carried one of these schemas by now."""
    return any(store.head(table_schema_key(feed, w.database, w.table, w.version)) is not None for w in wanted)


def held_back(feed: Feed, store: Store, events: LakeTable, hours: Sequence[str], applied_ts: int, until: str) -> Rejected | None:
    """Return the first row after applied_ts, in these hours, that the resolved ts must stay below at the end of hour `until`."""
    open_ones, _ = undecided(store, events, feed.name, hours)
    waiting = [r for r in open_ones if waits(feed, r, until) and (r.commit_ts or 0) > applied_ts]
    return min(waiting, key=lambda r: r.commit_ts or 0, default=None)


def waits(feed: Feed, message: Rejected, until: str) -> bool:
    """Return whether the message is a row that may still wait at the end of hour `until`."""
    patience = timedelta(hours=feed.policy.wait_hours)
    return message.code == CODE and parse_hour(until) - parse_hour(message.hour) < patience
