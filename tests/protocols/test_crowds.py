"""More values, columns or events than a message should hold are TOO_LARGE, by both paths; as many as the cap says are read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fuzz import corpus, own_binary
from tests.protocols import avro_messages as avro
from tests.protocols import craft_messages as craft
from tests.protocols import simple_messages as simple
from tests.protocols.both_paths import Message, both
from tests.protocols.craft_messages import Resolved, Row
from tests.protocols.json_messages import canal, column, compact, open_key, open_message
from tests.protocols.untyped_messages import debezium, maxwell, maxwell_rows
from tidelake.protocols import ALONE, Context
from tidelake.wire.json import json_text

CROWD = [[]] * 300_000  # a quarter of it is allowed at this size
EXTRA: dict[str, Message] = {
    "open": open_message((open_key(), {"u": {"a": column(3, 1)}, "x": CROWD})),
    "canal-json": (None, compact(canal(x=CROWD))),
    "simple-json": simple.json_row("INSERT", {"id": "1"}, x=CROWD),
    "debezium": debezium("c", before=None, after={"a": 1}, x=CROWD),
    "maxwell": maxwell_rows(maxwell("insert", data={"a": 1}, x=CROWD)),
    "avro": (None, b"\1" + compact({"query": "q", "type": 3, "schema": "s", "table": "t", "commitTs": 1, "x": CROWD})),
}


def outcome(protocol: str, message: Message) -> str:
    """The code of the error, or the kind of the first event."""
    (events,) = both(protocol, [message], avro.context(own_binary.SCHEMAS) if protocol == "avro" else Context())
    return events[0].error_code or events[0].kind


@pytest.mark.parametrize("protocol", EXTRA)
def test_more_json_values_than_memory_should_hold_are_too_large(protocol: str) -> None:
    assert outcome(protocol, EXTRA[protocol]) == "TOO_LARGE"


def test_as_many_json_values_as_the_room_holds_are_read() -> None:
    payload = b"[" + b",".join([b"1"] * 400_000) + b"]"
    with pytest.raises(json_text.DecodeError, match="expected an object") as found:
        json_text.load(payload, "a value")
    assert found.value.code == "BAD_JSON"


@pytest.mark.parametrize("protocol", ["open", "canal-json", "simple-json", "debezium", "maxwell"])
def test_values_inside_a_text_are_none_of_the_message_s(protocol: str) -> None:
    """A JSON column of a million numbers, or a text full of quotes, is one value."""
    text = compact(CROWD).decode() * 2 + '\\",":[{' * 100_000
    message: Message = {
        "open": open_message((open_key(), {"u": {"v": column(245, text, 65)}})),
        "canal-json": (None, compact(canal(data=[{"v": text}]))),
        "simple-json": simple.json_row("INSERT", {"v": text}),
        "debezium": debezium("c", before=None, after={"v": text}),
        "maxwell": maxwell_rows(maxwell("insert", data={"v": text})),
    }[protocol]
    assert outcome(protocol, message) == "row"


def test_text_without_end_is_looked_at_once() -> None:
    """Hostile: every quote might begin a string that has none."""
    for piece in (b'\\"', b'"', b"\\", b'"\\'):
        with pytest.raises(json_text.DecodeError) as found:
            json_text.load(b'["' + b"[]," * 300_000 + piece * 500_000 + b"\\", "a value")
        assert found.value.code in ("TOO_LARGE", "BAD_JSON")


def rows(width: int) -> dict[str, Message]:
    """A row of so many columns, by every protocol that names them in the message."""
    names = [f"c{i}" for i in range(width)]
    texts = dict.fromkeys(names, "1")
    return {
        "open": open_message((open_key(), {"u": {n: column(3, 1) for n in names}})),
        "canal-json": (None, compact(canal("INSERT", [texts], None, dict.fromkeys(names, "int"), pkNames=[]))),
        "simple-json": simple.json_row("INSERT", texts),
        "simple-avro": simple.avro_row("INSERT", dict.fromkeys(names, (simple.LONG, 1))),
        "debezium": debezium("c", before=None, after=texts),
        "maxwell": maxwell_rows(maxwell("insert", data=texts)),
        "craft": (None, craft.message(Row(new=[(n, 3, 65, b"\2") for n in names]))),
    }


@pytest.mark.parametrize("protocol", rows(1))
def test_a_row_has_at_most_as_many_columns_as_a_table(protocol: str) -> None:
    assert [outcome(protocol, rows(width)[protocol]) for width in (4096, 4097)] == ["row", "TOO_LARGE"]


@pytest.mark.parametrize("bootstrap", [simple.json_schema_message, simple.avro_bootstrap])
def test_a_schema_has_at_most_as_many_columns_as_a_table(bootstrap: Callable[[object], Message]) -> None:
    def schema(width: int) -> Message:
        return bootstrap(simple.table_schema([simple.column(f"c{i}", "int") for i in range(width)], []))

    protocol = "simple-json" if bootstrap is simple.json_schema_message else "simple-avro"
    assert [outcome(protocol, schema(width)) for width in (4096, 4097)] == ["bootstrap", "TOO_LARGE"]


CRAFT: dict[str, tuple[Message, str]] = {
    "events": ((None, craft.message(*[Resolved(ts=9)] * (1 << 16))), "resolved"),
    "one event more": ((None, craft.message(*[Resolved(ts=9)] * ((1 << 16) + 1))), "TOO_LARGE"),
    "terms": ((None, craft.assemble(b"", [b""], craft.dictionary([b""] * ((1 << 18) + 1)), [])), "TOO_LARGE"),
    "size tables": ((None, craft.assemble(b"", [b""], b"", [[0]] * ((1 << 16) + 3))), "BAD_STRUCTURE"),
}


@pytest.mark.parametrize("what", CRAFT)
def test_a_craft_message_has_only_so_many_events_terms_and_tables(what: str) -> None:
    message, expected = CRAFT[what]
    assert outcome("craft", message) == expected


@pytest.mark.parametrize("protocol", ["open", "canal-json", "craft"])
def test_a_message_too_large_for_a_batch_gives_its_events_in_its_place(protocol: str) -> None:
    text = "x" * ALONE
    large: Message = {
        "open": open_message((open_key(), {"u": {"v": column(15, text, 64)}})),
        "canal-json": (None, compact(canal(data=[{"id": "1", "v": text}]))),
        "craft": (None, craft.message(Row(new=[("v", 15, 64, text.encode())]))),
    }[protocol]
    good = corpus.OWN[protocol][0]
    found = both(protocol, [good, large, good], Context())
    assert found[0] == found[2] != found[1]
    assert [e.after[-1] if e.after else None for e in found[1]] == [text.encode()]
