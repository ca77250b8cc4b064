"""Open Protocol and TiCDC's Maxwell, whose Kafka key begins with the version word (docs/reference/protocols.md 2.1, 9.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidelake.errors import DecodeError
from tidelake.io.texts import plural
from tidelake.sniff.families.hint import Hint, OptionValue, View, start
from tidelake.sniff.families.unpack import sentence_of, unpacked
from tidelake.wire.json.json_text import load

VERSION = (1).to_bytes(8, "big")
_MOST = 1 << 16  # maximum events of a message
_KINDS = {1: "row", 2: "DDL", 3: "resolved"}
_LARGE = {"ohk": "handle-key-only", "ccl": "claim-check"}
_ROW, _STATEMENT = frozenset({"database", "table", "type"}), frozenset({"type", "sql"})


def look(view: View) -> Hint | None:
    """Recognise Open Protocol or Maxwell."""
    key = view.key or b""
    if key.startswith(b"{"):
        return _maxwell_ddl(view, key)
    if len(key) < 8 or key[:7] != VERSION[:7]:
        return None
    if key[7] != 1:
        return _broken(f"key begins with the version word 00…{key[7]:02x}: Open Protocol's is 00…01") if len(key) > 16 else None
    if len(key) == 8 and view.value:
        return _maxwell(view)
    return _open(key, view.value)


def _open(key: bytes, value: bytes | None) -> Hint:
    if value is None:
        return _broken("key begins with the version word 00…01, but the value is null")
    keys, values = list(_parts(key, 8)), list(_parts(value, 0))
    if None in keys or None in values or len(keys) != len(values):
        side = "key" if None in keys else "value"
        return _broken(f"key begins with the version word 00…01, but the lengths in the {side} do not add up")
    about = [_object(part or b"") for part in keys]
    if not keys:
        return _hint({"framing": "key is the version word 00…01 alone and the value is empty: a batch of no events"}, weak=True)
    if not all(kind.get("t") in _KINDS and "ts" in kind for kind in about):
        return _broken(f"key begins with the version word 00…01 and holds {plural(len(keys), 'part')} that are not Open Protocol's keys")
    kinds = sorted({_KINDS[kind["t"]] for kind in about})
    framing = f"key begins with the version word 00…01 and holds {plural(len(keys), 'length-prefixed JSON key')} ({', '.join(kinds)})"
    evidence, options = {"framing": framing}, dict[str, OptionValue]()
    for member, option in _LARGE.items():
        if any(kind.get(member) for kind in about):
            evidence[member] = f"a key has `{member}`: large messages are handled as {option}"
            options["large_message_handle_option"] = option
    return _inside(values, evidence, options)


def _inside(values: list[bytes | None], evidence: dict[str, str], options: dict[str, OptionValue]) -> Hint:
    """What the first row shows of compression and old values."""
    row = next((value for value in values if value), b"")
    method, plain = unpacked(row)
    if method != "none":
        evidence["compression"] = f"the first event is {sentence_of(method, row, len(plain))}"
    if row:
        options["large_message_handle_compression"] = method
    sides = _object(plain)
    new, old = sides.get("u"), sides.get("p")
    if isinstance(new, dict) and isinstance(old, dict) and len(old) < len(new):
        evidence["old"] = f"an update has {len(new)} columns in `u` and {len(old)} in `p`: only changed columns are sent"
        options["only_output_updated_columns"] = True
    return Hint(protocol="open", evidence=evidence, framing="length-prefixed batches", compression=method, options=options)


def _parts(payload: bytes, at: int) -> Iterator[bytes | None]:
    """The length-prefixed parts; None where a length does not fit."""
    for _ in range(_MOST):
        if at == len(payload):
            return
        size = int.from_bytes(payload[at : at + 8], "big")
        if len(payload) - at - 8 < size:
            yield None
            return
        yield payload[at + 8 : at + 8 + size]
        at += 8 + size


def _broken(sentence: str) -> Hint:
    return _hint({"broken": sentence}, weak=True)


def _hint(evidence: dict[str, str], *, weak: bool) -> Hint:
    return Hint(protocol="open", evidence=evidence, framing="length-prefixed batches", weak=weak)


def _maxwell(view: View) -> Hint | None:
    value = view.value or b""
    if not value.startswith(b"{"):
        return _broken(f"key is the version word 00…01 alone, but the value begins with {start(value)}")
    told = {"framing": "key is the version word 00…01 alone, value holds JSON objects back to back: Maxwell's rows"}
    fits = view.names >= _ROW or b'"database"' in value[:256]
    return Hint(protocol="maxwell", evidence=told, framing="JSON objects back to back", weak=not fits)


def _maxwell_ddl(view: View, key: bytes) -> Hint | None:
    if _object(key).get("t") != 2 or not view.names >= _STATEMENT:
        return None
    told = {"ddl": "key is bare JSON with `t` 2, value a JSON object with `sql`: a Maxwell statement"}
    return Hint(protocol="maxwell", evidence=told, framing="JSON objects back to back")


def _object(payload: bytes) -> dict[str, Any]:
    try:
        return load(payload, "a part")
    except DecodeError:
        return {}
