"""The keys whose old values are compared are the same ones in SQL and in Arrow."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.lake import lakes
from tidelake.lake.key_sample import are_picked, picked
from tidelake.spark.lake_settings import lake_settings
from tidelake.spark.session import spark_session

ROWS, SHARE, WINDOWS = 4000, 16, (55, 463368565554937856)
KEYS = pa.table(
    {
        "i": pa.array(range(ROWS), pa.int32()),
        "l": pa.array(range(-ROWS, 0), pa.int64()),
        "s": [f"k\u00e9y {n}" for n in range(ROWS)],
        "b": [b"\xff%d" % n for n in range(ROWS)],
        "d": pa.array([Decimal(n) / 4 - 300 for n in range(ROWS)], pa.decimal128(12, 2)),
        "w": pa.array([Decimal(n) * 10**20 for n in range(ROWS)], pa.decimal128(30, 0)),
        "day": [date(1960, 1, 1) + timedelta(days=n) for n in range(ROWS)],
        "at": pa.array([datetime(1960, 1, 1, tzinfo=UTC) + timedelta(hours=7 * n) for n in range(ROWS)], pa.timestamp("us", "UTC")),
    }
)


@pytest.mark.usefixtures("spark_app")
def test_sql_and_arrow_pick_the_same_keys_and_others_in_every_window(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    keys = [[c] for c in KEYS.column_names] + [["s", "l"], ["i", "d", "day"]]
    with spark_session(lake_settings(lakes.feed(tmp_path)), "sample") as spark:
        frame = spark.createDataFrame(KEYS).coalesce(1)
        named = {f"{n} {w}": picked(key, ts, SHARE) for n, key in enumerate(keys) for w, ts in enumerate(WINDOWS)}
        by_sql = frame.selectExpr(*(f"{sql} AS `{name}`" for name, sql in named.items())).toArrow()
    for n, key in enumerate(keys):
        columns = [KEYS.column(c).combine_chunks() for c in key]
        first, other = (are_picked(columns, ts, SHARE) for ts in WINDOWS)
        for w, chosen in enumerate((first, other)):
            assert (np.asarray(by_sql.column(f"{n} {w}")) == chosen).all(), key
            assert 0.7 * ROWS / SHARE < chosen.sum() < 1.3 * ROWS / SHARE, key
        assert (first & other).sum() < 0.3 * first.sum(), key
