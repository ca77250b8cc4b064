"""Debezium's envelope, as TiCDC and as Debezium's connectors for MySQL and MariaDB write it (docs/reference/protocols.md 9.2)."""

from __future__ import annotations

from typing import Any

from tidelake.protocols.debezium_fields import UPSTREAM
from tidelake.sniff.families.hint import Hint, OptionValue, View
from tidelake.sniff.families.unpack import compression_sentence

_FRAMING = "one JSON envelope a message"
_OURS = "TiCDC"
_ROW = frozenset({"before", "after", "source", "op"})  # members of a row without `payload`
_STATEMENT = frozenset({"source", "databaseName", "ddl"})


def look(view: View) -> Hint | None:
    """Recognise TiCDC's Debezium, and that of the connectors for MySQL and MariaDB; None for other connectors."""
    if view.names >= _ROW or view.names >= _STATEMENT:
        return _bare(view)
    if "payload" not in view.names:
        return None
    payload = (view.members or {}).get("payload")
    source = payload.get("source") if isinstance(payload, dict) else None
    if not isinstance(payload, dict) or not isinstance(source, dict):
        told = {"broken": f"value begins like a Debezium envelope, but {view.broken or 'its payload has no source'}"}
        return Hint(protocol="debezium", evidence=told, framing=_FRAMING, compression=view.compression, weak=True)
    if source.get("connector") in UPSTREAM:
        return _upstream(view, source, "JsonConverter's schemas are on" if "schema" in view.names else "")
    if source.get("connector", _OURS) != _OURS:
        return None
    evidence, options = _shown(view, payload, source)
    return Hint(protocol="debezium", evidence=evidence, framing=_FRAMING, compression=view.compression, options=options)


def _bare(view: View) -> Hint | None:
    source = (view.members or {}).get("source")
    known = isinstance(source, dict) and source.get("connector") in UPSTREAM
    return _upstream(view, source, "JsonConverter's schemas are off") if known and isinstance(source, dict) else None


def _upstream(view: View, source: dict[str, Any], schemas: str) -> Hint:
    evidence = {"members": f'value is a Debezium envelope of connector {source["connector"]}: no commit ts, `from = "offsets"`'}
    if schemas:
        evidence[schemas] = schemas
    return Hint(protocol="debezium", evidence=evidence, framing=_FRAMING, compression=view.compression)


def _shown(view: View, payload: dict[str, Any], source: dict[str, Any]) -> tuple[dict[str, str], dict[str, OptionValue]]:
    evidence = {"members": "value is a JSON object with `payload.source`, connector TiCDC: Debezium"} | dict(compression_sentence(view))
    options: dict[str, OptionValue] = {"large_message_handle_compression": view.compression}
    schema = (view.members or {}).get("schema")
    options["debezium_disable_schema"] = schema is None
    if schema is None:
        evidence["no schema"] = "`schema` is left out: debezium-disable-schema is on"
    else:
        evidence["schema"] = "`schema` describes the columns"
    if payload.get("op") == "m":
        evidence["watermark"] = "op `m` is a watermark: the TiDB extension is on"
        options["enable_tidb_extension"] = True
    elif schema is not None:
        on = '"tidb_type"' in view.plain.decode(errors="replace")
        options["enable_tidb_extension"] = on
        if on:
            evidence["extension"] = "the schema's fields have `tidb_type`: the TiDB extension is on"
    if payload.get("op") == "u" and payload.get("before") is None:
        evidence["old"] = "an update has no `before`: old values are not sent"
        options["debezium_output_old_value"] = False
    return evidence, options


def foreign(view: View) -> str:
    """Describe a Debezium envelope of another connector; empty for anything else."""
    members = view.members or {}
    payload = members.get("payload", members)
    source = payload.get("source") if isinstance(payload, dict) else None
    if not isinstance(source, dict) or source.get("connector", _OURS) in {_OURS, *UPSTREAM}:
        return ""
    return f"a Debezium envelope of connector {str(source['connector'])[:40]!r}, not of TiCDC, mysql or mariadb"
