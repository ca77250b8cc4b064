"""Upkeep between hours that are ordered, validated and compacted for real."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.lake.cheap import ts
from tests.lake.histories import publish, resolved, row, rows_of
from tests.lake.test_windows import KV, TEXT, opened, table
from tidelake.errors import StorageError
from tidelake.lake.cuts import newest_cut
from tidelake.lake.upkeep import upkeep
from tidelake.retention import Upkeep

KEEP = Upkeep.model_validate({"keep_cuts": "1d", "keep_daily": "60d", "small_files": 2})
AT_ONCE = timedelta(days=-1)

pytestmark = [pytest.mark.usefixtures("spark_app"), pytest.mark.long]


def test_asof_between_retained_cuts_and_the_next_hour_do_not_notice(tmp_path: Path) -> None:
    with opened(tmp_path, upkeep=KEEP) as (feed, lake):
        first = [row(0, "insert", ts(0.1), KV, (i, "a")) for i in "12"] + [row(0, "insert", ts(0.1), TEXT, ("x",), table="m")]
        publish(lake, feed.add(lake, [*first, *resolved(ts(0.2))]))
        publish(lake, feed.add(lake, [row(0, "update", ts(0.3), KV, ("2", "b"), ("2", "a")), *resolved(ts(0.4))]))
        publish(lake, feed.add(lake, [row(0, "insert", ts(0.5), TEXT, ("x",), table="m"), *resolved(ts(0.6))]))
        later = [row(0, "delete", ts(40), KV, None, ("1", "a")), row(0, "insert", ts(50), KV, ("3", "c"))]
        publish(lake, feed.add(lake, [*later, *resolved(ts(60))]))
        done = upkeep(lake, young=AT_ONCE)
        assert done.plan is not None
        assert (done.cut, done.rewritten) == (5, ["d.m", "d_changelog.k", "d_changelog.m"])
        assert done.plan.cuts == {3: "daily", 4: "newest"}
        assert rows_of(lake, "d.k", ts(0.6)) == table(("1", "a"), ("2", "b"))
        assert rows_of(lake, "d.k", ts(45)) == table(("2", "b"))
        assert rows_of(lake, "d.m", ts(30)) == table(("x",), ("x",), names=("v",))
        assert rows_of(lake, "d.k") == table(("2", "b"), ("3", "c"))
        with pytest.raises(StorageError, match="is before the oldest cut that is kept"):
            rows_of(lake, "d.k", ts(0.4))

        hour = feed.add(lake, [row(0, "delete", ts(60.5), TEXT, None, ("x",), table="m"), *resolved(ts(61))])
        assert publish(lake, hour) is not None
        assert rows_of(lake, "d.m") == table(("x",), names=("v",))
        assert rows_of(lake, "d.m", ts(60)) == table(("x",), ("x",), names=("v",))
        assert rows_of(lake, "d.k") == table(("2", "b"), ("3", "c"))
        cut = newest_cut(lake.catalog, lake.store, "shop")
        assert cut is not None
        assert (cut.seq, cut.applied_ts) == (6, ts(60))
