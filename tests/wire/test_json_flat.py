"""JSON of many MB is read from text of one byte a letter: the same events as from the usual text, whatever letters are in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocols import vectors
from tests.protocols.both_paths import Message, read
from tests.protocols.json_messages import column, open_key, open_raw
from tests.protocols.simple_messages import compact
from tests.protocols.untyped_messages import maxwell, maxwell_rows
from tidelake.errors import Coordinates, DecodeError
from tidelake.history.event import Event, EventRows
from tidelake.protocols import Context
from tidelake.wire.json import json_text
from tidelake.wire.json.json_flat import flat_text, restored
from tidelake.wire.json.json_text import load, string
from tidelake.wire.kernels import utf8_text
from tidelake.wire.kernels.utf8_text import Utf8Text

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def flat(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every payload is read as one of many MB is, every text but ASCII kept as UTF-8."""
    monkeypatch.setattr(json_text, "FLAT_BYTES", 0)
    monkeypatch.setattr(utf8_text, "LONG_BYTES", 0)
    return


@given(VALUES, st.booleans())
def test_any_value_comes_back_whole(value: Any, escaped: bool) -> None:
    payload = json.dumps(value, ensure_ascii=escaped).encode()
    assert restored(json.loads(flat_text(payload))) == value


@given(st.lists(st.sampled_from(["\\", '"', "u", "00", "e9", "\\u00e9", "\\ud83d", "\\ude00", "\\u0022", "é", "😀", "\\U", "x"])))
def test_escapes_are_told_as_json_tells_them(pieces: list[str]) -> None:
    payload = f'["{"".join(pieces)}"]'.encode()
    assert outcome(lambda: restored(json.loads(flat_text(payload)))) == outcome(lambda: _sound(json.loads(payload)))


def outcome(read: Any) -> Any:
    try:
        return read()
    except ValueError:  # no JSON, no UTF-8, half of a pair
        return None


def _sound(value: Any) -> Any:
    json.dumps(value, ensure_ascii=False).encode()
    return value


MESSAGES: list[tuple[str, Message]] = [
    ("open", open_raw((compact(open_key()), compact({"u": {"näme": column(15, "größer 😀", 64)}})))),
    ("open", open_raw((compact(open_key()), compact({"u": {"b": column(15, "\\xff😀\\n", 129)}})))),
    ("open", open_raw((compact(open_key(t=2)), compact({"q": "CREATE TABLE `t` (`ü` INT)", "t": 3})))),
    ("maxwell", maxwell_rows(maxwell("insert", data={"v": "ü😀", "w": 'x"\\'}))),
]


@pytest.mark.usefixtures("flat")
@pytest.mark.parametrize(("protocol", "message"), MESSAGES)
def test_messages_give_the_same_events(protocol: str, message: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    found = rows(read(protocol, message, Context()))
    monkeypatch.undo()
    assert found == rows(read(protocol, message, Context()))
    assert found[0]["kind"] != "rejected"


@pytest.mark.parametrize("protocol", ["open", "canal-json", "simple-json", "debezium", "maxwell", "avro", "canal", "csv", "simple-avro"])
def test_the_vectors_give_the_same_events(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = [from_vector(vector) for vector in vectors.load(protocol)]
    monkeypatch.setattr(json_text, "FLAT_BYTES", 0)
    monkeypatch.setattr(utf8_text, "LONG_BYTES", 0)
    assert [from_vector(vector) for vector in vectors.load(protocol)] == usual
    assert len(usual) > 20


def from_vector(vector: dict[str, Any]) -> list[dict[str, Any]]:
    key, value = vectors.record(vector)
    context = vectors.context(vector)
    return rows([e for part in vectors.parts(vector, value) for e in read(vector["protocol"], (key, part), context)])


def rows(events: list[Event]) -> list[dict[str, Any]]:
    out = EventRows()
    out.add(Coordinates("t", 0, 0), 1, events)
    return out.batch(row_schemas=True).to_pylist()


@pytest.mark.usefixtures("flat")
def test_long_text_that_is_a_value_is_kept_and_that_is_a_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "MAX_NAME_BYTES", 9)
    found = load('{"v":"0123456€","table":"abc€"}'.encode(), "it")
    assert type(found["v"]) is Utf8Text
    assert string(found, "table", "it") == "abc€"
    with pytest.raises(DecodeError, match="it: member v has 10 bytes, at most 9 are expected") as refused:
        string(found, "v", "it")
    assert refused.value.code == "TOO_LARGE"


@pytest.mark.usefixtures("flat")
@pytest.mark.parametrize(
    ("payload", "code", "says"),
    [
        (b'{"v":"\xff"}', "BAD_UTF8", "byte 0xff at 6 of 9"),
        (b'{"v":"\\ud83d"}', "BAD_UTF8", "half of a surrogate pair"),
        (b'{"v":"\\ude00\\ud83d"}', "BAD_UTF8", "half of a surrogate pair"),
        (b'{"v":"\\ude00\\ude00"}', "BAD_UTF8", "half of a surrogate pair"),
        (b'{"v":"\\u00g9"}', "BAD_JSON", "is not JSON"),
        ('{"%s":1}' % ("é" * 600), "BAD_JSON", "a member's name has 1200 bytes"),
        ("{é:1}", "BAD_JSON", "is not JSON"),
        (b'{"v":\\u00e9}', "BAD_JSON", "is not JSON"),
    ],
)
def test_what_is_wrong_is_told(payload: bytes | str, code: str, says: str) -> None:
    with pytest.raises(DecodeError, match=says) as refused:
        load(payload if isinstance(payload, bytes) else payload.encode(), "it")
    assert refused.value.code == code
