"""Hashes of many batches are those of Python's hmac, whatever was hashed before."""

from __future__ import annotations

import hmac

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.searches import examples
from tidelake.wire import hashes
from tidelake.wire.hashes import Hashes, hex_digits
from tidelake.wire.kernels.hmac_sha256 import hmac_sha256

KEY = b"a key of these tests, long enough"
HASHES = st.none() | st.binary(min_size=32, max_size=32)
BATCH = st.lists(st.sampled_from([b"", b"a", b"b", b"c", b"d", b"e", b"f" * 70, None]), max_size=12)


def hashed(values: list[bytes | None]) -> list[bytes | None]:
    return [None if v is None else hmac.digest(KEY, v, "sha256") for v in values]


@settings(max_examples=examples(200))
@given(batches=st.lists(BATCH, max_size=6), most=st.integers(0, 9), first=st.integers(0, 2))
def test_batches_are_hashed_as_python_would(batches: list[list[bytes | None]], most: int, first: int) -> None:
    known = Hashes(KEY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashes, "_MOST", most)
        for values in batches:
            assert known.of(pa.array(values, pa.binary())[first:]).to_pylist() == hashed(values)[first:]
            assert len(known.hashes) <= most


@settings(max_examples=examples(100))
@given(
    lengths=st.lists(st.integers(0, 130) | st.sampled_from([55, 56, 63, 64, 119, 120, 1000]), max_size=100),
    key=st.binary(min_size=16, max_size=80),
)
def test_values_of_any_length_are_hashed_beside_one_another(lengths: list[int], key: bytes) -> None:
    values = [bytes((n + i) % 251 for i in range(length)) for n, length in enumerate(lengths)]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    found = hmac_sha256(key, np.frombuffer(b"".join(values) + b"\0", np.uint8), offsets)
    assert found.tolist() == [list(hmac.digest(key, v, "sha256")) for v in values]


def test_a_value_is_hashed_once_while_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    known, counted = Hashes(KEY), list[int]()
    whole = Hashes._hashed
    monkeypatch.setattr(Hashes, "_hashed", lambda self, values: (counted.append(len(values)), whole(self, values))[1])
    for values in ([b"a", b"b", b"c"], [b"c", b"a", b"d", b"a"], [b"d", b"b"]):
        known.of(pa.array(values, pa.binary()))
    assert counted == [3, 1]


@settings(max_examples=examples(200))
@given(cells=st.lists(HASHES, max_size=9), text=st.sets(st.integers(0, 8)), first=st.integers(0, 2))
def test_hashes_are_printed_as_hex_digits_once(cells: list[bytes | None], text: set[int], first: int) -> None:
    digits = [None if c is None else c.hex() for c in cells]
    sent = [c if c is None or n not in text else c.hex().encode() for n, c in enumerate(cells)]
    assert hex_digits(pa.array(sent, pa.binary())[first:]).to_pylist() == digits[first:]
