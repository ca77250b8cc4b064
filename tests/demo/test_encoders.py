"""The demo's encoders give TiCDC's own bytes for what its vectors were made from (docs/reference/protocols.md 12)."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import replace
from typing import Any

import pytest

from tests.demo import vectors
from tidelake.demo.messages.encode_avro import AvroEncoder, record
from tidelake.demo.messages.encode_canal_json import CanalJsonEncoder
from tidelake.demo.messages.encode_craft import CraftEncoder
from tidelake.demo.messages.encode_debezium import DebeziumEncoder
from tidelake.demo.messages.encode_open import OpenEncoder
from tidelake.demo.messages.encode_simple import SimpleEncoder
from tidelake.demo.messages.model import Ddl, Encoder, SourceChange, SourceColumn, SourceTable, TopicRecord
from tidelake.wire.cells.mysql_codes import word

COUNTS = {"open": 157, "craft": 154, "canal-json": 134, "avro": 113, "simple-json": 37, "debezium": 18}
DEBEZIUM_TYPES = {  # of the vectors' columns, where the code and flag do not say all
    **{"b1": "bit(1)", "b8": "bit(8)", "b10": "bit(10)", "b63": "bit(63)", "b64": "bit(64)", "bitT": "bit(10)"},
    **{"dt6": "datetime(6)", "e": "enum('a','b','c,d','q''uote','ü')", "s": "set('a','b','c')"},
    **{"s64": "set(" + ",".join(f"'m{i}'" for i in range(64)) + ")", "enumT": "enum('a','b','c')", "setT": "set('a','b','c')"},
}
DEBEZIUM_DEFAULTS = {"tu1": "1", "s": "5", "m": "10", "i": "15", "bi": "20", "biu": "21", "floatT": "3.14", "doubleT": "2.7182818284"}
DEBEZIUM_DEFAULTS |= {"decimalT": "179394.2333", "varcharT": "测试Varchar default", "enumT": "b", "setT": "c"}
ANY_TS = re.compile(rb'"ts":\d+,')
ID = SourceColumn("id", "int(11)", 3, 0x0B)
ANY_NUMBER = re.compile(rb'"(?:buildTs|tableID|schemaVersion)":\d+')
WORKED = SourceTable("s", "t", (ID,))


def test_the_worked_example_of_a_craft_row_comes_out() -> None:
    """docs/reference/protocols.md 3.7 (a)."""
    want = "01 05 01 01 00 02 01 01 04 03 0b 02 02 03 01 01 02 73 74 6964 02 0a 06 01 0e 01 0e 07"
    assert CraftEncoder().rows([SourceChange(WORKED, 5, "insert", None, (1,))]) == (b"", bytes.fromhex(want))


def test_the_worked_example_of_an_open_batch_comes_out() -> None:
    """docs/reference/protocols.md 2.5."""
    table = SourceTable("marvin", "t1", (ID, SourceColumn("val", "varchar(16)", 15, 0x40)))
    rows: list[tuple[int, str]] = [(1, "aa"), (3, "cc")]
    key, value = OpenEncoder().rows([SourceChange(table, 454376015366979596, "insert", None, row, row[0]) for row in rows])
    assert (len(key or b""), len(value or b"")) == (154, 162)
    assert key is not None
    assert key[:81] == bytes(7) + b"\x01" + bytes(7) + b"\x41" + b'{"ts":454376015366979596,"scm":"marvin","tbl":"t1","rid":1,"t":1}'
    assert OpenEncoder().resolved(446266400629063700)[1] == bytes(8)


def test_row_messages_have_an_empty_key_and_statements_and_resolved_ts_a_null_one() -> None:
    """docs/reference/protocols.md 1.7; Open Protocol always has a key."""
    row, ddl = SourceChange(WORKED, 5, "insert", None, (1,)), Ddl(6, "s", "t", "TRUNCATE TABLE `t`", 11)
    for encoder in (CraftEncoder(), CanalJsonEncoder()):
        keys = [encoder.rows([row], 0)[0], encoder.ddl(ddl, 0)[0], encoder.resolved(7, 0)[0]]
        assert keys == [b"", None, None]
    assert all((record[0] or b"").startswith(bytes(7) + b"\x01") for record in (OpenEncoder().rows([row]), OpenEncoder().ddl(ddl)))


def test_an_avro_delete_is_a_tombstone_with_the_key_of_the_old_row() -> None:
    encoder = AvroEncoder()
    insert, delete = (
        encoder.rows([c]) for c in (SourceChange(WORKED, 5, "insert", None, (1,)), SourceChange(WORKED, 6, "delete", (1,), None))
    )
    assert delete == (insert[0], None) == (bytes.fromhex("0000000001 02"), None)
    assert insert[1] is not None
    assert insert[1].startswith(bytes.fromhex("0000000002 02"))


def test_equal_seeds_order_mysql_type_alike_and_repeats_differently() -> None:
    table = SourceTable("s", "t", tuple(SourceColumn(f"c{i}", "int(11)", 3, 0x41) for i in range(8)))
    change = SourceChange(table, 5, "insert", None, tuple(range(8)))
    runs = [
        [e.rows([change], 9)[1] for _ in range(6)] for e in (CanalJsonEncoder(seed=1), CanalJsonEncoder(seed=1), CanalJsonEncoder(seed=2))
    ]
    assert runs[0] == runs[1] != runs[2]
    assert len(set(runs[0])) > 1


@pytest.mark.parametrize("protocol", COUNTS)
def test_nearly_all_encoder_vectors_can_be_made_again(protocol: str) -> None:
    assert len(vectors.load(protocol)) == COUNTS[protocol]


@pytest.mark.parametrize("vector", [pytest.param(v, id=v["name"]) for v in vectors.load("open")])
def test_open_records_are_byte_equal_to_ticdc_s(vector: dict[str, Any]) -> None:
    key, value = encoded(OpenEncoder(), vector)
    assert (key or b"").hex() == vector["key_hex"]
    assert (value or b"").hex() == vector["value_hex"]


@pytest.mark.parametrize("vector", [pytest.param(v, id=v["name"]) for v in vectors.load("craft")])
def test_craft_values_are_byte_equal_to_ticdc_s(vector: dict[str, Any]) -> None:
    key, value = encoded(CraftEncoder(), with_wide_floats(vector))
    assert key == (b"" if "op" in vectors.events(vector)[0] else None)
    assert (value or b"").hex() == vector["value_hex"]


@pytest.mark.parametrize("vector", [pytest.param(v, id=v["name"]) for v in vectors.load("canal-json")])
def test_canal_json_values_are_ticdc_s_but_for_build_time_and_the_order_of_mysql_type(vector: dict[str, Any]) -> None:
    options = vector["options"]
    compatible = options.get("content_compatible", False)
    encoder = CanalJsonEncoder(seed=3, tidb_extension=options["enable_tidb_extension"], content_compatible=compatible)
    want = bytes.fromhex(vector["value_hex"])
    _, value = encoded(encoder, vector, full_types=compatible)
    assert without_variation(value or b"") == without_variation(want)
    assert json.loads(value or b"").get("mysqlType") == json.loads(want)["mysqlType"]


@pytest.mark.parametrize("vector", [pytest.param(v, id=v["name"]) for v in vectors.load("avro")])
def test_avro_records_are_byte_equal_to_ticdc_s_under_its_schemas(vector: dict[str, Any]) -> None:
    event = vectors.events(vector)[0]
    if event["type"] != "row":
        key, value = encoded(AvroEncoder(), vector)
        assert (key, (value or b"").hex()) == (None, vector["value_hex"])
        return
    assert avro(vector, "key", event["key"]).hex() == vector["key_hex"]
    if vector["value_hex"] is not None:
        assert avro(vector, "value", event["columns"], extension(event, vector["value_schema"])).hex() == vector["value_hex"]


@pytest.mark.parametrize("vector", [pytest.param(v, id=v["name"]) for v in vectors.load("simple-json") if "op" in v["expected"]])
def test_simple_rows_are_ticdc_s_but_for_build_time_table_id_and_schema_version(vector: dict[str, Any]) -> None:
    want = bytes.fromhex(vector["value_hex"])
    checksum = re.compile(rb',"checksum":\{[^}]*\}')
    _, value = encoded(SimpleEncoder(), vector)
    assert ANY_NUMBER.sub(b"", value or b"") == ANY_NUMBER.sub(b"", checksum.sub(b"", want))


@pytest.mark.parametrize(
    "vector", [pytest.param(v, id=v["name"]) for v in vectors.load("debezium") if v["expected"]["type"] in ("row", "resolved")]
)
def test_debezium_records_are_ticdc_s_but_for_build_time(vector: dict[str, Any]) -> None:
    schema = not vector["options"].get("debezium_disable_schema", False)
    event = vectors.events(vector)[0]
    encoder, build_ms = DebeziumEncoder(schema=schema), int(re.findall(rb'"ts_ms":(\d+)', bytes.fromhex(vector["value_hex"]))[1])
    key, value = encoder.resolved(event["commit_ts"], build_ms) if "op" not in event else encoder.rows([with_types(event)], build_ms)
    assert (key or b"").decode() == bytes.fromhex(vector["key_hex"]).decode()
    assert (value or b"").decode() == bytes.fromhex(vector["value_hex"]).decode()


def with_types(event: dict[str, Any]) -> SourceChange:
    """The vector's change with what Debezium's schema says besides."""
    change = vectors.change(event)
    columns = []
    for c in change.table.columns:
        bare, full = word(c.code, c.flag) or "", DEBEZIUM_TYPES.get(c.name, "")
        columns.append(replace(c, type=full if full.startswith(bare) else bare, default=DEBEZIUM_DEFAULTS.get(c.name)))
    return change._replace(table=change.table.with_columns(columns))


def encoded(encoder: Encoder, vector: dict[str, Any], *, full_types: bool = False) -> TopicRecord:
    """The record of a vector's events by one of our encoders."""
    events = vectors.events(vector)
    if events[0]["type"] == "ddl":
        return encoder.ddl(vectors.ddl(events[0]), 0)
    if events[0]["type"] == "resolved":
        return encoder.resolved(events[0]["commit_ts"], 0)
    return encoder.rows([vectors.change(e, full_types=full_types) for e in events], 0)


