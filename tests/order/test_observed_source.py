"""Groups of row events, against a loop over the rows."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.order.row_events import AGAIN, EVENT, EVENTS, HOURS, place
from tests.searches import examples
from tidelake.order.observed_source import PLACES, ObservedJob, PlaceRules, groups_of, merged


def expected(events: list[dict[str, Any]], job: ObservedJob) -> list[dict[str, Any]]:
    groups = defaultdict[tuple[Any, ...], list[dict[str, Any]]](list)
    for e in events:
        if any(a.has(e) for a in job.rules.again):
            continue
        at = (e["hour"], e["topic"], e["partition"]) if job.by_offsets else (None, None, None)
        groups[e["database"], e["table"], e["row_schema"], e["before_schema"], PLACES.index(place(e, job.rules)), *at].append(e)
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


@settings(max_examples=examples(60))
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
