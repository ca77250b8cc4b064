"""Debezium's envelope as its own connectors for MySQL and MariaDB write it: operations, values, what is no event, what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.protocols.both_paths import Message, both
from tests.protocols.debezium_messages import DECIMAL, HEARTBEAT, PLACE_NAME, STATEMENT, TOMBSTONE, TRANSACTION, column, decimal, upstream
from tests.protocols.json_messages import compact
from tests.protocols.untyped_messages import COLUMNS, context
from tidelake.errors import DecodeError
from tidelake.history.event import Event, SchemaColumn
from tidelake.protocols import Context, decoder

TYPE, LENGTH = "__debezium.source.column.type", "__debezium.source.column.length"


def event(message: Message, with_context: Context | None = None) -> Event:
    (found,) = both("debezium", [message], with_context or context())[0]
    return found


def cell(value: Any, said: dict[str, Any], with_context: Context | None = None) -> tuple[bytes | None, SchemaColumn]:
    """The cell of column x, and the column."""
    found = event(upstream("c", said, before=None, after={"x": value}), with_context)
    assert found.after is not None, found.error
    assert found.row_schema is not None
    return found.after[0], found.row_schema.columns[0]


@pytest.mark.parametrize("bare", [False, True], ids=["schemas", "no schemas"])
@pytest.mark.parametrize(
    ("op", "before", "after", "said"),
    [
        ("c", None, {"id": 1}, ("insert", [b"1"], None)),
        ("r", None, {"id": 1}, ("upsert", [b"1"], None)),
        ("u", {"id": 2}, {"id": 1}, ("update", [b"1"], [b"2"])),
        ("d", {"id": 1}, None, ("delete", None, [b"1"])),
    ],
)
def test_operations(op: str, before: Any, after: Any, said: tuple[Any, ...], bare: bool) -> None:
    found = event(upstream(op, column("id", "int64"), key={"id": 1}, bare=bare, before=before, after=after))
    assert (found.op, found.after, found.before) == said
    assert (found.commit_ts, found.database, found.table, found.source) == (None, "db", "t", PLACE_NAME)
    row_schema = found.row_schema or found.before_schema
    assert row_schema is not None
    assert row_schema.columns == (SchemaColumn("id", key=True),)


@pytest.mark.parametrize(
    "message", [HEARTBEAT, TRANSACTION, TOMBSTONE, (None, None)], ids=["heartbeat", "transaction", "tombstone", "null"]
)
def test_what_says_nothing_of_a_change_is_no_event(message: Message) -> None:
    assert both("debezium", [message], context()) == [[]]


def test_a_statement_and_a_truncate() -> None:
    found = event(STATEMENT)
    assert (found.kind, found.database, found.table, found.ddl, found.ddl_type) == ("ddl", "db", "t", "ALTER TABLE t ADD c INT", "ALTER")
    assert (found.commit_ts, found.source) == (None, PLACE_NAME)
    found = event(upstream("t", before=None, after=None, source={"table": "a`b"}))
    assert (found.kind, found.ddl, found.table, found.source) == ("ddl", "TRUNCATE TABLE `db`.`a``b`", "a`b", PLACE_NAME)


@pytest.mark.parametrize("sql", ["SET character_set_server=latin1", "USE `db`"])
def test_statements_of_the_connector_s_own_session_are_no_events(sql: str) -> None:
    assert both("debezium", [upstream(None, ddl=sql, tableChanges=[], source={"snapshot": "true"})], context()) == [[]]
    assert event(upstream(None, ddl=sql, tableChanges=[])).ddl == sql


@pytest.mark.parametrize("snapshot", ["true", "first", "last_in_data_collection", "incremental"])
def test_rows_of_a_snapshot_have_no_place_in_the_binlog(snapshot: str) -> None:
    assert event(upstream("r", column("id"), after={"id": "1"}, source={"snapshot": snapshot})).source is None


def test_a_row_without_a_key_has_no_handle() -> None:
    key, value = upstream("c", column("id", "int32"), after={"id": 1})
    for none in (key, b"null", b""):
        found = event((none, value))
        assert found.row_schema is not None
        assert found.row_schema.columns == (SchemaColumn("id"),)


def test_a_key_column_may_be_called_payload() -> None:
    found = event(upstream("c", key={"payload": {}, "id": 1}, bare=True, after={"id": 1, "payload": "{}"}))
    assert found.row_schema is not None
    assert [c.key for c in found.row_schema.columns] == [True, True]


NAMED: list[tuple[Any, dict[str, Any], bytes, str | None]] = [
    (18_312, column("x", "int32", "io.debezium.time.Date"), b"2020-02-20", "date"),
    (18_312, column("x", "int32", "org.apache.kafka.connect.data.Date"), b"2020-02-20", "date"),
    ("2020-02-20Z", column("x", "string", "io.debezium.time.IsoDate"), b"2020-02-20", "date"),
    (1_703_680_043_004, column("x", "int64", "io.debezium.time.Timestamp"), b"2023-12-27 12:27:23.004", "datetime"),
    (1_703_680_043_004, column("x", "int64", "org.apache.kafka.connect.data.Timestamp"), b"2023-12-27 12:27:23.004", "datetime"),
    (1_703_680_043_000_001, column("x", "int64", "io.debezium.time.MicroTimestamp"), b"2023-12-27 12:27:23.000001", "datetime"),
    (1_703_680_043_000_001_000, column("x", "int64", "io.debezium.time.NanoTimestamp"), b"2023-12-27 12:27:23.000001", "datetime"),
    ("2023-12-27T12:27:23.000001Z", column("x", "string", "io.debezium.time.IsoTimestamp"), b"2023-12-27 12:27:23.000001", "datetime"),
    (3_723_004, column("x", "int32", "io.debezium.time.Time"), b"01:02:03.004", "time"),
    (3_723_004, column("x", "int32", "org.apache.kafka.connect.data.Time"), b"01:02:03.004", "time"),
    (-3_723_004_000, column("x", "int64", "io.debezium.time.MicroTime"), b"-01:02:03.004", "time"),
    (3_723_004_000_000, column("x", "int64", "io.debezium.time.NanoTime"), b"01:02:03.004", "time"),
    ("01:02:03.004Z", column("x", "string", "io.debezium.time.IsoTime"), b"01:02:03.004", "time"),
    ("2024-03-11T08:51:01.4612Z", column("x", "string", "io.debezium.time.ZonedTimestamp"), b"2024-03-11 08:51:01.4612", "timestamp"),
    (2026, column("x", "int32", "io.debezium.time.Year"), b"2026", "year"),
    (1900, column("x", "int32", "io.debezium.time.Year"), b"0", "year"),
    ("/wM=", column("x", "bytes", "io.debezium.data.Bits", length="10"), b"1023", "bit"),
    (True, column("x", "boolean"), b"1", "bit"),
    ("it's, ok", column("x", "string", "io.debezium.data.Enum", allowed="x,it's\\, ok,"), b"it's, ok", "enum"),
    ("it's\\, ok", column("x", "string", "io.debezium.data.Enum", allowed="x,it's\\, ok,"), b"it's, ok", "enum"),
    ("a,c", column("x", "string", "io.debezium.data.EnumSet", allowed="a,b,c"), b"a,c", "set"),
    ('{"a": 1}', column("x", "string", "io.debezium.data.Json"), b'{"a": 1}', "json"),
    ("/wA=", column("x", "bytes"), b"\xff\0", "varbinary"),
    ("", column("x", "bytes"), b"", "varbinary"),
    ("SQw=", decimal("x", 5, 2), b"187.00", "decimal"),
    ("/ogz", decimal("x", 12, 4), b"-9.6205", "decimal"),
    ("AA==", decimal("x", 65, 30), b"0." + b"0" * 30, "decimal"),
    ("AP//////////", decimal("x", None, 0), b"18446744073709551615", None),
    (1.5, decimal("x", 5, 2), b"1.50", "decimal"),
    (7, column("x", "int64"), b"7", None),
    ("text", column("x"), b"text", None),
    (7, column("x", "int64", **{TYPE: "BIGINT UNSIGNED", LENGTH: "20"}), b"7", "bigint unsigned"),
    (-1, column("x", "int64", **{TYPE: "BIGINT UNSIGNED"}), b"18446744073709551615", "bigint unsigned"),
    ("1.50", column("x", "string", **{TYPE: "DECIMAL"}), b"1.50", "decimal"),
    ("/wA=", column("x", "string", **{TYPE: "BLOB"}), b"\xff\0", "blob"),
    (0, column("x", "int64", "io.debezium.time.MicroTime", **{TYPE: "TIME", LENGTH: "3"}), b"00:00:00.000", "time"),
]


@pytest.mark.parametrize(("value", "said", "text", "word"), NAMED)
def test_a_value_is_read_by_what_the_schema_says(value: Any, said: dict[str, Any], text: bytes, word: str | None) -> None:
    found, described = cell(value, said)
    assert (found, described.type) == (text, word)
    assert cell(None, said)[0] is None


def test_members_and_digits_are_kept() -> None:
    assert cell("x", column("x", "string", "io.debezium.data.Enum", allowed="x,it's\\, ok,"))[1].elements == ("x", "it's, ok", "")
    assert cell("SQw=", decimal("x", 5, 2))[1].full_type == "decimal(5,2)"
    assert cell("/wM=", column("x", "bytes", "io.debezium.data.Bits", length="10"))[1].full_type == "bit(10)"


def test_a_default_of_the_schema_is_no_sent_null() -> None:
    assert cell("QUJD", column("x", "bytes") | {"default": "QUJD"})[0] == b"ABC"


def test_types_that_the_message_lacks_are_left_for_later_where_the_table_may_have_changed() -> None:
    later = replace(context(COLUMNS), types_later=True)
    message = upstream("c", column("id", "int64"), column("v"), column("bin", "bytes"), after={"id": 1, "v": "/wA=", "bin": "/wA="})
    found = event(message, later)
    assert found.after == [b"1", b"/wA=", b"\xff\0"]
    assert found.row_schema is not None
    assert [c.type for c in found.row_schema.columns] == [None, None, "varbinary"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (3_723_004_000, column("x", "int64", "io.debezium.time.MicroTime")),
        (3_723_004, column("x", "int32", "io.debezium.time.Time")),
        ("01:02:03.004Z", column("x", "string", "io.debezium.time.IsoTime")),
    ],
)
def test_a_time_stays_microseconds_until_its_fraction_digits_are_known(value: Any, said: dict[str, Any]) -> None:
    found, described = cell(value, said, replace(context(), types_later=True))
    assert (found, described.type) == (b"3723004000", None)


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ({"wkb": "AQ==", "srid": 0}, column("x", "struct", "io.debezium.data.geometry.Point"), "io.debezium.data.geometry.Point"),
    ("-", decimal("x", 5, 2), "a JSON string"),
    ("", decimal("x", 5, 2), "a JSON string"),
    ("A" * 40, decimal("x", 65, 0), "a JSON string"),
    (1, column("x", "int64", "io.debezium.time.NanoTime"), "a JSON number"),
    (3_020_399_999_999 + 1_000, column("x", "int64", "io.debezium.time.MicroTime"), "a JSON number"),
    ("2023-12-27", column("x", "string", "io.debezium.time.IsoTimestamp"), "a JSON string"),
]


@pytest.mark.parametrize(("value", "said", "why"), REFUSED)
def test_a_value_of_another_form_is_refused_and_the_reason_names_it(value: Any, said: dict[str, Any], why: str) -> None:
    with pytest.raises(DecodeError, match="column 'x' of after") as error:
        decoder("debezium").read(*upstream("c", said, after={"x": value}), context())
    assert error.value.code == "BAD_VALUE"
    assert why in error.value.message


def test_other_connectors_and_a_decimal_without_scale_are_refused() -> None:
    with pytest.raises(DecodeError, match=r"source.connector is 'postgresql', expected TiCDC, mysql or mariadb") as error:
        decoder("debezium").read(*upstream("c", after={"x": 1}, source={"connector": "postgresql"}), context())
    assert error.value.code == "UNKNOWN_TYPE"
    with pytest.raises(DecodeError, match="the schema of a Decimal has no scale") as error:
        decoder("debezium").read(*upstream("c", column("x", "bytes", DECIMAL), after={"x": "AA=="}), context())
    assert error.value.code == "BAD_STRUCTURE"
    with pytest.raises(DecodeError, match="member source"):
        decoder("debezium").read(None, compact({"ts_ms": 1, "status": "END"}), context())
