"""Whatever the bytes are: a verdict, never an exception."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.searches import examples
from tests.sniff.messages import Message, of_every_protocol, verdict
from tidelake.protocols import protocol_names

SOUND: list[Message] = [message for messages in of_every_protocol().values() for message in messages]
SOUND += [(k, v and pa.compress(v, method, asbytes=True)) for k, v in SOUND for method in ("snappy", "lz4")]
STARTS = (
    b"",
    b"\0",
    b"\0\0\0\0\7",
    b"\1",
    b"\2",
    b"\3\0",
    b"\x10\1\x18\7",
    b"\x16\6\6\2",
    b"{",
    b'{"key":"',
    b"\x04\x22\x4d\x18",
    b"I,t,",
    b'"I"',
    bytes(7) + b"\1",
)


@st.composite
def mutated(draw: st.DrawFn) -> Message:
    """A sound message with bytes changed, cut, doubled, or its key and value those of different messages."""
    sides = [draw(st.sampled_from(SOUND))[side] for side in (0, 1)]
    side = draw(st.sampled_from((0, 1)))
    data = bytearray(sides[side] or b"")
    for at in draw(st.lists(st.integers(0, max(0, len(data) - 1)), max_size=4)):
        data[at : at + 1] = draw(st.binary(max_size=3))
    start = draw(st.integers(0, len(data)))
    sides[side] = bytes(data[:start] + data[start : start + draw(st.integers(0, len(data)))] * draw(st.integers(0, 2)))
    return sides[0], sides[1]


def check(messages: list[Message]) -> None:
    found = verdict(messages)
    assert found.messages == len(messages)
    for guess in found.guesses:
        assert guess.protocol in protocol_names()
        assert guess.decoded + guess.waiting + guess.misread_count == len(messages)
        assert guess.evidence
        assert len(guess.mismatches) == min(20, guess.misread_count)
    assert found.decided == (bool(found.guesses) and found.guesses[0].confidence in ("certain", "likely"))


sides = st.none() | st.builds(lambda start, rest: start + rest, st.sampled_from(STARTS), st.binary(max_size=60))


@settings(max_examples=examples(300))
@given(st.lists(st.tuples(sides, sides), max_size=4))
def test_any_bytes_have_a_verdict(messages: list[Message]) -> None:
    check(messages)


@settings(max_examples=examples(400))
@given(st.lists(mutated(), min_size=1, max_size=5))
def test_mutated_messages_have_a_verdict(messages: list[Message]) -> None:
    check(messages)


def test_deep_json_wide_numbers_and_bombs_have_a_verdict() -> None:
    bomb = pa.compress(bytes(1 << 24), "lz4", asbytes=True)
    deep = b'{"mysqlType":' + b"[" * 100_000
    wide = b'{"version":1,"type":"INSERT","buildTs":1,"commitTs":' + b"9" * 10_000 + b"}"
    surrogate = b'{"database":"\\ud800","table":"t","type":"INSERT","pkNames":null}'
    csv = b'"I","t","db",' + b"1" * 5000 + b"\n"
    check([(None, bomb), (None, deep), (None, wide), (None, surrogate), (None, csv), (bytes(7) + b"\1" + b"\xff" * 40, b"\xff" * 40)])
