from __future__ import annotations

import re
from base64 import b64decode, b64encode

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelake.archives.readers.base64_text import Base64Error, decode, is_base64


@given(st.lists(st.none() | st.binary(max_size=40)), st.integers(0, 3))
def test_decoding_a_column_is_decoding_each_value(values: list[bytes | None], skipped: int) -> None:
    texts = pa.array([None if v is None else b64encode(v).decode() for v in values], pa.string())
    decoded = decode(texts.slice(skipped))
    decoded.validate(full=True)
    assert decoded.to_pylist() == values[skipped:]


_RFC = re.compile(rb"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


@given(st.lists(st.text("AQg=+/ \n", max_size=8).map(str.encode), max_size=4))
def test_a_column_is_accepted_exactly_if_each_of_its_values_is_padded_base64(values: list[bytes]) -> None:
    wrong = [i for i, value in enumerate(values) if not _RFC.fullmatch(value)]
    assert wrong == [i for i, value in enumerate(values) if not is_base64(value)]
    column = pa.array(values, pa.binary())
    if wrong:
        with pytest.raises(Base64Error) as caught:
            decode(column)
        assert caught.value.row == wrong[0]
    else:
        assert decode(column).to_pylist() == [b64decode(value) for value in values]


def test_runs_longer_than_the_processors_cache_are_decoded_whole() -> None:
    values = [bytes([i % 251]) * (i * 37 % 9_000) for i in range(200)]
    assert decode(pa.array([b64encode(v) for v in values])).to_pylist() == values


@pytest.mark.parametrize("text", ["QQ=A", "Q===", "====", "QQ", "Q Q=", "QQ==QQ==", "é=="])
def test_text_that_is_not_padded_base64_is_refused_with_its_row(text: str) -> None:
    with pytest.raises(Base64Error, match="row 1 is not base64"):
        decode(pa.array(["QQ==", text], pa.string()))
