"""Cells in Arrow: read as Spark's casts have them, with the same losses; a batch is read as its cells are, one by one."""

from __future__ import annotations

import random
import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake import lakes
from tests.lake.columns.spark_casts import cast, losses
from tests.order.type_cases import CASES, Case
from tests.searches import examples
from tidelake.history.ddl.column_types import MysqlType
from tidelake.lake.columns import cells as cells_of_lake
from tidelake.lake.columns.cells import LOSSES, CastRules, CellType, arrow_type, cell_type, values
from tidelake.spark.lake_settings import lake_settings
from tidelake.spark.session import spark_session

DEAL = 160  # cells of each column
_LETTERS = b"0123456789-+.:eExX TZ /,aN\x00\xff"
_TRIMMED = re.compile(rb"^[\x00-\x20+.]|[\x00-\x20]0*$")


def is_lenient(c: Case, cell: bytes) -> bool:
    """Whether Spark may read what is no value: it trims numbers and times, takes a sign before them, and cuts fractions of bit sets."""
    if c.lake == "string" and not c.mysql.elements:
        return False
    return bool(_TRIMMED.search(cell)) or (c.mysql.word == "set" and b"." in cell)


def dealt(c: Case, chance: random.Random) -> list[bytes]:
    """A case's own cells and others that are nearly right."""
    out = list(c.cells)
    while len(out) < DEAL:
        cell = bytearray(chance.choice(c.cells))
        for _ in range(chance.randint(1, 2)):
            at, letter = chance.randint(0, len(cell)), chance.choice(_LETTERS)
            cell[at : at + chance.randint(0, 1)] = bytes([letter])
        out.append(bytes(cell))
    return out[:DEAL]


@pytest.fixture(scope="module")
def judged(spark_app: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[list[bytes]], pa.Table]:
    """(cells by case, what Spark makes of them: c<k>, and their losses, lost<k>)."""
    chance = random.Random(11)
    cells = [dealt(c, chance) for c in CASES]
    with spark_session(lake_settings(lakes.feed(tmp_path_factory.mktemp("cells"))), "cells") as spark:
        rows = spark.createDataFrame(pa.table({"n": range(DEAL)} | {f"x{k}": pa.array(x, pa.binary()) for k, x in enumerate(cells)}))
        typed = rows.selectExpr("*", *(f"{cast(f'x{k}', c.mysql, c.rules)} AS c{k}" for k, c in enumerate(CASES)))
        lost = (f"concat_ws(' ', NULL{_losses(c, k)}) AS lost{k}" for k, c in enumerate(CASES))
        return cells, typed.selectExpr("n", *(f"c{k}" for k in range(len(CASES))), *lost).toArrow().sort_by("n")


def _losses(c: Case, k: int) -> str:
    return "".join(f", IF({sql}, '{kind}', NULL)" for kind, sql in losses(f"x{k}", f"c{k}", c.mysql, c.rules).items())


def read(c: Case, cells: list[bytes | None]) -> list[tuple[Any, str]]:
    """(value, its loss) of each cell. Times are numbers: Python's do not have all of them."""
    found, lost = values(pa.array(cells, pa.binary()), cell_type(c.mysql, c.rules))
    assert found.type == arrow_type(c.lake)
    said = [""] * len(cells) if lost is None else [LOSSES[n - 1] if n else "" for n in lost]
    return list(zip(_comparable(found), said, strict=True))


def _comparable(found: pa.Array) -> list[Any]:
    if pa.types.is_temporal(found.type):
        found = found.cast(pa.int32() if found.type == pa.date32() else pa.int64())
    return list(found.to_pylist())


def test_what_is_read_and_lost_is_what_spark_reads_and_loses(judged: tuple[list[list[bytes]], pa.Table]) -> None:
    cells, by_spark = judged
    kept, lost, differ = 0, 0, list[Any]()
    for k, c in enumerate(CASES):
        wanted = zip(_comparable(by_spark.column(f"c{k}").combine_chunks()), by_spark.column(f"lost{k}").to_pylist(), strict=True)
        for cell, mine, theirs in zip(cells[k], read(c, list(cells[k])), wanted, strict=True):
            kept, lost = kept + (not mine[1]), lost + (mine[1] != "")
            if mine != theirs and not is_lenient(c, cell):
                differ.append((c.type, cell, mine, theirs))
    assert differ == []
    assert min(kept, lost) > 1000, (kept, lost)


@settings(max_examples=examples(300), deadline=None)
@given(case=st.sampled_from(CASES), data=st.data())
def test_any_batch_is_read_as_its_cells_are(case: Case, data: st.DataObject) -> None:
    cell = st.one_of(st.none(), st.binary(max_size=24), st.sampled_from(case.cells))
    cells = data.draw(st.lists(cell, max_size=8))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_MANY", "_FIRST"):
            patch.setattr(cells_of_lake, name, data.draw(st.integers(1, 9), label=name))
        found = read(case, cells)
    assert found == [one for c in cells for one in read(case, [c])]
    assert all(value is None and not lost for c, (value, lost) in zip(cells, found, strict=True) if c is None)
    assert all(value is not None or lost for c, (value, lost) in zip(cells, found, strict=True) if c is not None)


def test_nothing_is_read_of_an_empty_batch() -> None:
    for c in CASES:
        assert read(c, []) == []
        assert read(c, [None]) == [(None, "")]


@pytest.mark.parametrize(("cells", "most"), [(9_999, 9_999), (10_001, 256)])
def test_a_large_batch_is_not_read_whole_if_its_first_cells_are_no_values(cells: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, plain = list[int](), cells_of_lake._value_of

    def noted(text: pa.Array, kind: CellType) -> pa.Array:
        sizes.append(len(text))
        return plain(text, kind)

    monkeypatch.setattr(cells_of_lake, "_value_of", noted)
    kind = cell_type(MysqlType.parse("date"), CastRules(time_zone="UTC", names_sent=False))
    sent = pa.array([b"0000-00-00", b"2026-01-02"] * (cells // 2) + [b"2026-01-03"], pa.binary())
    found, lost = values(sent, kind)
    assert max(sizes) == most
    assert (found.null_count, lost is not None and int((lost > 0).sum())) == (cells // 2, cells // 2)
