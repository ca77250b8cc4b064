"""Rejected messages and the decisions about them. A decision is one object, written once."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pydantic import BaseModel

from tidelake.config.lake_paths import decisions
from tidelake.errors import Coordinates
from tidelake.io.documents import FORMAT, read_document
from tidelake.io.storage import Store
from tidelake.lake.catalog import LakeTable
from tidelake.lake.events import control_rows
from tidelake.spark.spread import THREADS

_PLACE = re.compile(r"(.+)\[(\d+)\]@(\d+)")
_COLUMNS = ["hour", "topic", "partition", "offset", "timestamp_ms", "commit_ts", "error_code", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A message that could not be decoded, or the first of `rows` rows that fit no table (order/schema_mismatches.py).

    commit_ts: for rows that fit no table, and for a row that waits for its schema. table: for rows that fit no table. raw_key, raw_value:
    only if requested.
    """

    hour: str
    at: Coordinates
    timestamp_ms: int | None
    code: str
    error: str
    commit_ts: int | None = None
    rows: int = 1
    table: str | None = None
    raw_key: bytes | None = None
    raw_value: bytes | None = None


class Acceptance(BaseModel, frozen=True):
    """Who accepted a loss, why and when. reason: empty if none was given; messages: coordinates, which are not in a decision's document."""

    by: str
    reason: str
    decided_at_ms: int
    messages: tuple[str, ...] = ()


def rejected(events: LakeTable, hours: Sequence[str], *, raw: bool = False) -> list[Rejected]:
    """Return the rejected messages of these hours, sorted by coordinates. raw: with key and value."""
    columns = [*_COLUMNS, "raw_key", "raw_value"] if raw else _COLUMNS
    rows = control_rows(events, "rejected", hours, columns)
    found = [
        Rejected(
            hour=r["hour"],
            at=Coordinates(r["topic"], r["partition"], r["offset"]),
            timestamp_ms=r["timestamp_ms"],
            code=r["error_code"],
            error=r["error"],
            commit_ts=r["commit_ts"],
            raw_key=r.get("raw_key"),
            raw_value=r.get("raw_value"),
        )
        for r in rows
    ]
    return sorted(found, key=lambda r: (r.at.topic, r.at.partition, r.at.offset or 0))


def undecided(store: Store, events: LakeTable, feed: str, hours: Sequence[str]) -> tuple[list[Rejected], list[Rejected]]:
    """Return (undecided rejected messages, those whose loss was accepted) of these hours."""
    return by_decision(store, feed, rejected(events, hours))


def by_decision(store: Store, feed: str, found: Sequence[Rejected]) -> tuple[list[Rejected], list[Rejected]]:
    """Return (undecided messages, those whose loss was accepted), in their order. Lists the decisions once; not at all without messages."""
    accepted = {o.key for o in store.objects(decisions(feed))} if found else set()
    return [r for r in found if decision_key(feed, r.at) not in accepted], [r for r in found if decision_key(feed, r.at) in accepted]


def acceptances(store: Store, feed: str, messages: Sequence[Coordinates]) -> list[Acceptance]:
    """Return the decisions about messages whose loss was accepted, one for each person and reason, in the order of the first message.

    Reads a document a message. decided_at_ms is that of the last decision.
    """
    out = dict[tuple[str, str], Acceptance]()
    for at, said in zip(messages, _documents(store, feed, messages), strict=True):
        who = (said.by, said.reason)
        before = out.get(who, said)
        decided_at_ms = max(before.decided_at_ms, said.decided_at_ms)
        out[who] = said.model_copy(update={"decided_at_ms": decided_at_ms, "messages": (*before.messages, str(at))})
    return list(out.values())


def named(accepted: Sequence[str]) -> list[Coordinates]:
    """Return the coordinates of messages as a cut names them: `topic[partition]@offset`, then the number of rows if they fit no table."""
    return [Coordinates(m[1], int(m[2]), int(m[3])) for text in accepted if (m := _PLACE.match(text))]


def decision_key(feed: str, at: Coordinates) -> str:
    """Return the key of the decision about a message."""
    return f"{decisions(feed)}{at.topic}/{at.partition}/{at.offset}.json"


def accept(store: Store, feed: str, message: Rejected, who: str, reason: str) -> bool:
    """Record that the loss of a message is accepted. Returns False if it was recorded before."""
    said = {
        "format": FORMAT,
        "decision": "accept",
        "topic": message.at.topic,
        "partition": message.at.partition,
        "offset": message.at.offset,
        "hour": message.hour,
        "code": message.code,
        "error": message.error,
        "rows": message.rows,
        "by": who,
        "reason": reason,
        "decided_at_ms": int(time.time() * 1000),
    }
    return store.put_if_absent(decision_key(feed, message.at), json.dumps(said, ensure_ascii=False, indent=1).encode())


def _documents(store: Store, feed: str, places: Sequence[Coordinates]) -> list[Acceptance]:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(lambda place: read_document(store, decision_key(feed, place), Acceptance), places))
