"""Keys of filled tables that statements change: the lake's table is TiDB's, at the statement, and after rows that came by the new key."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.tidb.copied import Copy, copied, in_this_process
from tests.tidb.present import DATABASE, Present, present, rows
from tests.tidb.server import TiDB
from tidelake.config.table_name import written
from tidelake.lake.opened import Lake
from tidelake.query.asof import life_at

ROWS = range(1, 40)
# name → definition of its keys, the statement, the columns of the key then
STATEMENTS = {
    "none": ("", "ADD PRIMARY KEY (`id`)", ("id",)),
    "none, then text": ("", "ADD PRIMARY KEY (`c`, `a`) NONCLUSTERED", ("c", "a")),
    "none, then unique": ("", "ADD UNIQUE INDEX `u` (`a`)", ("a",)),
    "unique, then smaller": ("UNIQUE ac (`a`, `c`)", "ADD UNIQUE INDEX `u` (`c`)", ("c",)),
    "unique, then primary": ("UNIQUE uk (`a`)", "DROP INDEX `uk`, ADD PRIMARY KEY (`c`)", ("c",)),
    "unique, then the other": ("UNIQUE uk (`a`), UNIQUE ca (`c`, `a`)", "DROP INDEX `uk`", ("c", "a")),
    "primary, then unique": ("PRIMARY KEY (`a`) NONCLUSTERED", "ADD UNIQUE INDEX `u` (`c`), DROP PRIMARY KEY", ("c",)),
    "primary of two": ("PRIMARY KEY (`a`, `c`) NONCLUSTERED, UNIQUE u (`c`)", "DROP PRIMARY KEY", ("c",)),
    "partitioned": ("", "ADD PRIMARY KEY (`a`, `id`)", ("a", "id")),
}


def test_a_changed_key_changes_no_row(tidb: TiDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lake, "workers", in_this_process)
    tidb.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}")
    tables = [_made(tidb, name, keys) for name, (keys, *_) in STATEMENTS.items()]
    with copied(tidb, tmp_path, tables) as copy:
        at = {}
        for table in tables:
            _written(copy, table, "UPDATE {t} SET id = id + 100 WHERE id % 5 = 0", "DELETE FROM {t} WHERE id % 7 = 0")
            tidb.execute(statement := f"ALTER TABLE {table.sql} {STATEMENTS[table.name][1]}")
            at[table.name] = tidb.ts()
            copy.executed(table.name, statement, at[table.name])
            now = present(tidb, table.name)
            _written(copy, now, "UPDATE {t} SET id = id + 1000, a = a + 500 WHERE id % 3 = 0", "DELETE FROM {t} WHERE id % 4 = 0")
            _written(copy, now, "INSERT INTO {t} (id, a, c) VALUES (7777, 7, 'seven')")
        end = copy.publish()
        assert copy.why_not() == {}
        for name, (*_, key) in STATEMENTS.items():
            now = present(tidb, name)
            assert [(ts, copy.differences(now, ts)) for ts in (at[name], end)] == [(at[name], []), (end, [])]
            _, life = life_at(copy.lake, written(DATABASE, name), end)
            assert tuple(c.name for k in life.key for c in life.columns if c.id == k) == key
            assert {f.name for f in now.fields if f.key} == set(key)


def _written(copy: Copy, table: Present, *statements: str) -> None:
    """What statements change, as row events: of an update both halves."""
    for statement in statements:
        before = Counter(rows(copy.server, table))
        copy.server.execute(statement.format(t=table.sql))
        after, ts = Counter(rows(copy.server, table)), copy.server.ts()
        for cells in (before - after).elements():
            copy.changed(table, "delete", ts, before=cells)
        for cells in (after - before).elements():
            copy.changed(table, "insert", ts, after=cells)


def _made(tidb: TiDB, name: str, keys: str) -> Present:
    """A table with rows."""
    parts = " PARTITION BY RANGE (`id`) (PARTITION p0 VALUES LESS THAN (9), PARTITION p1 VALUES LESS THAN (MAXVALUE))"
    columns = ", ".join(["`a` INT NOT NULL", "`c` VARCHAR(20) NOT NULL", "`id` INT NOT NULL", *([keys] if keys else [])])
    values = ", ".join(f"({n}, {n + 50}, 'c{n}')" for n in ROWS)
    by = parts if name == "partitioned" else ""
    tidb.execute(f"CREATE TABLE {DATABASE}.`{name}` ({columns}){by}", f"INSERT INTO {DATABASE}.`{name}` (id, a, c) VALUES {values}")
    return present(tidb, name)
