"""Rows of many small tables are gathered once, those of large ones and of few are not."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.lake import lakes
from tidelake.history.incarnations import Incarnation, Name
from tidelake.order import packs
from tidelake.order.change_sequence import sequence_of
from tidelake.order.packs import FEW, PACK, SMALL, in_packs
from tidelake.order.sql.rows import TableRows
from tidelake.spark.lake_settings import lake_settings
from tidelake.spark.session import spark_session


@dataclass
class Counted:
    """What of `Seen` counts here."""

    sizes: dict[str, int]
    inside: int = field(init=False)

    def __post_init__(self) -> None:
        self.inside = sum(self.sizes.values())

    def rows_of(self, names: tuple[Name, ...]) -> int:
        return sum(self.sizes[n.table] for n in names)


def tables(folder: Path, sizes: dict[str, int]) -> list[TableRows]:
    feed = lakes.feed(folder)
    return [
        TableRows(
            feed=feed,
            incarnation=Mock(Incarnation),
            names=(Name(database="d", table=name, after_ts=0),),
            row_schemas=(),
            bucket=None,
            buckets=1,
            hours=1,
            sequence=sequence_of(0, 0, 0, by_arrival=False),
        )
        for name in sizes
    ]


def packed(folder: Path, sizes: dict[str, int], rows: Any) -> list[tuple[Any, list[tuple[str, bool]]]]:
    """(rows, (table, whether one task takes it) …) of each step."""
    seen: Any = Counted(sizes)
    return [(found, [(t.names[0].table, t.few) for t in some]) for found, some in in_packs(rows, tables(folder, sizes), seen)]


@pytest.mark.parametrize(("rows", "few"), [(SMALL // FEW, True), (SMALL // FEW + 1, False)])
def test_few_tables_read_the_window_themselves(rows: int, few: bool, tmp_path: Path) -> None:
    sizes = dict.fromkeys((f"t{n}" for n in range(FEW)), rows)
    window = object()
    assert packed(tmp_path, sizes, window) == [(window, [(name, few) for name in sizes])]


def test_many_small_tables_go_in_packs_after_large_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def kept(rows: Any, names: list[Name]) -> Mock:
        asked.append((rows, [n.table for n in names]))
        return Mock()

    monkeypatch.setattr(packs, "_kept", kept)
    window = object()
    sizes = {f"t{n}": PACK // 4 if n == 3 else SMALL for n in range(FEW + 2)}
    (all_rows, large), *gathered = packed(tmp_path, sizes, window)
    assert (all_rows, large) == (window, [("t3", False)])
    found = [[name for name, few in some if few] for _, some in gathered]
    assert found == [["t0", "t1", "t2", "t4", "t5"], ["t6", "t7", "t8", "t9"]], f"of {PACK:,} rows at most"
    assert asked == [(window, names) for names in found]
    assert [one.unpersist.call_count for one, _ in gathered] == [1, 1]


@pytest.mark.usefixtures("spark_app")
def test_a_pack_holds_its_tables_rows_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "FEW", 0)
    (tmp_path / "lake").mkdir()
    sizes = {f"t{n}": 40 for n in range(5)}
    with spark_session(lake_settings(lakes.feed(tmp_path)), "packs") as spark:
        window = spark.range(400).selectExpr("'d' AS database", "concat('t', id % 10) AS table", "id")
        seen: Any = Counted(sizes)
        for near, _ in in_packs(window, tables(tmp_path, sizes), seen):
            assert near.storageLevel.useDisk
            assert not near.storageLevel.useMemory
            parts = near.selectExpr("spark_partition_id() AS p", "monotonically_increasing_id() AS at", "table", "id").collect()
            assert sorted(r["id"] for r in parts) == [n for n in range(400) if n % 10 < 5]
            assert {len({r["p"] for r in parts if r["table"] == t}) for t in sizes} == {1}
            assert [r["table"] for r in parts] == sorted((r["table"] for r in parts), key=[r["table"] for r in parts].index)
        assert not near.storageLevel.useDisk
