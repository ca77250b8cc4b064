"""All families of protocols applied to a message."""

from __future__ import annotations

from dataclasses import replace

from tidelake.sniff.families import avro, canal_json, debezium, lines, maxwell, packets, simple, versioned
from tidelake.sniff.families.hint import Hint, View
from tidelake.sniff.families.unpack import view

_FAMILIES = (versioned.look, maxwell.look, debezium.look, simple.look, canal_json.look, avro.look, packets.look, lines.look)


def hints(key: bytes | None, value: bytes | None) -> tuple[View, list[Hint]]:
    """Return (view of the message, a hint for every protocol whose form it has; those with the least doubt first)."""
    seen = view(key, value)
    found = [hint for look in _FAMILIES if (hint := look(seen)) is not None]
    if seen.claim_check:
        found = [_in_a_file(hint) for hint in found]
    return seen, sorted(found, key=lambda hint: hint.weak)


def _in_a_file(hint: Hint) -> Hint:
    told = {"claim-check": "the value is a claim-check file: a JSON object with key and value in base64"}
    return replace(hint, evidence=told | dict(hint.evidence), options=dict(hint.options) | {"large_message_handle_option": "claim-check"})
