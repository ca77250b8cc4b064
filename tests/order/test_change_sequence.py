"""The numbers of changes: their order, and that SQL and Arrow give the same ones."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lake import lakes
from tidelake.errors import OrderError
from tidelake.order.change_sequence import CHANGE_TYPES, moved_sql, sequence_of
from tidelake.spark.lake_settings import lake_settings
from tidelake.spark.session import spark_session

CLASSES = {"DELETE": 0, "UPDATE_BEFORE": 1, "UPDATE_AFTER": 1, "INSERT": 2}
Change = tuple[int, int, int, str]  # commit ts, offset, ordinal, type
changes = st.lists(
    st.tuples(st.integers(0, 3) | st.integers(0, 2**62), st.integers(0, 3), st.integers(0, 2), st.sampled_from(CHANGE_TYPES)),
    min_size=1,
    unique=True,
)


def numbers(log: list[Change], first: int, *, by_arrival: bool) -> list[int]:
    """The numbers of changes, whose offsets begin at `first`."""
    columns = (np.array(c, np.int64) for c in zip(*((ts, first + o, n) for ts, o, n, _ in log), strict=True))
    kind = np.array([CHANGE_TYPES.index(t) for *_, t in log], np.int64)
    return [int(n) for n in sequence_of(first, first + 3, 2, by_arrival=by_arrival).numbers(*columns, kind).to_pylist()]


@given(changes, st.sampled_from([0, 7, 2**62]), st.booleans())
def test_numbers_sort_by_commit_ts_then_class_then_place_in_the_topic(log: list[Change], first: int, by_arrival: bool) -> None:
    found = numbers(log, first, by_arrival=by_arrival)

    def place(c: Change) -> tuple[int, ...]:
        ts, offset, ordinal, kind = c
        return (ts, 0 if by_arrival else CLASSES[kind], offset, ordinal, kind in ("INSERT", "UPDATE_AFTER"))

    assert [place(c) for _, c in sorted(zip(found, log, strict=True))] == sorted(map(place, log))
    assert [n // 10**19 for n in found] == [ts for ts, *_ in log]
    assert len(set(found)) == len(set(map(place, log)))


def test_a_number_begins_with_the_commit_ts_and_the_class() -> None:
    log = [(463368564662075392, 5, 1, "DELETE"), (463368564662075392, 5, 1, "INSERT"), (2**63 - 1, 8, 0, "UPDATE_AFTER")]
    assert numbers([(ts, o - 5, n, t) for ts, o, n, t in log], 5, by_arrival=False) == [
        463368564662075392_1_000000000000000002,
        463368564662075392_3_000000000000000003,
        9223372036854775807_2_000000000000000019,
    ]


def test_offsets_that_no_number_can_hold_are_refused() -> None:
    sequence_of(0, 5 * 10**17 - 1, 0, by_arrival=False)
    with pytest.raises(OrderError, match=r"span 500,000,000,000,000,001 offsets, with up to 1 row in a message") as e:
        sequence_of(0, 5 * 10**17, 0, by_arrival=False)
    assert e.value.code == "TOO_MANY_POSITIONS"


@pytest.mark.usefixtures("spark_app")
def test_sql_gives_the_numbers_that_arrow_gives(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    log = [(ts, o, n, t) for ts in (0, 1, 463368564662075392, 2**62) for o in (0, 3) for n in (0, 2) for t in CHANGE_TYPES]
    first = 2**40
    rows = [(ts, first + o, n, t) for ts, o, n, t in log]
    ways = [sequence_of(first, first + 3, 2, by_arrival=by_arrival) for by_arrival in (False, True)]
    with spark_session(lake_settings(lakes.feed(tmp_path)), "sequence") as spark:
        frame = spark.createDataFrame(rows, "commit_ts bigint, offset bigint, ordinal int, t string").coalesce(1)
        numbered = frame.selectExpr(*(f"{way.sql('t')} AS n{n}" for n, way in enumerate(ways)))
        assert numbered.dtypes == [("n0", "decimal(38,0)"), ("n1", "decimal(38,0)")]
        found = [(int(r["n0"]), int(r["n1"])) for r in numbered.collect()]
        sql = [moved_sql(7, "t", last=last, statement=n) for last in (False, True) for n in (0, 1)]
        moved = spark.sql(f"SELECT {', '.join(sql)} FROM VALUES ('DELETE'), ('INSERT') AS kinds(t) ORDER BY t").collect()
    assert found == list(zip(*(numbers(log, first, by_arrival=way.by_arrival) for way in ways), strict=True))
    deletes, inserts = ([int(n) for n in tuple(r)] for r in moved)
    assert deletes == [7 * 10**19, 7 * 10**19 + 2, 7 * 10**19 + 4 * 10**18, 7 * 10**19 + 4 * 10**18 + 2]
    assert inserts == [n + 1 for n in deletes]
    events = numbers([(7, 0, 0, "DELETE"), (7, 3, 2, "INSERT")], 0, by_arrival=False)
    assert inserts[1] < events[0] < events[1] < deletes[2]  # rows that a statement moves: before or after all events of their commit ts


def test_the_arrow_type_is_the_changelog_s() -> None:
    one = sequence_of(0, 0, 0, by_arrival=False).numbers(*(np.array([1]) for _ in range(4)))
    assert one.type == pa.decimal128(38, 0)
    assert one.to_pylist() == [Decimal(12_000_000_000_000_000_004)]
