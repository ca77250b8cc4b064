"""`verify` against a real TiDB: a table of all types is equal, and every row that the lake has otherwise is found."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.tidb import filled
from tests.tidb.copied import Copy, copied, in_this_process
from tests.tidb.present import DATABASE, Cells, Present, present, rows
from tests.tidb.server import TiDB
from tests.tidb.values import FAMILIES
from tidelake.lake.opened import Lake
from tidelake.query.verify.compare import CHANGED, MISSING_HERE, MISSING_UPSTREAM

SEED = int(os.environ.get("TIDELAKE_TIDB_SEED", "20261125"))
TYPES = [t for family in FAMILIES for t in family]
ROWS = len(TYPES) + 10


def test_what_the_lake_has_otherwise_is_found_in_its_row_and_column(tidb: TiDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell of each column changes in a row of its own, a row is lost, another one is made up: events of a database that never was."""
    monkeypatch.setattr(Lake, "workers", in_this_process)
    columns = ",".join(f"`c{n}` {sql} NULL" for n, sql in enumerate(TYPES))
    create = f"CREATE TABLE {DATABASE}.t (id BIGINT PRIMARY KEY, {columns})"
    tidb.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}", create)
    table = present(tidb, "t")
    for number in range(0, ROWS, 5):  # texts of another flavour in each part
        filled.insert(tidb, Random(SEED + number), table, range(number, min(number + 5, ROWS)))
    with copied(tidb, tmp_path, [table]) as copy:
        assert copy.differences(table, copy.publish()) == []
        wanted = _spoiled(copy, table)
        found = copy.compared(table, copy.publish())
        assert (found.rows_here, found.rows_upstream) == (len(wanted.pop("rows")), len(rows(tidb, table)))
        assert {r.key["id"]: (r.kind, *r.columns) for r in found.rows} == wanted


def _spoiled(copy: Copy, table: Present) -> dict[str, tuple[object, ...]]:
    """Send changes that TiDB never had; what verify must find, by id, and under `rows` the rows that the lake has then."""
    have = {int(row[0] or b""): row for row in rows(copy.server, table)}
    ids, ts = sorted(have), copy.server.ts()
    wanted: dict[str, tuple[object, ...]] = {}
    for place, i in zip(range(1, len(TYPES) + 1), ids, strict=False):
        other = next((row[place] for row in have.values() if row[place] is not None), None)
        new = None if have[i][place] is not None else other
        after: Cells = (*have[i][:place], new, *have[i][place + 1 :])
        copy.changed(table, "update", ts, have[i], after)
        wanted[str(i)] = (CHANGED, table.sent[place].name)
    copy.changed(table, "delete", ts, before=have[ids[-1]])
    copy.changed(table, "insert", ts, after=(b"9999", *have[ids[-2]][1:]))
    return wanted | {str(ids[-1]): (MISSING_HERE,), "9999": (MISSING_UPSTREAM,), "rows": tuple(ids)}
