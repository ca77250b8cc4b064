"""The compared text of every type, and the sums of it, against texts and sums made without SQL."""

from __future__ import annotations

from functools import reduce
from operator import xor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.query.verify import everything
from tests.query.verify.everything import total
from tidelake.config.feed import Feed
from tidelake.config.policy import ValueRules
from tidelake.history.ddl.column_types import MysqlType, lake_type
from tidelake.io import duckdb_door as duck
from tidelake.lake.opened import Lake
from tidelake.query.asof import life_at, table_asof
from tidelake.query.render import local
from tidelake.query.verify.cell_texts import CellText, LakeCell, SourceCell, cell_text, row_text
from tidelake.query.verify.here import summed
from tidelake.query.verify.questions import ComparePlan
from tidelake.query.verify.table import plan_of


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Feed:
    return everything.lake(tmp_path_factory.mktemp("lake"))


def planned(lake: Lake, table: str, source: SourceCell = SourceCell.tidb) -> ComparePlan:
    ts, life = life_at(lake, table, None)
    plan, _, _ = plan_of(lake.feed, life, table, ts, source)
    assert plan is not None
    return plan


def test_every_type_has_its_text(feed: Feed) -> None:
    with Lake.of(feed) as lake, table_asof(lake, "d.everything", None) as found:
        here = row_text(planned(lake, "d.everything").texts)[1]
        texts = [row[0] for row in duck.to_text(local(found.rows, "UTC"), [here], everything.ROWS)]
    assert texts == [everything.text(i) for i in range(everything.ROWS)]


@pytest.mark.parametrize("size", [7, 50, 1000])
def test_sums_are_those_of_the_rows_in_order_of_the_key(size: int, feed: Feed) -> None:
    order = sorted(range(everything.ROWS), key=lambda i: (i % 3, -i))  # region, then the id, which falls
    with Lake.of(feed) as lake, table_asof(lake, "d.everything", None) as found:
        plan = planned(lake, "d.everything")
        with summed(plan, local(found.rows, "UTC")) as here:
            parts = here.parts(size)
            inside = here.parts(2, parts[0].range)
    wanted = [order[at : at + size] for at in range(0, everything.ROWS, size)]
    assert [(p.rows, p.total) for p in parts] == [(len(w), reduce(xor, (total(everything.text(i)) for i in w))) for w in wanted]
    assert [p.range.high for p in parts[:-1]] == [(str(w[-1] % 3), str(2**64 - 1 - w[-1])) for w in wanted[:-1]]
    assert [p.range.low for p in parts[1:]] == [p.range.high for p in parts[:-1]]
    assert (parts[0].range.low, parts[-1].range.high) == (None, None)
    assert sum(p.rows for p in inside) == parts[0].rows
    assert reduce(xor, (p.total for p in inside)) == parts[0].total
    assert (inside[0].range.low, inside[-1].range.high) == (None, parts[0].range.high)


def test_equal_rows_of_a_table_without_a_key_do_not_cancel_out(feed: Feed) -> None:
    with (
        Lake.of(feed) as lake,
        table_asof(lake, "d.bag", None) as found,
        summed(planned(lake, "d.bag"), local(found.rows, "UTC")) as here,
    ):
        parts = here.parts(1000)
    texts = ["5:twice|1", "5:twice|1", "~|2", *(f"{len(f'v{i}')}:v{i}|{i}" for i in range(20))]
    assert [(p.rows, p.total) for p in parts] == [(len(texts), sum(map(total, texts)))]


def test_an_empty_table_is_one_range_without_rows(feed: Feed) -> None:
    with Lake.of(feed) as lake, table_asof(lake, "d.words", None) as found:
        none = pa.RecordBatchReader.from_batches(found.rows.schema, [])
        with summed(planned(lake, "d.words"), none) as here:
            (part,) = here.parts(10)
    assert (here.rows, part.rows, part.total, part.range.low, part.range.high) == (0, 0, 0, None, None)


