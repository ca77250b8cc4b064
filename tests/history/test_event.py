"""What crosses between stages."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelake.errors import Coordinates
from tidelake.history.event import EVENT, KINDS, MESSAGE, OPS, Event, EventRows, RowSchema, SchemaColumn, schema_rows

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
COLUMNS = st.builds(
    SchemaColumn,
    name=TEXT,
    type=st.none() | st.sampled_from(["bigint unsigned", "varbinary", "enum"]),
    key=st.booleans(),
    flag=st.none() | st.integers(0, 255),
    full_type=st.none() | TEXT,
    elements=st.none() | st.lists(TEXT, max_size=3).map(tuple),
)
SCHEMAS = st.lists(COLUMNS, max_size=4).map(lambda columns: RowSchema(tuple(columns)))

ID = SchemaColumn(name="id", type="bigint", key=True, flag=11)
NOTE = SchemaColumn(name="note", type="varchar")
PLAIN = RowSchema((ID, NOTE))
AT = Coordinates("shop", 3, 1017)


def test_a_message_has_coordinates_that_are_never_null() -> None:
    assert MESSAGE.names == ["topic", "partition", "offset", "timestamp_ms", "key", "value", "headers"]
    assert [f.nullable for f in MESSAGE] == [False, False, False, True, True, True, True]
    assert MESSAGE.field("headers").type == pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def test_no_event_column_is_of_a_type_that_cannot_pass_to_spark() -> None:
    refused = [
        f.name for f in EVENT if pa.types.is_dictionary(f.type) or pa.types.is_unsigned_integer(f.type) or pa.types.is_large_list(f.type)
    ]
    assert refused == []
    assert EVENT.field("after").type == EVENT.field("before").type == pa.list_(pa.binary())
    assert len(EVENT) == 27
    assert [f.name for f in EVENT if not f.nullable] == ["kind"]


def test_a_schema_s_json_has_only_what_is_known() -> None:
    assert json.loads(RowSchema((ID, SchemaColumn(name="é"))).json) == [
        {"name": "id", "type": "bigint", "key": True, "flag": 11},
        {"name": "é", "key": False},
    ]
    assert RowSchema((ID,)).json == '[{"name":"id","type":"bigint","key":true,"flag":11}]'


@given(SCHEMAS)
def test_a_schema_is_read_back_from_its_json(row_schema: RowSchema) -> None:
    again = RowSchema.from_json(row_schema.json)
    assert again == row_schema
    assert again.id == row_schema.id


@given(SCHEMAS, SCHEMAS)
def test_schemas_have_one_id_exactly_if_they_are_equal(one: RowSchema, other: RowSchema) -> None:
    assert (one.id == other.id) == (one == other)
    assert -(1 << 63) <= one.id < 1 << 63


def test_the_id_of_a_schema_never_changes() -> None:
    assert PLAIN.id == -2223019482639713194  # it stands in lakes


def test_the_order_of_columns_and_every_detail_are_part_of_the_schema() -> None:
    others = [
        RowSchema((NOTE, ID)),
        RowSchema((ID,)),
        RowSchema((ID, SchemaColumn(name="note", type="text"))),
        RowSchema((ID, SchemaColumn(name="note", type="varchar", key=True))),
        RowSchema((ID, SchemaColumn(name="note", type="varchar", flag=0))),
        RowSchema((ID, SchemaColumn(name="note", type="varchar", full_type="varchar(20)"))),
        RowSchema((ID, SchemaColumn(name="note", type="varchar", elements=()))),
    ]
    assert len({s.id for s in [PLAIN, *others]}) == 8


def test_the_events_of_a_message_are_numbered_from_0() -> None:
    rows = EventRows()
    rows.add(AT, 1700, [Event(kind="resolved", commit_ts=5), Event(kind="resolved", commit_ts=6)])
    rows.add(Coordinates("shop", 3, 1018), None, [Event(kind="resolved", commit_ts=7)])
    batch = rows.batch().to_pylist()
    assert [(r["offset"], r["ordinal"], r["timestamp_ms"], r["commit_ts"]) for r in batch] == [
        (1017, 0, 1700, 5),
        (1017, 1, 1700, 6),
        (1018, 0, None, 7),
    ]
    assert {(r["topic"], r["partition"]) for r in batch} == {("shop", 3)}


def test_an_event_row_says_all_that_the_event_says() -> None:
    event = Event(
        kind="row",
        op="update",
        commit_ts=(1 << 64) - 1,
        database="db",
        table="t",
        physical_table_id=-7,
        row_schema=PLAIN,
        before_schema=RowSchema((ID,)),
        after=[b"1", None],
        before=[b"2"],
        handle_only=True,
        claim_check="a.json",
    )
    rows = EventRows()
    rows.add(AT, 1700, [event])
    batch = rows.batch()
    assert batch.schema == EVENT
    said = {name: value for name, value in batch.to_pylist()[0].items() if value is not None}
    assert said == {
        "topic": "shop",
        "partition": 3,
        "offset": 1017,
        "ordinal": 0,
        "timestamp_ms": 1700,
        "kind": "row",
        "op": "update",
        "commit_ts": -1,
        "database": "db",
        "table": "t",
        "physical_table_id": -7,
        "row_schema": PLAIN.id,
        "before_schema": RowSchema((ID,)).id,
        "after": [b"1", None],
        "before": [b"2"],
        "handle_only": True,
        "claim_check": "a.json",
    }


def test_a_rejected_event_keeps_the_raw_bytes() -> None:
    rows = EventRows()
    rows.add(AT, 1, [Event(kind="rejected", error_code="TRUNCATED", error="short", raw_key=b"", raw_value=b"\xff")])
    (row,) = rows.batch().to_pylist()
    assert (row["error_code"], row["error"], row["raw_key"], row["raw_value"]) == ("TRUNCATED", "short", b"", b"\xff")
    assert (row["row_schema"], row["after"], row["commit_ts"]) == (None, None, None)


def test_a_batch_remembers_each_schema_once() -> None:
    rows = EventRows()
    rows.add(
        AT,
        1,
        [
            Event(kind="row", row_schema=PLAIN, after=[b"1", b""]),
            Event(kind="row", row_schema=PLAIN, before_schema=RowSchema((ID,)), after=[b"2", b""]),
        ],
    )
    assert rows.row_schemas == {PLAIN.id: PLAIN, RowSchema((ID,)).id: RowSchema((ID,))}


def test_an_empty_batch_has_the_schema() -> None:
    assert EventRows().batch().schema == EVENT
    assert EventRows().batch().num_rows == 0


def test_schemas_travel_as_rows_in_order_of_their_ids() -> None:
    row_schemas = [PLAIN, RowSchema((ID,)), RowSchema(())]
    rows = schema_rows(row_schemas).to_pylist()
    assert [r["row_schema"] for r in rows] == sorted(s.id for s in row_schemas)
    assert {r["row_schema"]: RowSchema.from_json(r["columns"]) for r in rows} == {s.id: s for s in row_schemas}
    assert {(r["kind"], r["offset"], r["topic"]) for r in rows} == {("row_schema", None, None)}


@pytest.mark.parametrize(("words", "count"), [(KINDS, 6), (OPS, 4)])
def test_kinds_and_ops_are_words_without_doubles(words: tuple[str, ...], count: int) -> None:
    assert len(set(words)) == len(words) == count
