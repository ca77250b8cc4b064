"""Maintenance between hours that are ordered, validated and compacted for real."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.checkout import CHECKOUT
from tests.lake.cheap import START, ts
from tests.lake.histories import publish, publish_again, resolved, row, rows_of
from tests.lake.windows import KV, TEXT, opened, table
from tidelake.config.retention import Maintenance
from tidelake.errors import StorageError
from tidelake.lake.cuts import changelog_retained_after, newest_cut
from tidelake.maintenance.maintain import maintain
from tidelake.query.scd2 import scd2_frame
from tidelake.tso import begin_ts, physical_ms

KEEP = Maintenance.model_validate({"keep_cuts": "1d", "keep_daily": "60d", "small_files": 2})
AT_ONCE = timedelta(days=-1)

pytestmark = [pytest.mark.usefixtures("spark_app"), pytest.mark.long]


def test_asof_between_retained_cuts_and_the_next_hour_do_not_notice(tmp_path: Path) -> None:
    with opened(tmp_path, maintenance=KEEP) as (feed, lake):
        first = [row(0, "insert", ts(0.1), KV, (i, "a")) for i in "12"] + [row(0, "insert", ts(0.1), TEXT, ("x",), table="m")]
        publish(lake, feed.add(lake, [*first, *resolved(ts(0.2))]))
        publish(lake, feed.add(lake, [row(0, "update", ts(0.3), KV, ("2", "b"), ("2", "a")), *resolved(ts(0.4))]))
        publish(lake, feed.add(lake, [row(0, "insert", ts(0.5), TEXT, ("x",), table="m"), *resolved(ts(0.6))]))
        later = [row(0, "delete", ts(40), KV, None, ("1", "a")), row(0, "insert", ts(50), KV, ("3", "c"))]
        publish(lake, feed.add(lake, [*later, *resolved(ts(60))]))
        done = maintain(lake, young=AT_ONCE)
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


def test_hours_run_on_and_are_redone_from_before_the_horizon(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    keep = KEEP.model_copy(update={"keep_changelog": timedelta(days=2), "archive_changelog": str(folder)})
    with opened(tmp_path, maintenance=keep) as (feed, lake):
        feed.stamp = physical_ms(ts(140))  # a resolved ts later than the message's hour and timestamp does not count
        hours = []
        for n, at in enumerate((20, 30, 75, 120), 1):
            changes = [row(0, "insert", ts(at - 1), KV, (str(n), "a")), row(0, "insert", ts(at - 1), TEXT, (str(n),), table="m")]
            changes += [row(0, "update", ts(at - 0.5), KV, ("1", str(n)), ("1", "a" if n == 1 else str(n - 1)))]
            hours.append(feed.add(lake, [*changes, *resolved(ts(at))]))
            publish(lake, hours[-1])
        moments = [ts(at) for at in (20, 74.25, 75, 119.25)]
        right = [(rows_of(lake, "d.k", at), rows_of(lake, "d.m", at)) for at in moments]
        versions = {tuple(r) for r in scd2_frame(lake, "d.k", None, lake.spark)[0].collect()}
        done = maintain(lake, young=AT_ONCE)
        assert (changelog_retained_after(lake.catalog, "shop"), done.removed_changes) == (begin_ts(START + timedelta(days=1)) - 1, 4)
        copies = {path.relative_to(folder / "shop").parts[:2]: pq.read_table(path).num_rows for path in folder.rglob("*.parquet")}
        assert copies == {("d_changelog.k", "day=2026-01-01"): 3, ("d_changelog.m", "day=2026-01-01"): 1}
        assert [(rows_of(lake, "d.k", at), rows_of(lake, "d.m", at)) for at in moments] == right
        with pytest.raises(StorageError, match=r"d\.m cannot be read at TSO") as error:
            rows_of(lake, "d.m", ts(29.25))
        assert error.value.code == "NOT_RETAINED"
        left = {tuple(r) for r in scd2_frame(lake, "d.k", None, lake.spark)[0].collect()}
        assert left == {v for v in versions if v[3] is None or v[3] > ts(30)}, "versions that had ended by the first whole cut are gone"
        text = (CHECKOUT / "docs" / "time-travel.md").read_text()
        recipe: dict[str, Any] = {}
        exec(text.split("```python recipe\n")[1].split("```")[0], recipe)
        ask = partial(recipe["asof"], lake.catalog.catalog, "shop", "d.k", "d_changelog.k", ["id"])
        assert ask(ts(74.25)).num_rows == 3
        with pytest.raises(LookupError, match=f"changes after the cut at {ts(20)}"):
            ask(ts(29.75))

        publish_again(lake, hours[-1], hours[1])
        assert [(rows_of(lake, "d.k", at), rows_of(lake, "d.m", at)) for at in (ts(20), ts(120))] == [
            right[0],
            (table(("1", "4"), ("2", "a"), ("3", "a"), ("4", "a")), table(("1",), ("2",), ("3",), ("4",), names=("v",))),
        ]
        with pytest.raises(StorageError, match="not all kept"):
            rows_of(lake, "d.k", ts(75))
        assert lake.catalog.load("d_changelog.k").scan().read_all().num_rows == 9
        assert maintain(lake, young=AT_ONCE).removed_changes == 0
        hour = feed.add(lake, [row(0, "delete", ts(130), KV, None, ("1", "4")), *resolved(ts(131))])
        publish(lake, hour)
        assert rows_of(lake, "d.k", ts(129)) == table(("1", "4"), ("2", "a"), ("3", "a"), ("4", "a"))
        assert rows_of(lake, "d.k") == table(("2", "a"), ("3", "a"), ("4", "a"))
