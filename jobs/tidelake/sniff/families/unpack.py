"""Removes the wrappings of a message: a claim-check file around the record, compression around the value, JSON inside."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from tidelake.config.options import Compression, SinkOptions
from tidelake.errors import DecodeError
from tidelake.sniff.families.hint import View
from tidelake.wire.claim_check import opened
from tidelake.wire.compression import LZ4_MAGIC, decompress
from tidelake.wire.json.json_text import load

CAP = 64 << 20  # bytes, before and after decompression
_CLAIM_CHECK = SinkOptions(large_message_handle_option="claim-check")
_NAME = re.compile(rb'[{,]\s*"([A-Za-z_]{1,40})"\s*:')
_HEAD = 4096  # bytes of truncated JSON that are searched for members


def view(key: bytes | None, value: bytes | None) -> View:
    """Return the message as families see it. Never raises."""
    if value is None or len(value) > CAP:
        return View(key=key, value=value, plain=value or b"")
    inner_key, inner, wrapped = key, value, False
    try:
        found_key, found = opened(key, value, _CLAIM_CHECK)
        if found is not value and found is not None:
            inner_key, inner, wrapped = found_key, found, True
    except DecodeError:
        pass  # it only begins like one
    method, plain = unpacked(inner)
    seen = View(key=inner_key, value=inner, claim_check=wrapped, compression=method, plain=plain)
    return _with_members(seen) if plain.lstrip()[:1] == b"{" else seen


def unpacked(data: bytes) -> tuple[Compression, bytes]:
    """Return (compression, decompressed bytes). Snappy has no magic bytes: it is assumed if a block's declared size is right."""
    if data.startswith(LZ4_MAGIC):
        inside = _tried(data, "lz4")
        return ("none", data) if inside is None else ("lz4", inside)
    if len(data) < 3:
        return "none", data
    inside = _tried(data, "snappy")
    return ("none", data) if inside is None or inside is data else ("snappy", inside)


def compression_sentence(view: View) -> Mapping[str, str]:
    """Return evidence of the compression; empty without compression."""
    if view.compression == "none":
        return {}
    return {"compression": sentence_of(view.compression, view.value or b"", len(view.plain))}


def sentence_of(method: Compression, data: bytes, size: int) -> str:
    """Say what shows that data is compressed with this method."""
    if method == "lz4":
        return f"04 22 4d 18: an LZ4 frame of {len(data):,} bytes, {size:,} inside"
    return f"a raw snappy block: its declared size of {size:,} bytes is what {len(data):,} bytes hold"


def _tried(data: bytes, method: Compression) -> bytes | None:
    try:
        return decompress(data, method, CAP, "the value")
    except DecodeError:
        return None


def _with_members(seen: View) -> View:
    try:
        members = load(seen.plain, "the value")
    except DecodeError as e:
        names = frozenset(name.decode() for name in _NAME.findall(seen.plain[:_HEAD]))
        return replace(seen, names=names, broken=f"{e.code}: {e.message}")
    return replace(seen, members=members, names=frozenset(members))
