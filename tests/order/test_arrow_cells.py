"""Cells that workers read themselves are read as Spark's casts have them, with nothing lost; all others are refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake import lakes
from tests.order.type_cases import CASES, Case
from tidelake.order.arrow.arrow_cells import NotPlain, arrow_type, cell_type, values
from tidelake.spark.lake_settings import lake_settings
from tidelake.spark.session import spark_session
from tidelake.spark.sql_casts import cast, losses

READ = [c for c in CASES if cell_type(c.mysql, c.rules) is not None]
DEAL = 160  # cells of each column
_LETTERS = b"0123456789-+.:eExX TZ /,aN\x00\xff"


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
    """(cells by case, what Spark makes of them: c<k> and whether something is lost, lost<k>)."""
    chance = random.Random(11)
    cells = [dealt(c, chance) for c in READ]
    with spark_session(lake_settings(lakes.feed(tmp_path_factory.mktemp("cells"))), "cells") as spark:
        rows = spark.createDataFrame(pa.table({"n": range(DEAL)} | {f"x{k}": pa.array(x, pa.binary()) for k, x in enumerate(cells)}))
        typed = rows.selectExpr("*", *(f"{cast(f'x{k}', c.mysql, c.rules)} AS c{k}" for k, c in enumerate(READ)))
        lost = (f"coalesce({' OR '.join(_losses(c, k)) or 'false'}, false) AS lost{k}" for k, c in enumerate(READ))
        return cells, typed.selectExpr("n", *(f"c{k}" for k in range(len(READ))), *lost).toArrow().sort_by("n")


def _losses(c: Case, k: int) -> list[str]:
    return [f"({sql})" for sql in losses(f"x{k}", f"c{k}", c.mysql, c.rules).values()]


def read(c: Case, cell: bytes | None) -> Any:
    """The value. Raises NotPlain."""
    kind = cell_type(c.mysql, c.rules)
    assert kind is not None
    found = values(pa.array([cell], pa.binary()), kind)
    assert found.type == arrow_type(c.lake)
    return found.cast(pa.int64())[0].as_py() if pa.types.is_temporal(found.type) and found.type != pa.date32() else _value(found)


def _value(found: pa.Array) -> Any:
    return (found.cast(pa.int32()) if found.type == pa.date32() else found)[0].as_py()


def test_what_is_read_is_what_spark_reads(judged: tuple[list[list[bytes]], pa.Table]) -> None:
    cells, by_spark = judged
    taken, refused = 0, 0
    for k, c in enumerate(READ):
        column = by_spark.column(f"c{k}").combine_chunks()
        wanted = column.cast(pa.int32() if column.type == pa.date32() else pa.int64()) if pa.types.is_temporal(column.type) else column
        for n, cell in enumerate(cells[k]):
            try:
                found = read(c, cell)
            except NotPlain:
                refused += 1
                continue
            taken += 1
            assert not by_spark.column(f"lost{k}")[n].as_py(), f"{c.type}: {cell!r} was read as {found!r}, but something is lost"
            assert found == wanted[n].as_py(), f"{c.type}: {cell!r}"
    assert min(taken, refused) > 1000, (taken, refused)


def test_values_that_come_back_as_they_are_are_read() -> None:
    refused = {(c.type, cell) for c in READ for cell in map(_bytes, c.same) if not _reads(c, cell)}
    assert {len(cell) > 38 for _, cell in refused} == {True}, refused  # as many digits as Arrow does not hold


def test_types_that_are_left_to_spark() -> None:
    left = {c.mysql.word for c in CASES} - {c.mysql.word for c in READ}
    assert left == {"vector"}


def _bytes(cell: str | bytes) -> bytes:
    return cell if isinstance(cell, bytes) else cell.encode()


def _reads(c: Case, cell: bytes) -> bool:
    try:
        read(c, cell)
    except NotPlain:
        return False
    return True


@settings(max_examples=300, deadline=None)
@given(case=st.sampled_from(READ), cells=st.lists(st.one_of(st.none(), st.binary(max_size=24)), max_size=6))
def test_any_bytes_are_read_or_refused_and_null_is_null(case: Case, cells: list[bytes | None]) -> None:
    kind = cell_type(case.mysql, case.rules)
    assert kind is not None
    try:
        found = values(pa.array(cells, pa.binary()), kind)
    except NotPlain:
        return
    assert [v is None for v in found.is_valid().to_pylist()] == [False] * len(cells)
    assert found.is_valid().to_pylist() == [c is not None for c in cells]


def test_nothing_is_read_of_an_empty_batch(tmp_path: Path) -> None:
    for c in READ:
        kind = cell_type(c.mysql, c.rules)
        assert kind is not None
        assert len(values(pa.array([], pa.binary()), kind)) == 0
        assert values(pa.array([None], pa.binary()), kind).null_count == 1
