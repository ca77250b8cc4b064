"""Statements that a redo undoes and another one carries out again, and cuts that a rollback brings back: each shows what it did before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lake.histories import ddl, feeder, printed, publish, publish_again, resolved, row
from tests.lake.windows import KV
from tidelake.config.policy import Policy
from tidelake.errors import TidelakeError
from tidelake.lake.cuts import newest_cut
from tidelake.lake.opened import Lake
from tidelake.publish.rollback import rollback
from tidelake.query.scd2 import scd2_frame

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("small_hours")]
SQL = "CREATE TABLE d.k (id BIGINT PRIMARY KEY, v VARCHAR(20)) PARTITION BY RANGE (id)"
SQL += " (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20));"
STATEMENTS = (
    "TRUNCATE TABLE k",
    "DROP TABLE k",
    "RENAME TABLE k TO k2",
    "CREATE TABLE z (id BIGINT PRIMARY KEY)",
    "ALTER TABLE k ADD COLUMN n INT DEFAULT 5",
    "ALTER TABLE k DROP COLUMN v",
    "ALTER TABLE k RENAME COLUMN v TO w",
    "ALTER TABLE k MODIFY COLUMN v TEXT",
    "ALTER TABLE k MODIFY COLUMN v INT",
    "ALTER TABLE k MODIFY COLUMN id DECIMAL(20,0)",
    "ALTER TABLE k DROP PARTITION p0",
    "ALTER TABLE k DROP PRIMARY KEY, ADD PRIMARY KEY (id, v)",
)
STANDING = ["{'id': '1', 'v': '9'}", "{'id': '12', 'v': '8'}"]
OLD = "{'id': 1, 'v': '7', '_valid_from_ts': 10, '_valid_to_ts': 40, '_current': False}"


def shown(read: Callable[..., list[Any]], *given: Any) -> list[str]:
    """Rows as text, sorted; an error as one row."""
    try:
        return sorted(map(str, read(*given)))
    except TidelakeError as e:
        return [e.code]


def versions(lake: Lake, table: str) -> list[Any]:
    frame, _ = scd2_frame(lake, table, None, lake.spark)
    return [r.asDict() for r in frame.drop("_valid_from", "_valid_to").collect()]


def state(lake: Lake) -> dict[str, list[list[str]]]:
    """Of every table: its rows now, after the statement and before it, and the versions of its rows."""
    cut = newest_cut(lake.catalog, lake.store, "shop")
    assert cut is not None
    names = sorted(i.name for i in cut.catalog.alive())
    return {n: [*(shown(printed, lake, n, ts) for ts in (None, 48, 30)), shown(versions, lake, n)] for n in names}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_what_a_redo_ignores_never_was_and_what_is_brought_back_is_as_before(tmp_path: Path, statement: str) -> None:
    made = feeder(tmp_path, SQL)
    (tmp_path / "lake").mkdir()
    with Lake.of(made.feed) as lake:
        rows = [row(0, "insert", 10, KV, ("1", "7")), row(0, "insert", 11, KV, ("12", "8"))]
        publish(lake, made.add(lake, [*rows, *resolved(30)]))
        hour = made.add(lake, [row(0, "update", 40, KV, ("1", "9"), ("1", "7")), *ddl(45, statement), *resolved(60)])
        publish(lake, hour)
        carried_out = state(lake)
    with Lake.of(made.feed.model_copy(update={"policy": Policy(ignore_ddl=(45,))})) as lake:
        publish_again(lake, hour, hour)
        ignored = state(lake)
    assert list(ignored) == ["d.k"]
    assert ignored["d.k"][:2] == [STANDING, STANDING]
    assert [v for v in ignored["d.k"][3] if "'_valid_to_ts': None" not in v] == [OLD]
    with Lake.of(made.feed) as lake:
        publish_again(lake, hour, hour)
        assert state(lake) == carried_out
        for cut, then in (("cut 3", ignored), ("cut 2", carried_out)):
            rollback(lake, cut)
            assert state(lake) == then
