"""Row events as a worker reads them, and where they lie, for tests of what groups them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tidelake.order.observed_source import PlaceRules
from tidelake.order.repeated_offsets import Again

HOURS = ("2026-01-05T10", "2026-01-05T11", "2026-01-05T12")
AGAIN = Again(hour=HOURS[1], topic="a", partition=0, offsets=((2, 4), (7, 7)))
WORDS = pa.dictionary(pa.int32(), pa.string())
EVENTS = pa.schema(
    [
        *((name, WORDS) for name in ("hour", "topic", "op", "database", "table")),
        *((name, pa.int64()) for name in ("offset", "commit_ts", "row_schema", "before_schema", "timestamp_ms")),
        ("partition", pa.int32()),
        ("ordinal", pa.int32()),
    ]
)
FIELDS = {
    "hour": st.sampled_from(HOURS),
    "topic": st.sampled_from("ab"),
    "partition": st.integers(0, 1),
    "offset": st.integers(0, 9),
    "ordinal": st.integers(0, 3),
    "timestamp_ms": st.none() | st.integers(0, 99),
    "op": st.sampled_from(["insert", "update", "delete"]),
    "commit_ts": st.none() | st.integers(-2, 40),
    "database": st.just("d"),
    "table": st.sampled_from("tu"),
    "row_schema": st.none() | st.integers(1, 2),
    "before_schema": st.none() | st.integers(1, 2),
}
EVENT = st.fixed_dictionaries(FIELDS)


def place(event: dict[str, Any], rules: PlaceRules) -> str:
    """Where a row event lies, one rule after the other."""
    ts = event["commit_ts"]
    if ts is None:
        return "undated"
    if ts < 0:
        return "huge"
    if ts > rules.resolved_ts:
        return "waiting"
    if ts > rules.applied_ts:
        return "window"
    if event["hour"] not in rules.new:
        return "published"
    return "seeded" if ts <= rules.seeded_ts else "late"
