"""JSON as the protocols carry it, read strictly: UTF-8, one object, no NaN, no lone surrogates (docs/reference/protocols.md 7)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from itertools import islice
from typing import Any, NoReturn

from tidelake.errors import DecodeError
from tidelake.wire.kernels.utf8_text import Utf8Text

_WIDE = re.compile(rb"[\xf0-\xff]|\\u[dD]")  # letters for which a str takes four bytes a letter
_SURROGATE = re.compile(rb"\\u[dD]")
_QUOTED = re.compile(rb'"[^"\\]*+(?:\\.?+[^"\\]*+)*+(?:"|\Z)', re.DOTALL)  # also one without end, else hostile text takes a square of time
_STRING = json.JSONDecoder()


class Number(str):
    """A JSON number that is no integer (or -0), as its text: never rounded through a float on the way."""

    __slots__ = ()


def _integer(text: str) -> int | Number:
    return Number(text) if text == "-0" else int(text)


def _refuse(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is not JSON")


_BLANKS = re.compile(r"[ \t\n\r]*")
_STRICT = json.JSONDecoder(parse_float=Number, parse_int=_integer, parse_constant=_refuse)


# What Python's objects for JSON take at most: bytes of a value, of a member beside that, of a value where letters are wide, and all of
# them together, as tests/fuzz measures it. Messages of rows stay far below: the smallest cell takes 8 bytes on the wire.
VALUE_BYTES, MEMBER_BYTES, WIDE_VALUE_BYTES = 100, 60, 250
ROOM, ROOM_PER_BYTE = 40_000_000, 3
FLAT_BYTES = 4 << 20  # of a payload; those above are read as text of one byte a letter
MAX_NAME_BYTES = 1 << 20  # of a string that is neither a value nor a statement
MAX_COLUMNS = 4096  # of a row; TiDB's own limit


def load(payload: bytes, what: str) -> dict[str, Any]:
    """The object that the payload holds; of duplicate members the last wins. Raises DecodeError (BAD_UTF8, BAD_JSON, TOO_LARGE).

    Strings of a payload of more than FLAT_BYTES may be Utf8Text: `string` and `statement` give what can be used.
    """
    refuse_crowd(payload, what)
    with _read_as(payload, what):
        value = json.loads(_text(payload), parse_float=Number, parse_int=_integer, parse_constant=_refuse)
        value = _put_right(payload, value)
    return _object(value, what)


def load_all(payload: bytes, what: str, most: int) -> list[dict[str, Any]]:
    """The objects that stand back to back in the payload, at least one. Raises DecodeError (BAD_UTF8, BAD_JSON, TOO_LARGE).

    Strings as `load` gives them.
    """
    refuse_crowd(payload, what)
    values: list[Any] = []
    with _read_as(payload, what):
        text = _text(payload)
        at = _past_blanks(text, 0)
        while at < len(text) or not values:
            value, at = _STRICT.raw_decode(text, at)
            values.append(value)
            if len(values) > most:
                raise DecodeError(f"{what} holds more than {most} objects", code="TOO_LARGE")
            at = _past_blanks(text, at)
        del text
        values = _put_right(payload, values)
    return [_object(value, what) for value in values]


def refuse_crowd(payload: bytes, what: str) -> None:
    """Raises DecodeError (TOO_LARGE) for more values than memory should hold: `[],[],…` takes thirty bytes a byte.

    Text inside strings is not a value: a JSON column of a million numbers is one.
    """
    room = ROOM + ROOM_PER_BYTE * len(payload)
    if (VALUE_BYTES + MEMBER_BYTES) * len(payload) <= room:
        return
    each = WIDE_VALUE_BYTES if len(payload) > FLAT_BYTES and _WIDE.search(payload) else VALUE_BYTES
    values, members = _counted(payload, 0, len(payload))
    for found in _QUOTED.finditer(payload):
        if each * values + MEMBER_BYTES * members <= room:
            return
        inside = _counted(payload, found.start() + 1, found.end() - 1)
        values, members = values - inside[0], members - inside[1]
    if each * values + MEMBER_BYTES * members > room:
        raise DecodeError(f"{what} of {len(payload)} bytes holds about {values} JSON values, too many for its size", code="TOO_LARGE")


def _counted(payload: bytes, start: int, end: int) -> tuple[int, int]:
    """About how many values and how many members there are, if none of it is inside a string."""
    return sum(payload.count(c, start, end) for c in (b",", b"[", b"{")), payload.count(b'":', start, end)


@contextmanager
def _read_as(payload: bytes, what: str) -> Iterator[None]:
    """Raise every error of reading the payload as JSON as a DecodeError."""
    try:
        yield
    except UnicodeDecodeError as e:
        raise DecodeError(f"{what} is not UTF-8: byte 0x{payload[e.start]:02x} at {e.start} of {len(payload)}", code="BAD_UTF8") from e
    except UnicodeEncodeError as e:
        raise DecodeError(f"{what} holds half of a surrogate pair, which is no text", code="BAD_UTF8") from e
    except RecursionError as e:
        raise DecodeError(f"{what} is nested too deep", code="BAD_JSON") from e
    except ValueError as e:  # JSONDecodeError, or an integer of thousands of digits
        raise DecodeError(f"{what} of {len(payload)} bytes is not JSON: {e}", code="BAD_JSON") from e


def _text(payload: bytes) -> str:
    if len(payload) <= FLAT_BYTES:
        return payload.decode()
    from tidelake.wire.json.json_flat import flat_text  # which compiles: the command line starts without

    return flat_text(payload)


def _put_right(payload: bytes, value: Any) -> Any:
    """What was read from the payload's text, its strings as they should be. Raises UnicodeEncodeError for half of a surrogate pair."""
    if len(payload) > FLAT_BYTES:
        from tidelake.wire.json.json_flat import restored

        return value if payload.isascii() and b"\\u" not in payload else restored(value)
    if _SURROGATE.search(payload):
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _past_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DecodeError(f"{what} is a JSON {kind(value)}, expected an object", code="BAD_JSON")
    return value


