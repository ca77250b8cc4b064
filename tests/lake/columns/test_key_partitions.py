"""The partition of a row in a TiDB table by KEY, against zlib's CRC-32 of the texts in plain Python."""

from __future__ import annotations

import zlib
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelake.lake.columns.fold_rules import Removed
from tidelake.lake.columns.key_partitions import key_partitions
from tidelake.lake.columns.pieces import Piece

KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1, -1, 0])),
    "bigint unsigned": (pa.decimal128(20, 0), st.integers(0, 2**64 - 1).map(Decimal) | st.just(Decimal(2**64 - 1))),
    "kept as text": (pa.string(), st.integers(-(2**63), 2**64).map(str)),
    "bytes": (pa.binary(), st.binary(max_size=40)),
}
NUMBERS = 1 << 13


def placed(row: tuple[Any, ...], partitions: int) -> int:
    """The rule of TiDB."""
    texts = (b"\0" if v is None else v if isinstance(v, bytes) else str(v).encode() for v in row)
    return zlib.crc32(b"".join(texts)) % partitions


@settings(max_examples=300, deadline=None)
@given(data=st.data(), kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4), partitions=st.integers(1, NUMBERS))
def test_a_row_is_where_the_checksum_of_its_texts_says(data: st.DataObject, kinds: list[str], partitions: int) -> None:
    rows = data.draw(st.lists(st.tuples(*(st.none() | KINDS[k][1] for k in kinds)), max_size=20))
    first, count = data.draw(st.integers(0, len(rows))), data.draw(st.integers(0, 20))
    columns = [pa.array([r[n] for r in rows], KINDS[k][0]).slice(first, count) for n, k in enumerate(kinds)]
    assert key_partitions(columns, partitions).tolist() == [placed(r, partitions) for r in rows[first:][:count]]


@pytest.mark.parametrize(
    ("row", "number"),
    [((None,), 59), ((2026,), 28), ((b"",), 0), ((b"a",), 857), ((b"a  ",), 321), ((1, None, -1), 256), ((None, None, None), 628)],
)
def test_rows_are_where_tidb_put_them(row: tuple[Any, ...], number: int) -> None:
    columns = [pa.array([v], pa.binary() if isinstance(v, bytes) else pa.int64()) for v in row]
    assert key_partitions(columns, 1021).tolist() == [number]


def test_a_removed_partition_has_its_rows_and_no_others() -> None:
    ids, tags = list(range(-50, 50)), [None if n % 3 else bytes([n % 256, 0, 32]) for n in range(100)]
    piece = Piece(0, pa.record_batch({"tag": pa.array(tags, pa.binary()), "id": pa.array(ids, pa.int64())}))
    gone = []
    for number in range(3):
        part = Removed(ts=1, column="id", values=(str(number),), modulus=3, hashed=("id", "tag"))
        assert part.columns == ("id", "tag")
        gone.append(part.of(piece).tolist())
        assert gone[-1] == [placed(row, 3) == number for row in zip(ids, tags, strict=True)]
    assert [sum(x) for x in zip(*gone, strict=True)] == [1] * 100
