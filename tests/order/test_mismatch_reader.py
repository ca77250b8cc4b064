"""Groups of rows that fit no schema, against a loop over the rows."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.order.row_events import AGAIN, EVENTS, FIELDS, HOURS, place
from tests.searches import examples
from tidelake.order.mismatch_reader import GROUPS, MismatchJob, groups_of, merged
from tidelake.order.observed_source import PlaceRules
from tidelake.order.rows_aside import RowsAside

EVENT = st.fixed_dictionaries(FIELDS | {"hour": st.sampled_from(HOURS[:2]), "commit_ts": st.integers(17, 33)})
ASIDE = st.builds(
    RowsAside,
    database=st.just("d"),
    table=st.sampled_from("tu"),
    row_schema=st.integers(1, 2),
    first_ts=st.integers(18, 26),
    until_ts=st.none() | st.integers(26, 31),
)


def is_aside(event: dict[str, Any], a: RowsAside) -> bool:
    sent = event["before_schema"] if event["row_schema"] is None else event["row_schema"]
    inside = a.first_ts <= event["commit_ts"] and (a.until_ts is None or event["commit_ts"] <= a.until_ts)
    return (event["database"], event["table"], sent) == (a.database, a.table, a.row_schema) and inside


def expected(events: list[dict[str, Any]], job: MismatchJob) -> list[dict[str, Any]]:
    groups = defaultdict[tuple[Any, ...], list[dict[str, Any]]](list)
    for e in events:
        counts = not any(again.has(e) for again in job.rules.again)
        if counts and place(e, job.rules) == "window" and any(is_aside(e, a) for a in job.aside):
            sent = e["before_schema"] if e["row_schema"] is None else e["row_schema"]
            groups[e["hour"], e["database"], e["table"], sent].append(e)
    out = []
    for group, mine in groups.items():
        first = min(mine, key=lambda e: (e["topic"], e["partition"], e["offset"]))
        found = dict(zip(("hour", "database", "table", "sent"), group, strict=True))
        found |= {name: first[name] for name in ("topic", "partition", "offset", "timestamp_ms")}
        out.append(found | {"first_ts": min(e["commit_ts"] for e in mine), "rows": len(mine)})
    return out


def by_hour(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(groups, key=lambda g: (g["hour"], g["database"], g["table"], g["sent"]))


@settings(max_examples=examples(100))
@given(
    files=st.lists(st.lists(EVENT, min_size=9, max_size=30), min_size=1, max_size=3),
    aside=st.lists(ASIDE, min_size=1, max_size=4),
    again=st.booleans(),
)
def test_groups_of_files_are_those_of_a_loop_over_their_rows(
    files: list[list[dict[str, Any]]], aside: list[RowsAside], again: bool
) -> None:
    for n, e in enumerate(e for events in files for e in events):
        e |= {"offset": n * 7 % 97, "ordinal": 0}  # every message has its place
    rules = PlaceRules(again=[AGAIN] if again else [], new=list(HOURS[1:]), applied_ts=20, resolved_ts=30, seeded_ts=5)
    job = MismatchJob(events="", parts=[], rules=rules, aside=aside)
    found = merged(merged([groups_of(pa.Table.from_pylist(events, schema=EVENTS), job)]) for events in files)
    assert found.schema == GROUPS
    assert by_hour(found.to_pylist()) == by_hour(expected([e for events in files for e in events], job))