def kind(value: object) -> str:
    """What JSON calls the value: for messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | Number():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def refuse_width(row: Sized, what: str) -> None:
    """Raises DecodeError (TOO_LARGE) for a row of more columns than a table has."""
    if len(row) > MAX_COLUMNS:
        raise DecodeError(f"{what} has {len(row)} columns, the cap is {MAX_COLUMNS}", code="TOO_LARGE")


def integer(members: dict[str, Any], name: str, what: str, low: int, high: int) -> int:
    """A member that must be there and be an integer from low to high. Raises DecodeError."""
    value = required(members, name, what)
    if type(value) is not int:
        raise DecodeError(f"{what}: member {name} is {_short(value)}, expected an integer", code="BAD_VALUE")
    if not low <= value <= high:
        raise DecodeError(f"{what}: member {name} is {_short(value)}, expected {low} to {high}", code="BAD_VALUE")
    return value


def string(members: dict[str, Any], name: str, what: str) -> str:
    """A member that must be there and be a string, of MAX_NAME_BYTES where it is Utf8Text. Raises DecodeError."""
    return short(statement(members, name, what), f"{what}: member {name}")


def short(text: str, what: str) -> str:
    """A text that `load` gave, as a usual one. Raises DecodeError (TOO_LARGE) for a Utf8Text of more than MAX_NAME_BYTES."""
    if isinstance(text, Utf8Text) and len(text) > MAX_NAME_BYTES:
        raise DecodeError(f"{what} has {len(text)} bytes, at most {MAX_NAME_BYTES} are expected", code="TOO_LARGE")
    return str(text)


def statement(members: dict[str, Any], name: str, what: str) -> str:
    """A member that must be there and be a string, of any length: it may be Utf8Text. Raises DecodeError."""
    value = required(members, name, what)
    if isinstance(value, Number) or not isinstance(value, str):
        raise DecodeError(f"{what}: member {name} is a JSON {kind(value)}, expected a string", code="BAD_VALUE")
    return value


def required(members: dict[str, Any], name: str, what: str) -> Any:
    """A member that must be there. Raises DecodeError (BAD_STRUCTURE)."""
    if name not in members:
        some = sorted(islice(members, 99))  # there may be a million
        raise DecodeError(f"{what} has no member {name}, only {_short(some)}", code="BAD_STRUCTURE")
    return members[name]


def _short(value: object) -> str:
    text = f"a number of {value.bit_length()} bits" if isinstance(value, int) and value.bit_length() > 128 else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def members(text: str, at: int) -> Iterator[tuple[str, str, int, int]]:
    """The members of the object at `at`: decoded name, name as sent with quotes and colon, start and end of the value.

    For text that `load` accepted. Raises ValueError for blanks between tokens, which encoders do not write, and for names that hold half
    of a surrogate pair.
    """
    if text[at] != "{":
        raise ValueError(f"no object at {at}")
    at += 1
    while text[at] != "}":
        name, end = _STRING.raw_decode(text, at)
        name.encode()  # of doubled members `load` has looked at the last one only
        if text[end] != ":":
            raise ValueError(f"a blank at {end}")
        start = end + 1
        _, end = _STRING.raw_decode(text, start)
        yield name, text[at:start], start, end
        if text[end] not in ",}":
            raise ValueError(f"a blank at {end}")
        at = end + (text[end] == ",")
