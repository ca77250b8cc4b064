"""Describes a message that has the form of no protocol."""

from __future__ import annotations

from tidelake.sniff.families.debezium import foreign
from tidelake.sniff.families.hint import View, start

_MARKS = {
    b"PAR1": "a Parquet file",
    b"Obj\x01": "an Avro container file",
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "an LZ4 frame",
    b"\x82SNAPPY\x00": "a snappy file of Java",
    b"PK\x03\x04": "a zip file",
}
_SCHEMA_FILE = frozenset({"TableColumns", "TableVersion"})


def described(view: View) -> str:
    """Return one sentence about the message, with its first bytes in hex."""
    if view.value is None:
        return f"null value, key {start(view.key)}: no protocol writes that but Avro, whose keys begin with 00 or 03"
    return f"{_kind(view)}; value begins with {start(view.value, 16)}, key with {start(view.key)}"


def _kind(view: View) -> str:
    if known := foreign(view):
        return known
    if view.names >= _SCHEMA_FILE:
        return "a schema file of TiCDC's storage sink, for `tidelake inspect --table-schemas`"
    if view.names == {"checkpoint-ts"}:
        return "the metadata file of TiCDC's storage sink"
    inside = "" if view.compression == "none" else f" in {view.compression}"
    if view.names:
        return f"a JSON object{inside} with the members {', '.join(sorted(view.names)[:8])}"
    for mark, name in _MARKS.items():
        if (view.value or b"").startswith(mark):
            return name
    return "text" if _is_text(view.plain) else "bytes without a known mark" if view.value else "an empty value"


def _is_text(data: bytes) -> bool:
    try:
        text = data[:256].decode(errors="strict" if len(data) <= 256 else "ignore")
    except UnicodeDecodeError:
        return False
    return bool(text) and all(c.isprintable() or c in "\r\n\t" for c in text)