def _cell(sql: str, zero_date: str = "null") -> LakeCell:
    mysql = MysqlType.parse(sql)
    kind = lake_type(mysql, ValueRules(zero_date=zero_date))  # type: ignore[arg-type]
    return LakeCell(name="c", lake_name="c", type=mysql, lake_type=kind, zero_is_null=zero_date == "null")


def test_a_vector_is_written_as_tidb_writes_it() -> None:
    text = cell_text(_cell("vector(9)"), SourceCell.tidb, "UTC")
    assert isinstance(text, CellText)
    vector = pa.array([[1.0, 2.5, -1e20, 1e-7, 123456792.0, 0.1, -0.0, 1.5e-10, 16777216.0], [], None], pa.list_(pa.float32()))
    rows = pa.RecordBatchReader.from_batches(pa.schema([("c", vector.type)]), [pa.RecordBatch.from_arrays([vector], names=["c"])])
    assert duck.to_text(rows, [text.here], 3) == [
        ("[1,2.5,-100000000000000000000,0.0000001,123456790,0.1,-0,0.00000000015,16777216]",),
        ("[]",),
        ("~",),
    ]


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=40))
@example([3e10, 3.4028234663852886e38, 1.401298464324817e-45, 30000001024.0, 99999.9921875, 0.0])
def test_a_vector_has_the_fewest_digits_that_read_back_as_its_numbers(numbers: list[float]) -> None:
    """As Go's strconv writes a float32, which numpy does, too."""
    text = cell_text(_cell("vector"), SourceCell.tidb, "UTC")
    assert isinstance(text, CellText)
    vector = pa.array([numbers], pa.list_(pa.float32()))
    rows = pa.RecordBatchReader.from_batches(pa.schema([("c", vector.type)]), [pa.RecordBatch.from_arrays([vector], names=["c"])])
    wanted = ",".join(np.format_float_positional(np.float32(n), unique=True, trim="-") for n in numbers)
    assert duck.to_text(rows, [text.here], 1) == [(f"[{wanted}]",)]


@pytest.mark.parametrize(
    ("sql", "source", "zone", "zero_date", "why"),
    [
        ("json", SourceCell.mysql, "UTC", "null", "MySQL writes the members of JSON in its own order"),
        ("vector(3)", SourceCell.mariadb, "UTC", "null", "mariadb has no text of a VECTOR that TiDB has"),
        ("timestamp(3)", SourceCell.tidb, "Asia/Shanghai", "string", "kept as text of Asia/Shanghai"),
    ],
)
def test_what_cannot_be_compared_says_why(sql: str, source: SourceCell, zone: str, zero_date: str, why: str) -> None:
    assert cell_text(_cell(sql, zero_date), source, zone) == why


@pytest.mark.parametrize(
    ("sql", "a", "b", "same"),
    [
        ("json", '13:{"a":1,"b":2}', '16:{"b": 2, "a": 1}', True),
        ("json", "7:{\"a\":1}", "7:{\"a\":2}", False),
        ("json", "1:{", "2:{ ", False),
        ("double", "1152921504606846976p0", "2305843009213693952p-1", True),
        ("double", "1152921504606846976p0", "0", False),
        ("double", "~", "0", False),
        ("varchar(9)", "1:a", "1:A", False),
    ],
)  # fmt: skip
def test_texts_of_one_value_are_the_same(sql: str, a: str, b: str, same: bool) -> None:
    text = cell_text(_cell(sql), SourceCell.tidb, "UTC")
    assert isinstance(text, CellText)
    assert text.same(a, b) is same


def test_rows_that_changed_alike_cancel_out_in_crc32_and_not_in_what_is_used() -> None:
    """Why MD5: CRC32 is linear, so an UPDATE of two rows that was lost would not be seen."""
    import zlib

    lost, kept = ["1|4:paid", "2|4:paid"], ["1|4:open", "2|4:open"]
    assert reduce(xor, (zlib.crc32(t.encode()) for t in lost)) == reduce(xor, (zlib.crc32(t.encode()) for t in kept))
    assert reduce(xor, map(total, lost)) != reduce(xor, map(total, kept))
