"""A lake beside what its tables hold at certain TSOs, written by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests.lake.histories import Row, publish, rows_of
from tidelake.lake.cut import Cut
from tidelake.lake.opened import Lake

Truth = Mapping[tuple[str, int], list[Row]]  # (table of database d, or with its database; TSO) → its rows then


def rows_at(lake: Lake, table: str, ts: int) -> Counter[tuple[Any, ...]]:
    """A table's rows at a TSO."""
    return Counter({tuple(v for _, v in r): n for r, n in rows_of(lake, table if "." in table else f"d.{table}", ts).items()})


def compare(lake: Lake, truth: Truth) -> None:
    """Every table at every TSO is what was written by hand."""
    assert {at: rows_at(lake, *at) for at in truth} == {at: Counter(rows) for at, rows in truth.items()}


def published(lake: Lake, hour: str) -> Cut:
    """The hour's cut, which must be there."""
    cut = publish(lake, hour)
    assert cut is not None
    return cut
