"""Ways to break bytes: cut, flip, splice, overwrite; lengths and counts that lie; JSON that says what it should not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random

from tests.protocols.both_paths import Message
from tests.protocols.craft_messages import uvarint, varint

NUMBERS = (0, 1, -1, 2, 7, 8, 63, 64, 127, 128, 255, (1 << 31) - 1, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, -(1 << 63), (1 << 64) - 1)
_U64 = 1 << 64
_VARINTS = [*(varint(n) for n in NUMBERS if n < 1 << 63), *(uvarint(n % _U64) for n in NUMBERS)]
_FIXED = [(n % _U64).to_bytes(8, "big") for n in NUMBERS] + [(n % (1 << 32)).to_bytes(4, "big") for n in NUMBERS]
_BINARY = [*_VARINTS, b"\xff" * 10, b"\x80" * 12, bytes(8)]
_TEXT = [b'"', b"\\", b"{", b"}", b",", b":", b"null", b"-", b"\0", b"\\u0000", b"\\ud800", b"\xff", b"\xc3", b"0" * 30, b"=", b"\r\n"]
_DEEP = [b"[" * 50, b'{"a":' * 50, b"[" * 2_000, b'{"a":' * 2_000]
_VALUES = [
    *(b'null|0|-0|1.5|1e3|1e999|NaN|Infinity|-Infinity|{}|[]|true|[""]|-1'.split(b"|")),
    *(b'""', b'"x"', b'"\xff"', b'"\\q"', b'"\0"', b'"\\u0000"', b'"\\u0041"', b'"\\ud800"'),
    *(str(n).encode() for n in NUMBERS),
    b"9" * 20,
    b"9" * 5_000,
    *_DEEP,
]
_VALUE = re.compile(rb'(?<=[:\[,])("(?:[^"\\]|\\.)*"|null|-?\d+(?:\.\d+)?|true|false|\{[^{}]*\}|\[[^\[\]]*\])')
_NUMBER = re.compile(rb'(?<=[:\[,"])-?\d+(?=[,\]}"])')
_MEMBER = re.compile(rb'(?<=[{,])"(?:[^"\\]|\\.)*":("(?:[^"\\]|\\.)*"|null|-?\d+(?:\.\d+)?|true|false),')

Edit = Callable[[bytearray, int, bytes, Random], None]  # out, where, a message to borrow from


def _cut(out: bytearray, at: int, other: bytes, chance: Random) -> None:
    del out[at:]


def _flip(out: bytearray, at: int, other: bytes, chance: Random) -> None:
    if out:
        out[at - 1] ^= 1 << chance.randrange(8)


def _byte(out: bytearray, at: int, other: bytes, chance: Random) -> None:
    out[at : at + 1] = bytes([chance.randrange(256)])


def _drop(out: bytearray, at: int, other: bytes, chance: Random) -> None:
    del out[at : at + chance.randrange(1, 40)]


def _splice(out: bytearray, at: int, other: bytes, chance: Random) -> None:
    start = chance.randrange(len(other) + 1)
    out[at : at + chance.randrange(60)] = other[start : start + chance.randrange(60)]


def _cross(out: bytearray, at: int, other: bytes, chance: Random) -> None:
    """The head of one and the tail of the other."""
    out[at:] = other[chance.randrange(len(other) + 1) :]


def _fixed(out: bytearray, at: int, other: bytes, chance: Random) -> None:
    lie = chance.choice(_FIXED)
    out[at : at + len(lie)] = lie


def _varint(out: bytearray, at: int, other: bytes, chance: Random) -> None:
    """A varint as it stands, overwritten by another one."""
    end = at
    while end < len(out) and end < at + 10 and out[end] >= 0x80:
        end += 1
    out[at : end + 1] = chance.choice(_BINARY)


def _insert_binary(out: bytearray, at: int, other: bytes, chance: Random) -> None:
    out[at:at] = chance.choice(_BINARY)


def _insert_text(out: bytearray, at: int, other: bytes, chance: Random) -> None:
    out[at:at] = chance.choice(_TEXT)


def _found(pattern: re.Pattern[bytes], out: bytearray, at: int) -> tuple[int, int] | None:
    match = pattern.search(out, at) or pattern.search(out)
    return match.span() if match else None


def _value(out: bytearray, at: int, other: bytes, chance: Random) -> None:
    if span := _found(_VALUE, out, at):
        out[slice(*span)] = chance.choice(_VALUES)


def _number(out: bytearray, at: int, other: bytes, chance: Random) -> None:
    if span := _found(_NUMBER, out, at):
        out[slice(*span)] = str(chance.choice(NUMBERS)).encode()


def _double(out: bytearray, at: int, other: bytes, chance: Random) -> None:
    """A member that stands there twice, with the same value or another."""
    if span := _found(_MEMBER, out, at):
        again = bytes(out[slice(*span)])
        if chance.random() < 0.5:
            again = again.partition(b":")[0] + b":" + chance.choice(_VALUES) + b","
        out[span[0] : span[0]] = again


_ANYWHERE: list[Edit] = [_cut, _flip, _byte, _drop, _splice, _cross]
_OF_BINARY: list[Edit] = [*_ANYWHERE, _fixed, _varint, _varint, _insert_binary]
_OF_TEXT: list[Edit] = [*_ANYWHERE, _fixed, _insert_text, *[_value] * 5, *[_number] * 2, *[_double] * 2]


def damaged(data: bytes, other: bytes, chance: Random) -> bytes:
    """The bytes with one to three places broken."""
    out = bytearray(data)
    edits = _OF_TEXT if b'":' in data else _OF_BINARY
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        chance.choice(edits)(out, chance.randrange(len(out) + 1), other, chance)
    return bytes(out)


def broken(message: Message, other: Message, chance: Random) -> Message:
    """The message with one side damaged, missing or empty."""
    sides = [*message]
    i = int(not message[0] or chance.random() < 0.75)
    if chance.random() < 0.01:
        sides[i] = chance.choice((None, b""))
    else:
        sides[i] = damaged(sides[i] or b"", other[i] or b"", chance)
    return sides[0], sides[1]


def cuts(message: Message) -> Iterator[Message]:
    """The message cut at every byte of either side."""
    key, value = message
    yield from ((key, value[:n]) for n in range(len(value or b"")) if value is not None)
    yield from ((key[:n], value) for n in range(len(key or b"")) if key is not None)


def flips(message: Message) -> Iterator[Message]:
    """The message with every bit of either side flipped, one at a time."""
    for side, data in enumerate(message):
        for i in range(8 * len(data or b"")):
            changed = bytearray(data or b"")
            changed[i // 8] ^= 1 << i % 8
            yield (bytes(changed), message[1]) if side == 0 else (message[0], bytes(changed))
