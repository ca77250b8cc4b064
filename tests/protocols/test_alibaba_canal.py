"""Messages of Alibaba's Canal 1.1.7 on MariaDB 10.11, recorded twice from the same statements: as flat JSON and as protobuf."""

from __future__ import annotations

import json
from typing import Any

from tests.data_files import data_bytes
from tests.protocols.json_messages import Outcome, decoded
from tidelake.history.event import Event

MADE = "create database if not exists shop"  # the first statement


def recorded(form: str) -> list[Outcome]:
    """What the messages of a form decode to. form: flat or protobuf."""
    messages: list[str] = json.loads(data_bytes("vectors/alibaba_canal.json.xz"))[form]
    if form == "flat":
        return decoded("canal-json", [(None, m.encode()) for m in messages])
    return decoded("canal", [(None, bytes.fromhex(m)) for m in messages])


def events(outcomes: list[Outcome]) -> list[Event]:
    return [event for outcome in outcomes if isinstance(outcome, list) for event in outcome]


def row(event: Event) -> dict[str, bytes | None]:
    """The row after an insert or update, before a delete."""
    schema, cells = (event.before_schema, event.before) if event.op == "delete" else (event.row_schema, event.after)
    assert schema is not None
    assert cells is not None
    return dict(zip((c.name for c in schema.columns), cells, strict=True))


def plain(event: Event) -> tuple[Any, ...]:
    """What both forms say of an event: the old row in full."""
    if event.kind == "ddl":
        return event.kind, event.database, event.table, event.ddl, event.ddl_type
    old = row(event)
    if event.op == "update":
        assert event.before_schema is not None
        assert event.before is not None
        old |= dict(zip((c.name for c in event.before_schema.columns), event.before, strict=True))
    schema = event.before_schema if event.op == "delete" else event.row_schema
    assert schema is not None
    return event.op, event.database, event.table, [(c.name, c.type, c.key, c.full_type) for c in schema.columns], row(event), old


def test_every_message_is_read_but_those_with_an_xa_transaction_that_was_taken_back() -> None:
    flat, packets = recorded("flat"), recorded("protobuf")
    assert [len(o) if isinstance(o, list) else o for o in packets] == [2, 2, 4, 81, 11, "UNKNOWN_TYPE"]
    assert [o for o in flat if isinstance(o, str)] == ["UNKNOWN_TYPE"]
    assert sum(o == [] for o in flat) == 30  # statements in front of their rows, and XACOMMIT
    assert len(flat) == 81


def test_flat_and_protobuf_messages_say_the_same_of_the_same_statements() -> None:
    flat, packets = events(recorded("flat")), events(recorded("protobuf"))
    first = next(i for i, e in enumerate(packets) if e.ddl == MADE)
    same = [plain(e) for e in packets[first:]]
    assert [plain(e) for e in flat][: len(same)] == same
    assert len(same) > 60


def test_the_values_are_those_that_were_inserted() -> None:
    inserted = row(next(e for e in events(recorded("flat")) if e.op == "insert"))
    every = bytes(range(256))
    assert inserted == {
        "id": b"18446744073709551615",
        "ti": b"-128",
        "tu": b"255",
        "b1": b"1",
        "si": b"-32768",
        "su": b"65535",
        "mi": b"-8388608",
        "mu": b"16777215",
        "i": b"-2147483648",
        "iu": b"4294967295",
        "bi": b"-9223372036854775808",
        "bu": b"18446744073709551615",
        "d": b"-12345678901234.123456",
        "du": b"1234567890.123456789012345678901234567890",
        "f": b"1.1",
        "f2": b"1234.5",
        "db": b"3.141592653589793",
        "dbu": b"1.0E300",
        "bt": b"1",
        "bt9": b"511",
        "bt64": b"18446744073709551615",
        "c": b"trail",
        "cb": "ÿ\0\1".encode(),
        "v": 'grüße 🍵 "q"\\'.encode(),
        "vl": "\ufffd\ufffd".encode(),  # é€ in latin1: Canal reads it as UTF-8
        "vg": ("\ufffd" * 4).encode(),  # 中文 in gbk
        "vu": "\x01u \ufffd".encode(),  # ŵ€ in ucs2
        "tx": "line\nnew\ttab\0nul\x7f\u2028<&>".encode(),
        "tt": b"",
        "mt": b"m",
        "lt": b"l" * 300,
        "bl": every,
        "tb": b"",
        "mb": b"\0\xff",
        "lb": every,
        "bn": b"ab",  # without the zeros at its end
        "vb": b"\x80\xff\0",
        "da": b"2024-02-29",
        "dt": b"2024-02-29 23:59:59",
        "dt6": b"2024-02-29 23:59:59.123456",
        "dt3": b"2024-02-29 23:59:59.100",
        "ts": b"2024-02-29 23:59:59",
        "ts6": b"2024-02-29 23:59:59.000100",
        "tm": b"-838:59:59",
        "tm6": b"23:59:59.000001",
        "tm2": b"-00:00:01.50",
        "y": b"2155",
        "e": b"3",
        "s": b"5",
        "js": '{"a": [1, 2.50, "ü"], "b":null}'.encode(),
        "g": bytes.fromhex("00000000 01 01000000 000000000000f03f 0000000000000040"),
        "pt": bytes.fromhex("00000000 01 01000000 0000000000000840 0000000000001040"),
        "gen": b"-2147483647",
        "gens": b"-2147483646",
    }
