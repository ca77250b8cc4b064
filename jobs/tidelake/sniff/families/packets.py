"""Craft and Canal protobuf: binary, without key (docs/reference/protocols.md 3, 9.4).

Their magic bytes are short, so messages are decoded whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelake.errors import DecodeError
from tidelake.history.event import Event
from tidelake.io.texts import plural
from tidelake.protocols import Context, decoder
from tidelake.sniff.families.hint import Hint, OptionValue, View, start

_CRAFT = b"\x01"
_PACKET = (b"\x10\x01\x18\x07", b"\x18\x07")  # version 1 and type MESSAGES; a default can be omitted
_CAP = 16 << 20  # maximum bytes to decode here


def look(view: View) -> Hint | None:
    """Recognise Craft or Canal. Neither protocol writes claim-check files."""
    value = view.value
    if not value or view.names or view.claim_check or len(value) > _CAP:
        return None
    if value.startswith(_CRAFT):
        return _craft(value)
    return _canal(value)


def _craft(value: bytes) -> Hint | None:
    try:
        events = len(decoder("craft").read(None, value, Context()))
    except DecodeError as e:
        if len(value) < 8:
            return None
        told = {"broken": f"value begins with Craft's version byte 0x01, but {e.code}: {e.message}"}
        return Hint(protocol="craft", evidence=told, framing="columnar batches", weak=True)
    told = {"form": f"value begins with the version byte 0x01 and its size tables account for every byte: Craft, {plural(events, 'event')}"}
    return Hint(protocol="craft", evidence=told, framing="columnar batches")


def _canal(value: bytes) -> Hint | None:
    marked = value.startswith(_PACKET)
    try:
        events = decoder("canal").read(None, value, Context())
    except DecodeError as e:
        told = {"broken": f"value begins like a Canal packet of messages ({start(value, 4)}), but {e.code}: {e.message}"}
        return Hint(protocol="canal", evidence=told, framing="protobuf packets", weak=True) if marked else None
    told = {"form": f"value is a protobuf Packet of type MESSAGES ({start(value, 4)}) and {plural(len(events), 'event')}: Canal"}
    options: dict[str, OptionValue] = {}
    if full := _full_type(events):
        told["types"] = f"columns have full types like `{full[:40]}`: content-compatible, or Alibaba Canal itself"
        options["content_compatible"] = True
    return Hint(protocol="canal", evidence=told, framing="protobuf packets", options=options, weak=not marked and not events)


def _full_type(events: Iterable[Event]) -> str | None:
    columns = (
        column for event in events for row_schema in (event.row_schema, event.before_schema) if row_schema for column in row_schema.columns
    )
    return next((column.full_type for column in columns if column.full_type), None)
