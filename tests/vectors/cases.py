"""Cases of ticdc_encoders.json: one logical event, or one stream of them, as the encoders of all protocols wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.protocols import vectors
from tests.vectors.carries import ENUM, SET, Facts, PlainEvent, Rule, Vector, rules
from tidelake.history.event import Event
from tidelake.protocols import decoder

MEMBERS = ("kind", "op", "commit_ts", "database", "table", "columns", "old_columns", "ddl")
SIDES = ("columns", "old_columns")
OTHER_RUNS = {"compress/ddl": "the statement ran once for every changefeed: each has a commit ts of its own"}
_TEXTS = (15, 249, 250, 251, 252, 253, 254)
_RICHEST = ("open", "simple-json", "simple-avro", "canal-json", "avro", "craft", "csv", "debezium", "canal", "maxwell")

Rules = Callable[[Vector, str | None], list[Rule]]


@dataclass(frozen=True, slots=True)
class Found:
    """A vector with what our decoder makes of it."""

    vector: Vector
    events: list[PlainEvent]


@cache
def cases() -> dict[str, list[Vector]]:
    """The vectors of every case."""
    found: dict[str, list[Vector]] = {}
    for vector in (v for protocol in vectors.PROTOCOLS for v in vectors.load(protocol) if "case" in v):
        found.setdefault(vector["case"], []).append(vector)
    return found


def differences(case: str, chosen: Rules = rules) -> list[str]:
    """Where the vectors of a case are not the same event up to the rules: one line each."""
    found, facts = _found(case)
    best = min(found, key=lambda f: (_losses(f), _RICHEST.index(f.vector["protocol"]), -len(f.events)))
    alike = [f for f in found if all(f.vector.get(n) == best.vector.get(n) for n in ("protocol", "options", "container"))]
    stream = [e for f in (alike if len(best.events) > 1 else [best]) for e in f.events]
    out = []
    for f in found:
        start = Found(f.vector, f.events[:1])
        places = range(len(stream) - len(f.events) + 1)
        begins = [at for at in places if not _unlike(start, stream[at : at + 1], best.vector, facts, chosen)] or [0]
        tried = [_unlike(f, stream[at : at + len(f.events)], best.vector, facts, chosen) for at in begins]
        out += [f"{f.vector['protocol']} {f.vector['name']}: {line}" for line in min(tried, key=len)]
    return out


@cache
def _found(case: str) -> tuple[list[Found], Facts]:
    decoded = [(vector, _decoded(vector)) for vector in cases()[case]]
    return [Found(vector, [_plain(e, case) for e in events]) for vector, events in decoded], _facts(decoded)


def _losses(found: Found) -> int:
    return max(len(rules(found.vector, e["op"])) for e in found.events)


def _unlike(found: Found, want: Sequence[PlainEvent], best: Vector, facts: Facts, chosen: Rules) -> list[str]:
    if len(want) != len(found.events):
        return [f"{len(found.events)} events, the stream has {len(want)}"]
    out: list[str] = []
    for got, other in zip(found.events, want, strict=True):
        mine, theirs = got, other
        for rule in chosen(best, other["op"]) + chosen(found.vector, other["op"]):
            mine, theirs = rule.reduce(mine, facts), rule.reduce(theirs, facts)
        out += [f"{m}: {mine[m]!r}, but {theirs[m]!r}" for m in MEMBERS if m not in SIDES and mine[m] != theirs[m]]
        for side in SIDES:
            out += [f"{side} {line}" for line in _unlike_cells(mine[side], theirs[side])]
    return out


def _unlike_cells(mine: dict[str, Any] | None, theirs: dict[str, Any] | None) -> Iterator[str]:
    if mine is None or theirs is None or mine.keys() != theirs.keys():
        if mine != theirs:
            yield f"of {mine and list(mine)}, but {theirs and list(theirs)}"
        return
    for name, cell in mine.items():
        if not vectors.same_cell(cell, theirs[name]):
            yield f"{name}: {cell!r}, but {theirs[name]!r}"


def _decoded(vector: Vector) -> list[Event]:
    (key, value), context, read = vectors.record(vector), vectors.context(vector), decoder(vector["protocol"]).read
    return [e for part in vectors.parts(vector, value) for e in read(key, part, context)]


def _plain(event: Event, case: str) -> PlainEvent:
    plain = vectors.plain(event, dict.fromkeys(MEMBERS))
    plain |= {side: None if plain[side] is None else {name: cell for name, _, cell in plain[side]} for side in SIDES}
    return plain | ({"commit_ts": None} if case in OTHER_RUNS else {})


def _facts(decoded: list[tuple[Vector, list[Event]]]) -> Facts:
    """From what the vectors expect; the members of ENUM and SET from what our decoders found, where a protocol sends them."""
    expected = [e for vector, _ in decoded for e in vector["expected"].get("events", [vector["expected"]])]
    described = [c for e in expected for side in SIDES for c in e.get(side) or () if "type" in c]
    typed = {name: c for c in described for name in _spellings(c["name"])}
    row_schemas = [s for _, events in decoded for e in events for s in (e.row_schema, e.before_schema) if s is not None]
    worded = [c for c in described if c["type"] in (ENUM, SET) and "text" in c]
    return Facts(
        types={name: c["type"] for name, c in typed.items()},
        handle=frozenset(name for c in described if c.get("handle") for name in _spellings(c["name"])),
        texts=frozenset(name for name, c in typed.items() if c["type"] in _TEXTS and not c["flag"] & 1),
        elements={c.name: c.elements for s in row_schemas for c in s.columns if c.elements},
        words={(name, str(c["value"]).encode()): c["text"].encode() for c in worded for name in _spellings(c["name"])},
    )


def _spellings(name: str) -> tuple[str, str]:
    return name, vectors.avro_name(name)