def without_variation(value: bytes) -> bytes:
    """Canal-JSON bytes with a build time of 0 and the members of mysqlType in order of their text."""
    head, mark, rest = ANY_TS.sub(b'"ts":0,', value, count=1).partition(b'"mysqlType":{')
    if not mark:
        return head
    types, tail = rest[: rest.index(b'},"old"')], rest[rest.index(b'},"old"') :]
    pairs = re.findall(rb'"(?:[^"\\]|\\.)*":"(?:[^"\\]|\\.)*"', types)
    return head + mark + b",".join(sorted(pairs)) + tail


def with_wide_floats(vector: dict[str, Any]) -> dict[str, Any]:
    """FLOAT values as the nearest float32, which Craft sends as float64."""
    copy: dict[str, Any] = json.loads(json.dumps(vector))
    for column in (c for e in vectors.events(copy) for c in [*e.get("columns", []), *e.get("old_columns", [])]):
        if column["type"] == 4 and isinstance(column["value"], float) and "wire_f64_le_hex" not in column:
            column["value"] = struct.unpack("<f", struct.pack("<f", column["value"]))[0]
    return copy


def avro(vector: dict[str, Any], side: str, columns: list[dict[str, Any]], more: tuple[Any, ...] = ()) -> bytes:
    """A record under the vector's schema and schema id; ENUM and SET by name."""
    values = [c["text"] if c["type"] in (247, 248) and c["value"] is not None else vectors.value(c) for c in columns]
    return record(int(vector[f"{side}_hex"][2:10], 16), vector[f"{side}_schema"], [*values, *more])


def extension(event: dict[str, Any], schema: dict[str, Any]) -> tuple[Any, ...]:
    """The values of the fields that enable-tidb-extension and enable-row-checksum append."""
    names = [f["name"] for f in schema["fields"]]
    if "_tidb_op" not in names:
        return ()
    plain = ({"insert": "c", "update": "u"}[event["op"]], event["commit_ts"], event["commit_physical_ms"])
    if "_tidb_row_level_checksum" not in names:
        return plain
    checksum = event["checksum"]
    return (*plain, str(checksum["current"]), checksum["corrupted"], checksum["version"])
