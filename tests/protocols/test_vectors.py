"""Every vector of tests/data/vectors gives its events, or its error, by the general reader and by the columnar path alike."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.protocols import vectors
from tidelake.errors import DECODE_CODES, DecodeError
from tidelake.history.event import MESSAGE, RowSchema
from tidelake.protocols import decode, decoder

ALL = [pytest.param(v, id=f"{p}:{v['name']}") for p in vectors.PROTOCOLS for v in vectors.load(p)]
COUNTS = {"open": 235, "craft": 202, "avro": 125, "canal-json": 175, "canal": 27, "debezium": 23, "maxwell": 21, "csv": 32}
COUNTS |= {"simple-json": 50, "simple-avro": 28}


@pytest.mark.parametrize("protocol", vectors.PROTOCOLS)
def test_all_vectors_of_a_protocol_are_tried(protocol: str) -> None:
    assert len(vectors.load(protocol)) == COUNTS[protocol]


@pytest.mark.parametrize("vector", ALL)
def test_the_general_reader_gives_what_the_vector_says(vector: dict[str, Any]) -> None:
    read = decoder(vector["protocol"]).read
    if vector["expected"]["type"] == "error":
        with pytest.raises(DecodeError) as error:
            read(*vectors.record(vector), vectors.context(vector))
        assert error.value.code in DECODE_CODES
        return
    key, value = vectors.record(vector)
    events = [e for part in vectors.parts(vector, value) for e in read(key, part, vectors.context(vector))]
    want = vectors.expected(vector)
    got = [vectors.plain(e, w) for e, w in zip(events, want, strict=True)]
    assert vectors.same(got, want), f"\ngot  {got}\nwant {want}"


@pytest.mark.parametrize("vector", ALL)
def test_the_columnar_path_gives_what_the_vector_says(vector: dict[str, Any]) -> None:
    key, value = vectors.record(vector)
    parts = vectors.parts(vector, value)
    rows = [
        {"topic": "t", "partition": 3, "offset": 100 + i, "timestamp_ms": 1, "key": key, "value": part, "headers": []}
        for i, part in enumerate(parts)
    ]
    batch = decode(vector["protocol"], pa.RecordBatch.from_pylist(rows, schema=MESSAGE), vectors.context(vector)).to_pylist()
    row_schemas = {r["row_schema"]: RowSchema.from_json(r["columns"]) for r in batch if r["kind"] == "row_schema"}
    rows = [r for r in batch if r["kind"] != "row_schema"]
    if vector["expected"]["type"] == "error":
        assert [(r["kind"], r["raw_key"], r["raw_value"], r["offset"], r["partition"]) for r in rows] == [("rejected", key, value, 100, 3)]
        assert rows[0]["error_code"] in DECODE_CODES
        return
    want = vectors.expected(vector)
    got = [vectors.plain(vectors.from_row(r, row_schemas), w) for r, w in zip(rows, want, strict=True)]
    assert vectors.same(got, want), f"\ngot  {got}\nwant {want}"
    assert [r["ordinal"] for r in rows] == (list(range(len(rows))) if len(parts) == 1 else [0] * len(rows))
