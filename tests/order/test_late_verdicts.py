"""Verdicts on late events, against a loop over the events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.searches import examples
from tidelake.order.late.facts import READ, facts
from tidelake.order.late.verdicts import VERDICTS, verdicts

HOUR = "2026-01-05T10"
KEYS = {1: [0], 2: [0], 3: [2, 0]}  # schema 4 has no key
WIDTH = {1: 2, 2: 3, 3: 3, 4: 2}
STEPS = [("t", 0, [3, 6]), ("t", 1, [2])]
WORDS = pa.dictionary(pa.int32(), pa.string())
LONGS = ("offset", "commit_ts", "row_schema", "before_schema")
TYPES = {**dict.fromkeys(LONGS, pa.int64()), "partition": pa.int32(), "ordinal": pa.int32()}
TYPES |= {"after": pa.list_(pa.binary()), "before": pa.list_(pa.binary())}
EVENTS = pa.schema([(name, TYPES.get(name, WORDS)) for name in READ])
Fact = tuple[Any, ...]


@st.composite
def event(draw: st.DrawFn) -> dict[str, Any]:
    """A row event; its old image may be of another schema, or be without the key."""
    schema = draw(st.integers(1, 4))
    old_schema = draw(st.sampled_from([schema, schema, 4, 3]))
    op = draw(st.sampled_from(["insert", "update", "upsert", "delete"]))

    def image(of: int) -> list[bytes | None]:
        return draw(st.lists(st.sampled_from([None, b"", b"a", b"ab"]), min_size=WIDTH[of], max_size=WIDTH[of]))

    after = None if op == "delete" else image(schema)
    before = image(old_schema) if op == "delete" or (op == "update" and draw(st.booleans())) else None
    return {
        "hour": HOUR,
        "topic": "t",
        "partition": draw(st.integers(0, 2)),
        "offset": draw(st.integers(0, 9)),
        "ordinal": draw(st.integers(0, 1)),
        "commit_ts": draw(st.integers(1, 2)),
        "database": "d",
        "table": draw(st.sampled_from("ku")),
        "op": op,
        "row_schema": None if after is None else schema,
        "before_schema": None if before is None else old_schema,
        "after": after,
        "before": before,
    }


def key_of(image: Sequence[bytes | None] | None, schema: int | None) -> Fact | None:
    return None if image is None or schema not in KEYS else tuple(image[n] for n in KEYS[schema])


def facts_of(e: dict[str, Any], late: bool, bare: Counter[Fact]) -> Iterator[tuple[Fact, Fact | None]]:
    """(fact, row that it is about) of an event. bare: how many equal events of its replay epoch came before, of tables without a key."""
    name = (e["table"], e["commit_ts"])
    after, before = (None if e[side] is None else tuple(e[side]) for side in ("after", "before"))
    if e["row_schema"] not in KEYS and e["before_schema"] not in KEYS:
        says = (*name, e["op"], after, before)
        epoch = sum(offset <= e["offset"] for t, p, steps in STEPS if (t, p) == (e["topic"], e["partition"]) for offset in steps)
        bare[*says, e["partition"], epoch] += 1
        yield ("bare", *says, bare[*says, e["partition"], epoch]), None
        return
    if after is not None:
        yield ("after", *name, e["row_schema"], after), (*name, key_of(after, e["row_schema"]) or ())
    if e["op"] == "delete" if late else before is not None:
        gone = (*name, key_of(before, e["before_schema"]) or key_of(after, e["row_schema"]) or ())
        yield ("gone", *gone), gone


def expected(late: list[dict[str, Any]], published: list[dict[str, Any]]) -> Counter[Fact]:
    of_late, of_published = Counter[Fact](), Counter[Fact]()
    said = [f for e in published for f in facts_of(e, False, of_published)]
    facts, rows = {fact for fact, _ in said}, {row for _, row in said if row is not None}
    out = Counter[Fact]()
    for e in late:
        for fact, row in facts_of(e, True, of_late):
            out[e["partition"], e["offset"], e["ordinal"], "replay" if fact in facts else "conflict" if row in rows else "late"] += 1
    return out


def by_place(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One event for each place, in order."""
    return [e for _, e in sorted({(e["partition"], e["offset"], e["ordinal"]): e for e in events}.items())]


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(event(), max_size=12), st.lists(event(), max_size=12), st.data())
def test_verdicts_are_those_of_a_loop_over_all_events(late: list[Any], published: list[Any], data: st.DataObject) -> None:
    late, published = by_place(late), by_place(published)
    again = data.draw(st.lists(st.sampled_from(published), max_size=6)) if published else []
    late = by_place([*late, *again])
    tables = [pa.Table.from_pylist(data.draw(st.permutations(side)), schema=EVENTS) for side in (late, published)]
    events, known = (facts(t, KEYS, (7, 9), late=n == 0) for n, t in enumerate(tables))
    found = verdicts(events, known, STEPS)
    places = [np.asarray(events.column(c)).tolist() for c in ("partition", "offset", "ordinal")]
    assert Counter(zip(*places, (VERDICTS[v] for v in found.tolist()), strict=True)) == expected(late, published)
