"""Tables that can have rows are found as a loop over all tables and all rows would find them, without that loop at every statement."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.history.windows import compiled, row_schema, said, seen
from tidelake.history.ddl.changes import TableDef
from tidelake.history.incarnations import Catalog, create, ended
from tidelake.history.inhabited import Inhabited
from tidelake.history.names import SentNames, same_name
from tidelake.history.window import ObservedTable

TABLE = st.sampled_from(["a", "A", "b", "a-", "a_"])
ROWS = st.tuples(TABLE, st.integers(0, 30), st.integers(0, 10))


def _by_a_loop(catalog: Catalog, rows: list[ObservedTable], ts: int) -> set[str]:
    return {
        i.id
        for i in catalog.incarnations.values()
        for n in i.names
        for s in rows
        if i.empty and same_name(s.table, n.table) and s.first_ts <= ts and s.last_ts > i.from_ts
    }


@given(st.lists(ROWS, max_size=8), st.lists(st.tuples(TABLE, st.sampled_from(["drop", "rename"]), TABLE), max_size=8))
def test_tables_are_marked_as_a_loop_over_all_would(rows: list[tuple[str, int, int]], steps: list[tuple[str, str, str]]) -> None:
    found = [seen(first, first + more, row_schema(), table) for table, first, more in rows]
    catalog, inhabited = Catalog(), Inhabited(found)
    for n, (table, step, to) in enumerate(steps, 1):
        ts, old = 3 * n, catalog.find("shop", table)
        if old is None:
            after = create(catalog, "shop", table, TableDef(columns=()), ts)
        elif step == "drop":
            after = catalog.with_(ended(old, ts))
        else:
            after = catalog.with_(replace(old, names=(*old.names, replace(old.names[-1], table=to, after_ts=ts))))
        inhabited.expect(after.changed_since(catalog))
        expected = _by_a_loop(after, found, ts + 3)
        catalog = inhabited.marked(after, ts + 3)
        assert {i.id for i in catalog.changed_since(after)} == expected
        assert not any(catalog.incarnations[i].empty for i in expected)


def test_a_table_s_rows_are_looked_for_when_it_changes_and_not_at_every_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    looked, of = list[str](), SentNames.of

    def counted(self: SentNames[ObservedTable], database: str, table: str) -> list[ObservedTable]:
        looked.append(table)
        return of(self, database, table)

    monkeypatch.setattr(SentNames, "of", counted)
    made = [said(10 + n, f"CREATE TABLE t{n} (id BIGINT PRIMARY KEY)") for n in range(40)]
    altered = [said(100 + n, f"ALTER TABLE t{n} ADD a INT") for n in range(40)]
    catalog, _ = compiled(made + altered, [seen(60, 70, row_schema("a"), "t7"), seen(200, 210, row_schema("a"), "t8")])
    assert [i.name for i in catalog.incarnations.values() if not i.empty] == ["shop.t7", "shop.t8"]
    assert len(looked) == 40 + 39  # t7 is not empty when it is altered
