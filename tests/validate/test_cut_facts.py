"""A report keeps little of the hours before it, and shows the same as if it kept all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake.histories import publish, resolved, row
from tests.lake.windows import KV, TEXT, opened
from tidelake.validate.cut_facts import CutFacts
from tidelake.validate.quality.report import render

pytestmark = pytest.mark.usefixtures("small_hours")


def test_of_hours_before_the_tables_are_kept_as_one_and_the_page_is_the_same(tmp_path: Path) -> None:
    with opened(tmp_path) as (made, lake):
        hours = list[str]()
        for n in range(3):
            rows = [row(0, "insert", 10 * n + 5, KV, (str(10 * n + k), "a")) for k in range(n + 1)]
            hours.append(made.add(lake, [*rows, row(0, "insert", 10 * n + 6, TEXT, ("x",), table="m"), *resolved(10 * n + 9)]))
            assert publish(lake, hours[-1]) is not None
        facts = CutFacts(lake)
        before = facts.before(hours[2])
        assert [f.hour for f in before] == hours[:2]
        assert [{name: t.inserts for name, t in f.tables.items()} for f in before] == [{"": 2}, {"": 3}]
        assert [f.checks for f in before] == [[], []]
        whole, current = [facts.of(h) for h in hours[:2]], facts.of(hours[2])
        assert current is not None
        assert [len(f.tables) for f in (current, *whole) if f is not None] == [2, 2, 2]
        assert render(current, before) == render(current, [f for f in whole if f is not None])
