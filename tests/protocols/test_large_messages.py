"""Compression, claim-check files and size caps (docs/reference/protocols.md 1.5) of Open Protocol and Canal-JSON."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa
import pytest

from tests.protocols.json_messages import both, canal, column, compact, decoded, open_key, open_message, open_raw, refused
from tidelake.config.options import SinkOptions
from tidelake.protocols import Context

ROW = {"id": column(3, 1, 11, key=True), "v": column(15, "a", 64)}
KEY, VALUE = open_message((open_key(), {"u": ROW}))
CANAL = (None, compact(canal()))


def options(**values: Any) -> Context:
    return Context(options=SinkOptions(**values))


@pytest.mark.parametrize("method", ["snappy", "lz4"])
def test_each_value_is_compressed_inside_its_frame_and_keys_and_resolved_are_not(method: str) -> None:
    codec = pa.Codec(method)
    keys = [compact(open_key(ts)) for ts in (1, 2)]
    packed = open_raw(*((k, codec.compress(compact({"u": ROW}), asbytes=True)) for k in keys), (b'{"ts":3,"t":3}', b""))
    events = both("open", packed, options(large_message_handle_compression=method), compiled=False)
    assert [(e.kind, e.commit_ts, e.after) for e in events] == [
        ("row", 1, [b"1", b"a"]),
        ("row", 2, [b"1", b"a"]),
        ("resolved", 3, None),
    ]
    assert both("open", (KEY, VALUE), options(large_message_handle_compression=method), compiled=False) == both("open", (KEY, VALUE))


def test_a_snappy_block_whose_length_byte_looks_like_a_brace_is_still_compressed() -> None:
    value = compact({"u": {"id": column(3, 1, 11, key=True), "v": column(15, "x" * 55, 64)}})
    value = value.replace(b"x" * 55, b"x" * (123 - len(value) + 55))
    packed = pa.Codec("snappy").compress(value, asbytes=True)
    assert (len(value), packed[:1]) == (123, b"{")
    event = both("open", open_raw((compact(open_key()), packed)), options(large_message_handle_compression="snappy"), compiled=False)[0]
    assert event.after is not None
    assert event.after[0] == b"1"


BOMB = pa.Codec("lz4").compress(b" " * (1 << 20), asbytes=True)
COMPRESSED = {
    "snappy of nothing": ("snappy", b"\x80", "BAD_COMPRESSION"),
    "snappy without end": ("snappy", b"\xff" * 9, "BAD_COMPRESSION"),
    "snappy cut": ("snappy", pa.Codec("snappy").compress(VALUE[8:], asbytes=True)[:-1], "BAD_COMPRESSION"),
    "snappy that announces too much": ("snappy", b"\xff\xff\xff\xff\x0f\x00", "TOO_LARGE"),
    "snappy that cannot hold what it announces": ("snappy", b"\x80\x80\x04\x00a", "BAD_COMPRESSION"),
    "lz4 without its mark": ("lz4", b"abcdefgh", "BAD_COMPRESSION"),
    "lz4 cut": ("lz4", pa.Codec("lz4").compress(VALUE[8:], asbytes=True)[:-9], "BAD_COMPRESSION"),
    "lz4 with more after it": ("lz4", pa.Codec("lz4").compress(VALUE[8:], asbytes=True) + b"abc", "BAD_COMPRESSION"),
    "lz4 bomb": ("lz4", BOMB, "TOO_LARGE"),
}


@pytest.mark.parametrize("name", COMPRESSED)
def test_a_bad_compressed_value_has_its_error(name: str) -> None:
    method, value, code = COMPRESSED[name]
    context = Context(options=SinkOptions(large_message_handle_compression=method), max_bytes=1 << 19)
    assert refused("open", open_raw((compact(open_key()), value)), context).code == code


def test_the_cap_holds_for_the_sum_of_a_message_s_decompressed_values() -> None:
    half = pa.Codec("snappy").compress(b'{"u":1}' + b" " * 400_000, asbytes=True)
    context = Context(options=SinkOptions(large_message_handle_compression="snappy"), max_bytes=500_000)
    assert refused("open", open_raw(*[(compact(open_key()), half)] * 2), context).code == "TOO_LARGE"


CLAIM = options(large_message_handle_option="claim-check")


def claim_file(key: bytes | None, value: bytes | None, **more: Any) -> bytes:
    sides = {"key": key, "value": value}
    return compact({n: None if b is None else base64.b64encode(b).decode() for n, b in sides.items()} | more)


def test_a_claim_check_file_stands_for_the_message_inside() -> None:
    assert both("open", (None, claim_file(KEY, VALUE)), CLAIM, compiled=False) == both("open", (KEY, VALUE))
    assert both("open", (b"", claim_file(KEY, VALUE)), CLAIM, compiled=False) == both("open", (KEY, VALUE))
    assert refused("open", (None, claim_file(KEY, VALUE))).code == "TRUNCATED"


@pytest.mark.parametrize(
    ("file", "code"),
    [
        (claim_file(KEY, None), "NULL_VALUE"),
        (claim_file(None, VALUE), "TRUNCATED"),
        (claim_file(KEY, VALUE, x=1), "BAD_STRUCTURE"),
        (b'{"key":5,"value":"YQ=="}', "BAD_VALUE"),
        (b'{"key":"","value":"YQ"}', "BAD_VALUE"),
        ('{"key":"é","value":""}'.encode(), "BAD_VALUE"),
        (b'{"key":', "BAD_JSON"),
    ],
)
def test_a_bad_claim_check_file_has_its_error(file: bytes, code: str) -> None:
    assert refused("open", (None, file), CLAIM).code == code


@pytest.mark.parametrize("method", ["snappy", "lz4"])
def test_the_whole_value_is_compressed(method: str) -> None:
    context = Context(options=SinkOptions(large_message_handle_compression=method))
    packed = pa.Codec(method).compress(compact(canal()), asbytes=True)
    assert both("canal-json", (b"", packed), context, compiled=False) == both("canal-json", CANAL)
    assert both("canal-json", CANAL, context, compiled=False) == both("canal-json", CANAL)
    assert refused("canal-json", (b"", packed[:-9]), context).code == "BAD_COMPRESSION"


def test_a_canal_claim_check_file_has_no_key() -> None:
    context = Context(options=SinkOptions(large_message_handle_option="claim-check"))
    file = compact({"key": None, "value": base64.b64encode(compact(canal())).decode()})
    assert both("canal-json", (None, file), context, compiled=False) == both("canal-json", CANAL)
    assert both("canal-json", CANAL, context) == both("canal-json", CANAL)
    assert refused("canal-json", (None, file)).code == "BAD_STRUCTURE"


def test_a_value_above_the_cap_is_too_large_before_and_after_decompression() -> None:
    value = compact(canal())
    assert decoded("canal-json", [(None, value)], Context(max_bytes=len(value) - 1)) == ["TOO_LARGE"]
    packed = pa.Codec("snappy").compress(value + b" " * 1000, asbytes=True)
    small = Context(options=SinkOptions(large_message_handle_compression="snappy"), max_bytes=len(value) + 999)
    assert refused("canal-json", (None, packed), small).code == "TOO_LARGE"
