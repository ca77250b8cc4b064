"""How many units a table without key becomes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tidelake.lake.columns.fold_rules import FoldRules
from tidelake.lake.columns.survivors import PASS_ROWS
from tidelake.lake.folding.units import SideFiles, units_of
from tidelake.lake.scans import FileFacts

MANY = 40 * PASS_ROWS
SORTED = [(n, n) for n in range(400)]  # the lowest and the highest value of each file
MIXED = [(0, 399)] * 400


def _side(rows: int, spans: Sequence[tuple[int, int] | None]) -> SideFiles:
    low, high = ([{1: span[at]} if span else {} for span in spans] for at in (0, 1))
    files = [FileFacts(f"s3://b/{n}", (), rows // len(spans), 100, low[n], high[n], ()) for n in range(len(spans))]
    return SideFiles(files, leading=1)


@pytest.mark.parametrize(
    ("base", "changes", "units"),
    [
        (_side(MANY, SORTED), _side(PASS_ROWS, [(0, 399)]), 21),
        (_side(MANY, SORTED), _side(MANY, [(0, 399)]), 2),
        (_side(MANY, SORTED), _side(4 * MANY, [(0, 399)]), 1),
        (_side(MANY, MIXED), _side(PASS_ROWS, [(0, 399)]), 2),
        (_side(MANY, [*SORTED[1:], None]), _side(PASS_ROWS, [(0, 399)]), 1),
        (_side(PASS_ROWS, SORTED), _side(400, [(0, 399)]), 1),
        (SideFiles(), _side(MANY, SORTED), 1),
    ],
)
def test_a_table_without_key_is_shared_if_little_is_read_again(base: SideFiles, changes: SideFiles, units: int) -> None:
    rules = FoldRules(columns=("id",), key=(), after_ts=0, until_ts=1, leading="id")
    found = units_of(0, base, changes, None, every=True, shares=rules)
    assert len(found) == units
    assert {u.keys is None for _, u in found} == {units == 1}
    assert len(units_of(0, base, changes, None, every=True)) == 1
