"""A commit ts from an offset: ascending, within its hour, the same whatever else the hour holds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decode.hour import BEGIN, END, HOUR
from tests.lake.histories import partition_of
from tidelake.decode.positions import BLOCK_BITS, origins, placed
from tidelake.errors import Coordinates, OrderError
from tidelake.history.event import Event, EventRows
from tidelake.land.store.manifest import Manifest


def manifest(first: int, last: int) -> Manifest:
    """An hour of one partition."""
    rest: dict[str, Any] = {"sources": (), "objects": (), "findings": (), "protocol": "canal", "layout": "kcat", "generation": 1}
    return Manifest(feed="shop", hour=HOUR, partitions={"t": {3: partition_of(first, last)}}, **rest)


def events(*messages: tuple[int, str]) -> pa.RecordBatch:
    """Of messages (offset, kinds of events by their first letter), with a schema behind them."""
    rows, kinds = EventRows(), {"r": "row", "d": "ddl", "x": "rejected"}
    for offset, letters in messages:
        rows.add(Coordinates("t", 3, offset), 1, [Event(kind=kinds[letter]) for letter in letters])
    row_schema = pa.RecordBatch.from_pylist([{"kind": "row_schema", "row_schema": 1}], schema=rows.batch().schema)
    return pa.concat_batches([rows.batch(), row_schema])


def stamps(found: pa.RecordBatch) -> list[int | None]:
    """Relative to the hour's begin."""
    return [None if ts is None else ts - BEGIN for ts in found.column("commit_ts").to_pylist()]


def test_rows_and_statements_take_the_ts_of_their_place_and_nothing_else_does() -> None:
    found = placed(events((5, "rr"), (6, "rdrdr"), (7, "x"), (8, "d"), (9, "r")), origins(manifest(5, 9)))
    assert stamps(found) == [1281, 1281, 1537, 1537, 1538, 1538, 1539, None, 2049, 2305, None]


def test_a_batch_of_refused_messages_has_no_ts() -> None:
    assert stamps(placed(events((5, "x")), [])) == [None, None]


@given(first=st.integers(0, 1 << 50), more=st.integers(0, 1_500_000_000), late=st.integers(0, 1 << 20))
def test_an_offset_keeps_its_ts_when_the_hour_gets_more_of_them(first: int, more: int, late: int) -> None:
    ((_, _, origin),) = origins(manifest(first, first + more))
    assert BEGIN < origin + (first << 8) <= origin + (first + more << 8) + 255 < END
    if first >> BLOCK_BITS == max(0, first - late) >> BLOCK_BITS:
        assert origins(manifest(max(0, first - late), first + more)) == [("t", 3, origin)]


def test_an_hour_of_more_offsets_than_it_has_ts_is_refused() -> None:
    with pytest.raises(OrderError, match=r"HOUR_TOO_LARGE: t\[3\] has offsets 7 to 4000000000 in hour 2026-01-05T10"):
        origins(manifest(7, 4_000_000_000))


def test_a_message_of_too_many_statements_is_refused() -> None:
    assert stamps(placed(events((5, "d" * 255 + "r")), origins(manifest(5, 5))))[-2] == 1281 + 255
    with pytest.raises(OrderError, match="TOO_MANY_STATEMENTS: the message at offset 5 holds more than 255 statements"):
        placed(events((5, "d" * 256 + "r")), origins(manifest(5, 5)))
