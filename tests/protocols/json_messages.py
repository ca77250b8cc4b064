"""Hand-made Open Protocol and Canal-JSON messages, and both ways to decode them side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.protocols.both_paths import Message, batch
from tests.protocols.simple_messages import compact
from tests.protocols.vectors import from_row
from tidelake.errors import DecodeError
from tidelake.history.event import Event, RowSchema
from tidelake.protocols import Context, decode, decoder

Outcome = list[Event] | str  # events, or the code of the error


def part(payload: bytes) -> bytes:
    """One event's key or value in Open Protocol's framing."""
    return len(payload).to_bytes(8, "big") + payload


def open_raw(*events: tuple[bytes, bytes], version: int = 1) -> Message:
    """An Open Protocol message of these key and value texts."""
    return version.to_bytes(8, "big") + b"".join(part(k) for k, _ in events), b"".join(part(v) for _, v in events)


def frames(payload: bytes, at: int) -> Iterator[bytes]:
    """The parts of an Open Protocol key (from 8) or value (from 0), as far as their lengths go."""
    while at < len(payload):
        size = int.from_bytes(payload[at : at + 8], "big")
        yield payload[at + 8 : at + 8 + size]
        at += 8 + size


def open_message(*events: tuple[dict[str, Any], dict[str, Any] | None]) -> Message:
    """An Open Protocol message of these keys and values; None is a resolved event's empty value."""
    return open_raw(*((compact(k), b"" if v is None else compact(v)) for k, v in events))


def open_key(ts: int = 7, database: str = "db", table: str = "t", **more: Any) -> dict[str, Any]:
    """The key of a row event."""
    return {"ts": ts, "scm": database, "tbl": table, "t": 1} | more


def column(code: int, value: Any, flag: int = 65, *, key: bool = False) -> dict[str, Any]:
    """One column of an Open Protocol row."""
    return {"t": code} | ({"h": True} if key else {}) | {"f": flag, "v": value}


def canal(op: str = "INSERT", data: Any = None, old: Any = None, types: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """A Canal-JSON row message with TiCDC's members in TiCDC's order."""
    types = {"id": "int", "v": "varchar"} if types is None else types
    return {
        "id": 0,
        "database": "db",
        "table": "t",
        "pkNames": ["id"],
        "isDdl": False,
        "type": op,
        "es": 1,
        "ts": 2,
        "sql": "",
        "sqlType": dict.fromkeys(types, 12),
        "mysqlType": types,
        "old": old,
        "data": [{"id": "1", "v": "x"}] if data is None else data,
    } | more


def scanned(protocol: str, messages: Sequence[Message], context: Context | None = None) -> dict[int, list[Event]]:
    """The events of the messages that the compiled scan took, by the message's number."""
    table = batch(messages)
    found = decoder(protocol).scan(table, np.arange(len(messages), dtype=np.int32), context or Context())
    row_schemas = {s.id: s for s in found.used_schemas()}
    taken: dict[int, list[Event]] = {i: [] for i in range(len(messages)) if i not in set(found.left.tolist())}
    for i, row in zip(found.message.tolist(), found.batch(table).to_pylist(), strict=True):
        taken[i].append(from_row(row, row_schemas))
    return taken


def read(protocol: str, message: Message, context: Context | None = None) -> Outcome:
    """What the general reader says."""
    try:
        return decoder(protocol).read(*message, context or Context())
    except DecodeError as e:
        return e.code


def decoded(protocol: str, messages: Sequence[Message], context: Context | None = None) -> list[Outcome]:
    """What `decode` says of each message of one batch."""
    rows = decode(protocol, batch(messages), context or Context()).to_pylist()
    row_schemas = {r["row_schema"]: RowSchema.from_json(r["columns"]) for r in rows if r["kind"] == "row_schema"}
    outcomes: list[Outcome] = [[] for _ in messages]
    for row in (r for r in rows if r["kind"] != "row_schema"):
        outcome = outcomes[row["offset"]]
        if row["kind"] == "rejected":
            assert outcome == []
            assert (row["raw_key"], row["raw_value"]) == messages[row["offset"]]
            outcomes[row["offset"]] = row["error_code"]
        else:
            assert isinstance(outcome, list)
            assert row["ordinal"] == len(outcome)
            outcome.append(from_row(row, row_schemas))
    return outcomes


_TYPES = ((3, 65, 1), (5, 65, 1.5), (6, 65, None), (12, 65, "x"), (15, 64, "x"), (15, 65, "x"), (252, 64, "YQ=="), (252, 65, "YQ=="))
COMPANY: dict[str, list[Message]] = {
    "open": [open_message((open_key(), {"u": {"c": column(code, value, flag)}})) for code, flag, value in _TYPES],
    "canal-json": [(None, compact(canal(types=types))) for types in ({"id": "int", "v": "varchar"}, {"id": "int", "v": "blob"})],
}


def both(protocol: str, message: Message, context: Context | None = None, *, compiled: bool = True) -> list[Event]:
    """The message's events by the general reader, and a proof that the compiled scan says the same, or leaves the message."""
    events = decoder(protocol).read(*message, context or Context())
    assert scanned(protocol, [message], context) == ({0: events} if compiled else {})
    company = [*COMPANY[protocol], message]
    assert scanned(protocol, company, context and replace(context, memory={})).get(len(company) - 1, events) == events
    return events


def refused(protocol: str, message: Message, context: Context | None = None) -> DecodeError:
    """The error of a message that neither way takes, nor after messages that taught the scan its table."""
    assert scanned(protocol, [message], context) == {}
    company = [*COMPANY[protocol], message]
    assert len(company) - 1 not in scanned(protocol, company, context and replace(context, memory={}))
    try:
        events = decoder(protocol).read(*message, context or Context())
    except DecodeError as e:
        return e
    raise AssertionError(f"not refused: {events}")
