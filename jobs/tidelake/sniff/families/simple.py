"""Simple in JSON and in Avro (docs/reference/protocols.md 9.1)."""

from __future__ import annotations

from tidelake.sniff.families.hint import Hint, OptionValue, View, start
from tidelake.sniff.families.unpack import compression_sentence

_MEMBERS = frozenset({"version", "type", "commitTs", "buildTs"})
_LARGE = {"handleKeyOnly": "handle-key-only", "claimCheckLocation": "claim-check"}
_OPENING = 0x16  # branch 11 of the outermost union
_KINDS = ("watermark", "bootstrap", "DDL", "row")


def look(view: View) -> Hint | None:
    """Recognise Simple."""
    return _json(view) if view.names else _avro(view)


def _json(view: View) -> Hint | None:
    if view.broken:
        fits = {"version", "type"} <= view.names and bool(view.names & {"commitTs", "schemaVersion", "tableID"})
        told = {"broken": f"value begins like Simple JSON, but {view.broken}"}
        return _hint("simple-json", told, view, {}, weak=True) if fits else None
    members = view.members or {}
    if not view.names >= _MEMBERS:
        return None
    evidence = {"members": f"value is a JSON object with `version` {members['version']} and `type` {members['type']!r:.20}: Simple"}
    options: dict[str, OptionValue] = {}
    for member, option in _LARGE.items():
        if members.get(member):
            evidence[member] = f"`{member}` is present: large messages are handled as {option}"
            options["large_message_handle_option"] = option
    if members.get("checksum") is not None:
        evidence["checksum"] = "`checksum` is present: row checksums are on"
        options["enable_row_checksum"] = True
    return _hint("simple-json", evidence, view, options, weak=members["version"] != 1)


def _avro(view: View) -> Hint | None:
    head = view.plain[:4]
    if len(head) < 4 or head[0] != _OPENING or head[1] != head[2] or head[1] not in (0, 2, 4, 6):
        return None
    kind = _KINDS[head[1] // 2]
    told = {f"opening {kind}": f"value begins with {start(head)}: union index 0x16 of Simple's schema, a {kind}, version {head[3] / 2:g}"}
    return _hint("simple-avro", told, view, {}, weak=head[3] != 2)


def _hint(protocol: str, evidence: dict[str, str], view: View, options: dict[str, OptionValue], *, weak: bool) -> Hint:
    options = options | {"large_message_handle_compression": view.compression}
    evidence = evidence | dict(compression_sentence(view))
    framing = "one JSON object a message" if protocol == "simple-json" else "one Avro record a message, no schema id"
    return Hint(protocol=protocol, evidence=evidence, framing=framing, compression=view.compression, options=options, weak=weak)
