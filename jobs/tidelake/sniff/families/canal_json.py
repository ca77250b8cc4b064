"""Canal-JSON (docs/reference/protocols.md 5.4).

Variants: TiCDC's with and without extension, content-compatible, only changed columns; and Alibaba Canal's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidelake.sniff.families.hint import Hint, OptionValue, View
from tidelake.sniff.families.unpack import compression_sentence

_OURS = frozenset({"pkNames", "isDdl", "mysqlType", "sqlType"})
_HEAD = frozenset({"pkNames", "isDdl"})  # members of truncated text: no other protocol has them at any level
_MEMBERS = frozenset({"database", "table", "type"})
_LARGE = {"onlyHandleKey": "handle-key-only", "claimCheckLocation": "claim-check"}
_BARE = frozenset("tinyint smallint mediumint int bigint char varchar binary varbinary decimal bit year enum set".split())
_FRAMING = "one JSON object a message"


def look(view: View) -> Hint | None:
    """Recognise Canal-JSON."""
    shown = sorted(_OURS & view.names)
    if not shown or not (view.names & _HEAD if view.broken else view.names >= _MEMBERS):
        return None
    evidence = {"members": f"value is a JSON object with {', '.join(f'`{name}`' for name in shown[:3])}: Canal-JSON"}
    if view.broken or view.members is None:
        broken = {"broken": f"value begins like Canal-JSON, but {view.broken}"}
        return Hint(protocol="canal-json", evidence=broken, framing=_FRAMING, compression=view.compression, weak=True)
    options: dict[str, OptionValue] = {"large_message_handle_compression": view.compression}
    evidence |= compression_sentence(view)
    _extension(view.members, evidence, options)
    _flavour(view.members, evidence, options)
    return Hint(protocol="canal-json", evidence=evidence, framing=_FRAMING, compression=view.compression, options=options)


def _extension(members: Mapping[str, Any], evidence: dict[str, str], options: dict[str, OptionValue]) -> None:
    extension = members.get("_tidb")
    if not isinstance(extension, dict):
        options["enable_tidb_extension"] = False
        return
    name = "watermarkTs" if "watermarkTs" in extension else "commitTs"
    evidence[name] = f"`_tidb.{name}` is present: the TiDB extension is on"
    options["enable_tidb_extension"] = True
    for member, option in _LARGE.items():
        if extension.get(member):
            evidence[member] = f"`_tidb.{member}` is present: large messages are handled as {option}"
            options["large_message_handle_option"] = option


def _flavour(members: Mapping[str, Any], evidence: dict[str, str], options: dict[str, OptionValue]) -> None:
    """Add which program wrote it, and how types and old values are written."""
    data, number = members.get("data"), members.get("id")
    rows = len(data) if isinstance(data, list) else 0
    if "_tidb" not in members and (rows > 1 or (type(number) is int and number > 0)):
        shown = f"{rows} rows in `data`" if rows > 1 else f"`id` {number}"
        evidence["flavour"] = f"{shown} and no `_tidb`: a flat message of Alibaba Canal itself"
        options["official_canal"] = True
        return
    types = members.get("mysqlType")
    words = [word for word in types.values() if isinstance(word, str)] if isinstance(types, dict) else []
    full = next((word for word in words if "(" in word), None)
    if full is not None:
        evidence["types"] = f"`mysqlType` holds full types like `{full[:40]}`: content-compatible"
        options["content_compatible"] = True
    elif any(word.split(" ")[0] in _BARE for word in words):
        options["content_compatible"] = False
        _changed_only(members, evidence, options)


def _changed_only(members: Mapping[str, Any], evidence: dict[str, str], options: dict[str, OptionValue]) -> None:
    new, old = (side[0] if isinstance(side := members.get(name), list) and side else None for name in ("data", "old"))
    if members.get("type") == "UPDATE" and isinstance(new, dict) and isinstance(old, dict) and len(old) < len(new):
        evidence["old"] = f"an UPDATE has {len(new)} columns in `data` and {len(old)} in `old`: only changed columns are sent"
        options["only_output_updated_columns"] = True
