"""Groups of row events, against a loop over the rows."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelake.order.observed_source import PLACES, ObservedJob, PlaceRules, groups_of, merged
from tidelake.order.repeated_offsets import Again

HOURS = ("2026-01-05T10", "2026-01-05T11", "2026-01-05T12")
AGAIN = Again(hour=HOURS[1], topic="a", partition=0, offsets=((2, 4), (7, 7)))
WORDS = pa.dictionary(pa.int32(), pa.string())
EVENTS = pa.schema(
    [
        *((name, WORDS) for name in ("hour", "topic", "op", "database", "table")),
        *((name, pa.int64()) for name in ("offset", "commit_ts", "row_schema", "before_schema")),
        ("partition", pa.int32()),
        ("ordinal", pa.int32()),
    ]
)
EVENT = st.fixed_dictionaries(
    {
        "hour": st.sampled_from(HOURS),
        "topic": st.sampled_from("ab"),
        "partition": st.integers(0, 1),
        "offset": st.integers(0, 9),
        "ordinal": st.integers(0, 3),
        "op": st.sampled_from(["insert", "update", "delete"]),
        "commit_ts": st.none() | st.integers(-2, 40),
        "database": st.just("d"),
        "table": st.sampled_from("tu"),
        "row_schema": st.none() | st.integers(1, 2),
        "before_schema": st.none() | st.integers(1, 2),
    }
)


def place(event: dict[str, Any], job: ObservedJob) -> str:
    ts = event["commit_ts"]
    if ts is None:
        return "undated"
    if ts < 0:
        return "huge"
    if ts > job.rules.resolved_ts:
        return "waiting"
    if ts > job.rules.applied_ts:
        return "window"
    if event["hour"] not in job.rules.new:
        return "published"
    return "seeded" if ts <= job.rules.seeded_ts else "late"


def expected(events: list[dict[str, Any]], job: ObservedJob) -> list[dict[str, Any]]:
    groups = defaultdict[tuple[Any, ...], list[dict[str, Any]]](list)
    for e in events:
        if any(a.has(e) for a in job.rules.again):
            continue
        at = (e["hour"], e["topic"], e["partition"]) if job.by_offsets else (None, None, None)
        groups[e["database"], e["table"], e["row_schema"], e["before_schema"], PLACES.index(place(e, job)), *at].append(e)
    out = []
    for (database, table, row_schema, before_schema, number, hour, topic, partition), mine in groups.items():
        ts = [e["commit_ts"] for e in mine if e["commit_ts"] is not None]
        out.append(
            {
                "database": database,
                "table": table,
                "row_schema": row_schema,
                "before_schema": before_schema,
                "place": number,
                "hour": hour,
                "topic": topic,
                "partition": partition,
                "rows": len(mine),
                "deletes": sum(e["op"] == "delete" for e in mine),
                "first_ts": min(ts, default=None),
                "last_ts": max(ts, default=None),
                "first_offset": min(e["offset"] for e in mine),
                "last_offset": max(e["offset"] for e in mine),
                "last_ordinal": max(e["ordinal"] for e in mine),
            }
        )
    return sorted(out, key=str)


@settings(max_examples=60)
@given(st.lists(st.lists(EVENT, max_size=12), max_size=4), st.booleans(), st.booleans())
def test_groups_of_files_are_those_of_a_loop_over_their_rows(files: list[list[dict[str, Any]]], by_offsets: bool, again: bool) -> None:
    job = ObservedJob(
        events="",
        parts=[],
        rules=PlaceRules(again=[AGAIN] if again else [], new=list(HOURS[1:]), applied_ts=20, resolved_ts=30, seeded_ts=5),
        by_offsets=by_offsets,
    )
    tables = [pa.Table.from_pylist(f, schema=EVENTS) for f in files]
    found = merged(merged([groups_of(t, job)]) for t in tables).to_pylist()
    assert sorted(found, key=str) == expected([e for f in files for e in f], job)
