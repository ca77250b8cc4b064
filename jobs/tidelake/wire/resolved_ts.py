"""The resolved ts in messages that hold nothing else, found without the decoders: landing compiles nothing.

open        key: 1, size, {"ts": …, "t": 3}; value: one empty value (docs/reference/protocols.md 2.1)
craft       one event of type 3: headers without names, no dictionary (3.1, 3.3)
avro        value: 02, u64be (4)
canal-json  {"type": "TIDB_WATERMARK", "_tidb": {"watermarkTs": …}} (5)
debezium    {"payload": {"op": "m", "source": {"commit_ts": …}}} (9)
simple      {"type": "WATERMARK", "commitTs": …}; Avro: union branch 11, enum 0, branch 0, version, commitTs (9)

What does not look like one, as TiCDC writes it, is none: the decoders say what it is. Among them are compressed JSON, and JSON that an
archiver wrote anew in another order.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.errors import DecodeError
from tidelake.wire.kernels.arrays import Longs
from tidelake.wire.kernels.varint import Region, reversed_uvarint

_LONG_CRAFT, _LONG_SIMPLE_AVRO, _LONG_JSON = 24, 40, 512
_LONG_DEBEZIUM = 8 << 10  # with its schema
_EMPTY_VALUE = bytes(8)
_VERSION = (1).to_bytes(8, "big")
_U64 = 1 << 64


@dataclass(frozen=True, slots=True)
class _Form:
    """sizes: the fewest and the most bytes of such a value; sign: bytes that are somewhere in it, or at its begin; ts: of key and value."""

    sizes: tuple[int, int]
    sign: bytes
    ts: Callable[[bytes, bytes], object]
    at_begin: bool = True


def resolved(protocol: str, messages: pa.RecordBatch) -> tuple[Longs, list[int]]:
    """Rows of a MESSAGE batch that are resolved events, and their resolved ts (TSO, unsigned). None where the protocol has none."""
    form = _FORMS.get(protocol)
    if form is None or not len(messages):
        return np.zeros(0, np.int64), []
    values = messages.column("value")
    sizes = pc.fill_null(pc.binary_length(values), -1)
    fit = pc.and_(pc.greater_equal(sizes, form.sizes[0]), pc.less_equal(sizes, form.sizes[1]))
    if not pc.any(fit).as_py():
        return np.zeros(0, np.int64), []
    signed = pc.starts_with(values, form.sign) if form.at_begin else pc.match_substring(pc.if_else(fit, values, b""), form.sign)
    rows = np.flatnonzero(pc.and_(fit, pc.fill_null(signed, False)).to_numpy(zero_copy_only=False))
    found = [(row, ts) for row in rows.tolist() if (ts := _ts(form, messages, row)) is not None]
    return np.array([row for row, _ in found], np.int64), [ts for _, ts in found]


def _ts(form: _Form, messages: pa.RecordBatch, row: int) -> int | None:
    key, value = (messages.column(name)[row].as_py() for name in ("key", "value"))
    try:
        ts = form.ts(key or b"", value)
    except (ValueError, KeyError, TypeError, RecursionError, DecodeError):
        return None
    return ts if type(ts) is int and 0 <= ts < _U64 else None


def _open(key: bytes, value: bytes) -> object:
    if key[:8] != _VERSION or int.from_bytes(key[8:16], "big") != len(key) - 16:
        return None
    event = json.loads(key[16:])
    return event["ts"] if event["t"] == 3 else None


def _craft(key: bytes, value: bytes) -> object:
    message = Region(value, 0, len(value), "the message")
    size, end = reversed_uvarint(value)
    if size >= end:
        return None
    tables = Region(value, end - size, end, "the size tables")
    if message.uvarint("the version") != 1 or tables.uvarint("a count") != 2:
        return None
    headers, dictionary = tables.deltas(2, "a size")
    events = tables.uvarint("a count")
    ts, kind = message.uvarint("a commit ts"), message.uvarint("a type")
    names = [message.varint(what) for what in ("a partition", "a schema id", "a table id")]
    whole = tables.deltas(1, "a size") == [0] and not tables.left and message.at == 1 + headers == end - size
    return ts if (events, kind, names, dictionary) == (1, 3, [-1, -1, -1], 0) and whole else None


def _avro(key: bytes, value: bytes) -> object:
    return None if key else int.from_bytes(value[1:], "big")


def _canal_json(key: bytes, value: bytes) -> object:
    message = json.loads(value)
    return message["_tidb"]["watermarkTs"] if message["type"] == "TIDB_WATERMARK" else None


def _debezium(key: bytes, value: bytes) -> object:
    payload = json.loads(value)["payload"]
    return payload["source"]["commit_ts"] if payload["op"] == "m" else None


def _simple_json(key: bytes, value: bytes) -> object:
    message = json.loads(value)
    return message["commitTs"] if message["type"] == "WATERMARK" else None


def _simple_avro(key: bytes, value: bytes) -> object:
    message = Region(value, 3, len(value), "the message")
    version, ts, _ = (message.varint(what) for what in ("version", "commitTs", "buildTs"))
    return ts if version == 1 and not message.left else None


_FORMS = {
    "open": _Form((8, 8), _EMPTY_VALUE, _open),
    "craft": _Form((1, _LONG_CRAFT), b"\x01", _craft),
    "avro": _Form((9, 9), b"\x02", _avro),
    "canal-json": _Form((150, _LONG_JSON), b'{"id":0,"database":"","table":"",', _canal_json),
    "debezium": _Form((200, _LONG_DEBEZIUM), b'"op":"m"', _debezium, at_begin=False),
    "simple-json": _Form((60, _LONG_JSON), b'{"version":1,"type":"WATERMARK",', _simple_json),
    "simple-avro": _Form((1, _LONG_SIMPLE_AVRO), b"\x16\x00\x00", _simple_avro),
}
