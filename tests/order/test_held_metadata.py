"""Order does not hold the metadata of all tables while workers run: it grows with every snapshot that is retained."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

from tests.lake.histories import publish, resolved, row
from tests.lake.windows import KV, TEXT, opened
from tidelake.lake.catalog import LakeTable
from tidelake.order.arrow import staged_by_workers

pytestmark = pytest.mark.usefixtures("small_hours")


def test_no_changelog_is_held_while_workers_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, run = list[set[str]](), staged_by_workers._run

    def watched(*given: Any) -> Any:
        gc.collect()
        held.append({t.identifier for t in gc.get_objects() if isinstance(t, LakeTable)})
        return run(*given)

    monkeypatch.setattr(staged_by_workers, "_run", watched)
    with opened(tmp_path) as (made, lake):
        for n in range(2):
            rows = [row(0, "insert", 10 * n + 5, KV, (str(n), "a")), row(0, "insert", 10 * n + 6, TEXT, ("x",), table="m")]
            cut = publish(lake, made.add(lake, [*rows, *resolved(10 * n + 9)]))
            assert cut is not None
    assert sorted(t.identifier for t in cut.changelogs.values()) == ["d_changelog.k", "d_changelog.m"]
    assert [{i for i in found if i.startswith("d_")} for found in held] == [set(), set()]
