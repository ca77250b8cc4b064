"""What each protocol cannot carry: the written table up to which all vectors of one case are the same event.

Every rule says what gets lost, for whom, when, and why, and reduces an event to what is left of it. `markdown` renders it for the docs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.protocols import vectors
from tests.protocols.untyped import DATES, DECIMAL

PlainEvent = dict[str, Any]  # kind, op, commit_ts, database, table, ddl; columns, old_columns: {name: cell} or None
Vector = dict[str, Any]

FLOAT, ENUM, SET = 4, 247, 248
JSON = ("open", "canal-json", "simple-json", "debezium", "maxwell", "canal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a case's vectors say of its columns, by their names as they are and as Avro spells them.

    types: codes of docs/reference/protocols.md 1.1. texts: columns of characters, not of bytes. elements: members of ENUM and SET columns.
    words: their numbers' names, by column and number, where no vector says the members.
    """

    types: dict[str, int]
    handle: frozenset[str]
    texts: frozenset[str]
    elements: dict[str, tuple[str, ...]]
    words: dict[tuple[str, bytes], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """lost: what the protocols do not carry. when: in words, "" for always. applies: of a vector and the row's op in the upstream.
    cases: whether cases show it; if not, tests of the protocol do."""

    lost: str
    protocols: tuple[str, ...]
    why: str
    reduce: Callable[[PlainEvent, Facts], PlainEvent]
    when: str = ""
    applies: Callable[[Vector, str | None], bool] = lambda vector, op: True
    cases: bool = True


def rules(vector: Vector, op: str | None) -> list[Rule]:
    """Those that hold for a vector of a row with this op; None: of another event."""
    return [r for r in RULES if vector["protocol"] in r.protocols and r.applies(vector, op)]


def markdown() -> str:
    """The table for docs/protocols.md."""
    lines = ["| protocol | does not carry | when | why |", "|---|---|---|---|"]
    for protocol in vectors.PROTOCOLS:
        of_protocol = [r for r in RULES if protocol in r.protocols]
        lines += [f"| {protocol} | {r.lost} | {r.when or 'always'} | {r.why} |" for r in of_protocol]
        if not of_protocol:
            lines.append(f"| {protocol} | – | | |")
    return "\n".join(lines) + "\n"


def _option(name: str, value: Any = True) -> Callable[[Vector, str | None], bool]:
    return lambda vector, op: vectors.options(vector).get(name) == value


def _without(name: str) -> Callable[[Vector, str | None], bool]:
    return lambda vector, op: not vectors.options(vector).get(name)


def _of(*ops: str) -> Callable[[Vector, str | None], bool]:
    return lambda vector, op: op in ops


def _no_commit_ts(event: PlainEvent, facts: Facts) -> PlainEvent:
    return event | {"commit_ts": None}


def _upsert(event: PlainEvent, facts: Facts) -> PlainEvent:
    return event | {"op": "upsert" if event["op"] in ("insert", "update") else event["op"]}


def _no_old(event: PlainEvent, facts: Facts) -> PlainEvent:
    return event | {"old_columns": None} if event["op"] != "delete" else event


def _changed_old(event: PlainEvent, facts: Facts) -> PlainEvent:
    """Of an update's old values those that differ."""
    new, old = event["columns"], event["old_columns"]
    if event["op"] not in ("update", "upsert") or new is None or old is None:
        return event
    return event | {"old_columns": {n: c for n, c in old.items() if n not in new or new[n] != c} or None}


def _handle(event: PlainEvent, facts: Facts) -> PlainEvent:
    return _cells(event, lambda name, cell: cell, lambda name: name in facts.handle)


def _cells(event: PlainEvent, change: Callable[[str, Any], Any], keep: Callable[[str], bool] = lambda name: True) -> PlainEvent:
    sides = {}
    for side in ("columns", "old_columns"):
        if event[side] is not None:
            sides[side] = {name: change(name, cell) for name, cell in event[side].items() if keep(name)}
    return event | sides


def _plain_names(event: PlainEvent, facts: Facts) -> PlainEvent:
    """As Avro schemas spell them."""
    spelled = {side: event[side] and vectors.avro_name(event[side]) for side in ("database", "table")}
    sides = {
        side: {vectors.avro_name(name): cell for name, cell in event[side].items()}
        for side in ("columns", "old_columns")
        if event[side] is not None
    }
    return event | spelled | sides


def _in_words(event: PlainEvent, facts: Facts) -> PlainEvent:
    """ENUM and SET numbers as their names."""

    def change(name: str, cell: Any) -> Any:
        if facts.types.get(name) not in (ENUM, SET) or not isinstance(cell, bytes) or not cell.isdigit():
            return cell
        if name not in facts.elements:
            return facts.words.get((name, cell), cell)
        number, elements = int(cell), facts.elements[name]
        if facts.types[name] == ENUM:
            return elements[number - 1].encode() if number else b""
        return ",".join(e for i, e in enumerate(elements) if number >> i & 1).encode()

    return _cells(event, change)


def _as_double(event: PlainEvent, facts: Facts) -> PlainEvent:
    return _cells(event, lambda name, cell: float(cell) if facts.types.get(name) == DECIMAL and cell is not None else cell)


def _no_zero_dates(event: PlainEvent, facts: Facts) -> PlainEvent:
    def change(name: str, cell: Any) -> Any:
        zero = facts.types.get(name) in DATES and isinstance(cell, bytes) and cell.startswith(b"0000-00-00")
        return None if zero else cell

    return _cells(event, change)


def _replaced(event: PlainEvent, facts: Facts) -> PlainEvent:
    """Text that is not UTF-8, with U+FFFD for each bad byte."""

    def change(name: str, cell: Any) -> Any:
        return cell.decode(errors="replace").encode() if isinstance(cell, bytes) and name in facts.texts else cell

    return _cells(event, change)


def _no_floats(event: PlainEvent, facts: Facts) -> PlainEvent:
    return _cells(event, lambda name, cell: cell, lambda name: facts.types.get(name) != FLOAT)


def _null_word(event: PlainEvent, facts: Facts) -> PlainEvent:
    return _cells(event, lambda name, cell: None if cell == b"NULL" else cell)


def _partial(vector: Vector, op: str | None) -> bool:
    events = vector["expected"].get("events", [vector["expected"]])
    return any(e.get("only_handle_key") or e.get("claim_check_location") for e in events)


RULES: tuple[Rule, ...] = (
    Rule(
        lost="the commit ts",
        protocols=("canal",),
        why="the format has no member for it: order is that of the offsets",
        reduce=_no_commit_ts,
    ),
    Rule(
        lost="the commit ts",
        protocols=("maxwell",),
        why="rows have seconds only: order is that of the offsets",
        reduce=_no_commit_ts,
        when="of rows",
        applies=lambda vector, op: op is not None,
    ),
    Rule(
        lost="the commit ts of BOOTSTRAP, which is always 0",
        protocols=("simple-avro",),
        why="the record has no member for it",
        reduce=_no_commit_ts,
        applies=lambda v, op: v["expected"]["type"] == "bootstrap",
    ),
    Rule(
        lost="the commit ts",
        protocols=("canal-json", "avro"),
        why="it is a member of TiDB's extension",
        reduce=_no_commit_ts,
        when="without `enable_tidb_extension`",
        applies=_without("enable_tidb_extension"),
    ),
    Rule(
        lost="the commit ts",
        protocols=("avro",),
        why="a delete has no value, and the extension is part of the value",
        reduce=_no_commit_ts,
        when="of deletes",
        applies=_of("delete"),
    ),
    Rule(
        lost="the commit ts",
        protocols=("csv",),
        why="it is a field that has to be asked for",
        reduce=_no_commit_ts,
        when="without `include_commit_ts`",
        applies=_without("include_commit_ts"),
        cases=False,
    ),
    Rule(
        lost="whether a row is an insert or an update (op `upsert`)",
        protocols=("avro",),
        why="the op is a member of TiDB's extension",
        reduce=_upsert,
        when="without `enable_tidb_extension`",
        applies=_without("enable_tidb_extension"),
    ),
    Rule(
        lost="whether a row is an insert or an update (op `upsert`)",
        protocols=("open",),
        why="what tells them apart is the old row",
        reduce=_upsert,
        when="with `open_output_old_value=false`, or `only_output_updated_columns` where nothing changed",
        applies=lambda v, op: v["expected"].get("op") == "upsert",
    ),
    Rule(
        lost="the old values of updates",
        protocols=("avro",),
        why="the value is the new row",
        reduce=_no_old,
    ),
    Rule(
        lost="the old values of updates",
        protocols=("open",),
        why="the changefeed does not send them",
        reduce=_no_old,
        when="with `open_output_old_value=false`",
        applies=_option("open_output_old_value", value=False),
    ),
    Rule(
        lost="the old values of updates",
        protocols=("csv",),
        why="the changefeed does not send them",
        reduce=_no_old,
        when="without `output_old_value`",
        applies=_without("output_old_value"),
    ),
    Rule(
        lost="old values that did not change",
        protocols=("maxwell",),
        why="`old` holds the changed columns",
        reduce=_changed_old,
    ),
    Rule(
        lost="old values that did not change",
        protocols=("open", "canal-json"),
        why="the changefeed leaves them out",
        reduce=_changed_old,
        when="with `only_output_updated_columns`",
        applies=_option("only_output_updated_columns"),
    ),
    Rule(
        lost="old values that did not change",
        protocols=("canal-json",),
        why="the changefeed leaves them out",
        reduce=_changed_old,
        when="with `content_compatible`",
        applies=_option("content_compatible"),
    ),
    Rule(
        lost="columns of deleted rows beside the handle",
        protocols=("avro",),
        why="a delete is its key alone",
        reduce=_handle,
        when="of deletes",
        applies=_of("delete"),
    ),
    Rule(
        lost="columns of deleted rows beside the handle",
        protocols=("open", "craft", "canal-json", "canal", "maxwell", "csv"),
        why="the changefeed leaves them out",
        reduce=_handle,
        when="with `delete_only_output_handle_key_columns`",
        applies=lambda v, op: op == "delete" and bool(vectors.options(v).get("delete_only_output_handle_key_columns")),
    ),
    Rule(
        lost="columns beside the handle",
        protocols=("open", "canal-json", "simple-json", "simple-avro"),
        why="the message was too large; the row itself is upstream or in the claim-check file",
        reduce=_handle,
        when="where it says handle-key-only or names a claim-check file",
        applies=_partial,
    ),
    Rule(
        lost="letters of names beside A–Z, a–z, 0–9 and _, and names that begin with a digit",
        protocols=("avro",),
        why="Avro names have no others: each becomes _, and _ precedes a digit; `tables.sql` maps them back",
        reduce=_plain_names,
    ),
    Rule(
        lost="the numbers of ENUM and SET values",
        protocols=("avro", "debezium", "csv"),
        why="the names are sent instead, as `asof` prints them",
        reduce=_in_words,
    ),
    Rule(
        lost="digits of DECIMAL values beyond a double's",
        protocols=("debezium",),
        why="they are sent as JSON numbers",
        reduce=_as_double,
    ),
    Rule(
        lost="zero dates",
        protocols=("debezium",),
        why="they are sent as null",
        reduce=_no_zero_dates,
    ),
    Rule(
        lost="bytes of text that are not UTF-8",
        protocols=JSON,
        why="the JSON encoder writes U+FFFD for each",
        reduce=_replaced,
    ),
    Rule(
        lost="FLOAT values",
        protocols=("craft",),
        why="the encoder mixes up their bytes where several rows are written "
        "([3.8](reference/protocols.md#38-encoder-limits-and-bugs-to-know)): reported as untrusted",
        reduce=_no_floats,
        when="of the messages that are hit",
        applies=lambda v, op: "wire_f64_le_hex" in str(v["expected"]),
    ),
    Rule(
        lost="the text NULL apart from NULL",
        protocols=("csv",),
        why="both are the same bytes",
        reduce=_null_word,
        when="with an empty quote and the null word `NULL`",
        applies=lambda v, op: vectors.options(v).get("quote") == "" and vectors.options(v).get("null") == "NULL",
    ),
)
