"""Hashes of rows, against SipHash in plain Python, and the numbers that hashes get."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelake.wire.key_numbers import KeyNumbers
from tidelake.wire.row_hashes import row_hashes

KEY = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
WORD = (1 << 64) - 1
KINDS = {
    "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "l": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "d": (pa.decimal128(38, 2), st.decimals(-(10**30), 10**30, places=2)),
    "x": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, -1e300])),
    "f": (pa.float32(), st.sampled_from([0.0, -0.0, 1.5])),
    "s": (pa.string(), st.text(max_size=20)),
    "b": (pa.binary(), st.binary(max_size=20)),
    "day": (pa.date32(), st.dates(date(1, 1, 1))),
    "t": (pa.timestamp("us"), st.datetimes(datetime(1, 1, 1))),  # noqa: DTZ001 - a DATETIME
    "v": (pa.list_(pa.float32()), st.lists(st.sampled_from([0.0, -0.0, 1.5]), max_size=3)),
    "c": (pa.list_(pa.binary()), st.lists(st.none() | st.binary(max_size=9), max_size=3)),
}


def sip(words: list[int], key: tuple[int, int]) -> tuple[int, int]:
    """SipHash-1-3 with 128 bits of a sequence of words."""
    v = [0x736F6D6570736575 ^ key[0], 0x646F72616E646F6D ^ 0xEE ^ key[1], 0x6C7967656E657261 ^ key[0], 0x7465646279746573 ^ key[1]]

    def turned(x: int, bits: int) -> int:
        return (x << bits | x >> (64 - bits)) & WORD

    def around() -> None:
        v[0] = (v[0] + v[1]) & WORD
        v[1] = turned(v[1], 13) ^ v[0]
        v[0] = turned(v[0], 32)
        v[2] = (v[2] + v[3]) & WORD
        v[3] = turned(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & WORD
        v[3] = turned(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & WORD
        v[1] = turned(v[1], 17) ^ v[2]
        v[2] = turned(v[2], 32)

    for word in words:
        v[3] ^= word
        around()
        v[0] ^= word
    out = []
    for place, mark in ((2, 0xEE), (1, 0xDD)):
        v[place] ^= mark
        for _ in range(3):
            around()
        out.append(v[0] ^ v[1] ^ v[2] ^ v[3])
    return out[0], out[1]


def test_a_hash_is_siphash_of_the_words_of_a_row() -> None:
    columns = [pa.array([-1, None]), pa.array(["twelve bytes", ""]), pa.array([Decimal(-1), Decimal(2**70)], pa.decimal128(38, 0))]
    first = [WORD, 12, int.from_bytes(b"twelve b", "little"), int.from_bytes(b"ytes", "little"), WORD, WORD, 0]
    second = [0, 0, 0, 2**6, 1]
    assert [tuple(map(int, h)) for h in row_hashes(columns, KEY)] == [sip(first, KEY), sip(second, KEY)]


def plain(value: Any) -> Any:
    """A value as it is compared: -0.0 is 0.0."""
    if isinstance(value, list):
        return tuple(plain(v) for v in value)
    return value + 0.0 if isinstance(value, float) else value


@settings(max_examples=200, deadline=None)
@given(data=st.data(), kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4), cut=st.integers(0, 3))
def test_rows_have_equal_hashes_if_and_only_if_they_are_equal(data: st.DataObject, kinds: list[str], cut: int) -> None:
    distinct = data.draw(st.lists(st.tuples(*(st.none() | KINDS[k][1] for k in kinds)), min_size=1, max_size=6))
    rows = data.draw(st.lists(st.sampled_from(distinct), min_size=cut, max_size=20))
    columns = [pa.array([r[n] for r in rows], KINDS[k][0]).slice(cut) for n, k in enumerate(kinds)]
    found = [tuple(map(int, h)) for h in row_hashes(columns, KEY)]
    wanted = [tuple(map(plain, r)) for r in rows[cut:]]
    assert len(set(found)) == len(set(wanted)) == len(set(zip(found, wanted, strict=True)))


def test_lists_of_the_same_bytes_differ_by_their_parts() -> None:
    lists = [None, [], [None], [b""], [b"ab"], [b"a", b"b"], [b"a", None, b"b"], [b"", b"ab"], [None, b"ab"], [b"ab", None]]
    assert len(np.unique(row_hashes([pa.array(lists, pa.list_(pa.binary()))], KEY), axis=0)) == len(lists)


def test_bytes_behind_a_null_in_a_list_do_not_count() -> None:
    data, offsets = pa.py_buffer(b"abc"), pa.py_buffer(np.array([0, 1, 2, 3], np.int32))
    hidden = pa.Array.from_buffers(pa.binary(), 3, [pa.py_buffer(b"\x05"), offsets, data])
    images = pa.ListArray.from_arrays(pa.array([0, 3], pa.int32()), hidden)
    assert images.to_pylist() == [[b"a", None, b"c"]]
    plain_ones = pa.array(images.to_pylist(), pa.list_(pa.binary()))
    assert row_hashes([images], KEY).tolist() == row_hashes([plain_ones], KEY).tolist()


def test_nulls_of_more_than_64_columns_differ() -> None:
    rows = [[None if n == m else 0 for n in range(130)] for m in range(131)]
    columns = [pa.array([r[n] for r in rows], pa.int64()) for n in range(130)]
    assert len(np.unique(row_hashes(columns, KEY), axis=0)) == 131


@settings(max_examples=100, deadline=None)
@given(parts=st.lists(st.lists(st.integers(0, 5000), max_size=300), max_size=8))
def test_numbers_are_given_in_the_order_of_the_first_of_each(parts: list[list[int]]) -> None:
    keys, known = KeyNumbers(), dict[int, int]()
    for part in parts:
        hashes = np.array([(n % 7, n) for n in part], np.uint64).reshape(-1, 2)
        assert keys.found(hashes).tolist() == [known.get(n, -1) for n in part]
        assert keys.added(hashes).tolist() == [known.setdefault(n, len(known)) for n in part]
    assert keys.count == len(known)


def test_many_hashes_grow_the_table() -> None:
    keys = KeyNumbers()
    for first in range(0, 100_000, 10_000):
        hashes = np.stack([np.arange(first, first + 10_000)] * 2, axis=1).astype(np.uint64)
        assert np.array_equal(keys.added(hashes), np.arange(first, first + 10_000))
    assert keys.count == 100_000
