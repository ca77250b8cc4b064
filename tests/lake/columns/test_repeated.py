"""Columns as dictionaries: the values never change, and a dictionary is only made where it is shorter."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelake.lake.columns.repeated import as_dictionary, together, with_short_dictionaries

MANY = 40_000  # more than a sample
VALUES = st.lists(st.sampled_from(["a", "b", "cc", "", None]), max_size=20)


def is_coded(cells: pa.Array | pa.ChunkedArray) -> bool:
    return bool(pa.types.is_dictionary(cells.type))


@given(VALUES)
def test_few_cells_are_a_dictionary_if_each_value_has_two(values: list[str | None]) -> None:
    found = as_dictionary(pa.array(values, pa.string()))
    assert found.to_pylist() == values
    assert is_coded(found) == (2 * len(set(values) - {None}) <= len(values))


def test_many_cells_are_judged_by_cells_from_everywhere() -> None:
    repeated = pa.array([f"{n % 1000}" for n in range(MANY)])  # no two of the first 1,000 are equal
    assert is_coded(as_dictionary(repeated))
    assert as_dictionary(repeated).to_pylist() == repeated.to_pylist()
    different = pa.array([f"{n}" for n in range(MANY)])
    assert as_dictionary(different) is different


def test_a_dictionary_that_is_longer_than_its_cells_is_resolved() -> None:
    coded = pa.array(["a", "b", "c", "a", "b", "c"]).dictionary_encode()
    assert is_coded(as_dictionary(coded[:3]))
    assert as_dictionary(coded[1:3]).equals(pa.array(["b", "c"]))


@given(st.lists(st.tuples(VALUES, st.sampled_from(["coded", "plain", "missing"])), min_size=1, max_size=6))
def test_tables_together_have_the_values_of_each(parts: list[tuple[list[str | None], str]]) -> None:
    tables, wanted, rows = list[pa.Table](), list[dict[str, Any]](), {"coded": 0, "plain": 0, "missing": 0}
    for values, kind in parts:
        cells = pa.array(values, pa.string())
        columns = {"n": pa.array(range(len(values)), pa.int64())}
        tables.append(pa.table(columns if kind == "missing" else columns | {"v": cells.dictionary_encode() if kind == "coded" else cells}))
        wanted += [{"n": n, "v": None if kind == "missing" else v} for n, v in enumerate(values)]
        rows[kind] += len(values)
    found = together(tables)
    assert [{"v": None} | row for row in found.to_pylist()] == wanted
    if rows["coded"] and rows["plain"]:
        assert is_coded(found.column("v")) == (rows["coded"] >= rows["plain"])


@pytest.mark.parametrize("several", [1, 3])
def test_what_is_together_has_one_dictionary_in_one_chunk(several: int) -> None:
    tables = [pa.table({"v": pa.array([f"{k}", f"{k}", "x"]).dictionary_encode()}) for k in range(several)]
    (chunk,) = together(tables).column("v").chunks
    assert sorted(chunk.dictionary.to_pylist()) == sorted({"x", *(f"{k}" for k in range(several))})


def test_many_parts_with_the_same_values_have_the_size_of_one_dictionary() -> None:
    values = pa.array([f"{n:064d}" for n in range(500)])
    tables = [pa.table({"v": pa.DictionaryArray.from_arrays(pa.array([k], pa.int32()), values)}) for k in range(200)]
    assert together(tables).nbytes < 2 * values.nbytes


def test_chosen_rows_do_not_keep_the_values_of_others() -> None:
    values = pa.array([f"{n:064d}" for n in range(500)] * 2)
    rows = pa.record_batch({"n": range(1000), "v": values.dictionary_encode()})
    few, most = with_short_dictionaries(rows.take(pa.array([3, 998]))), with_short_dictionaries(rows.slice(0, 900))
    assert few.to_pylist() == [{"n": k, "v": values[k].as_py()} for k in (3, 998)]
    assert (few.nbytes < 200, is_coded(few.column("v")), is_coded(most.column("v"))) == (True, False, True)
