"""Canal-JSON of TiCDC and Alibaba Canal: rows, types, values and errors, by the general reader and by the compiled scan."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.protocols.json_messages import Message, both, canal, compact, decoded, read, refused, scanned
from tidelake.history.event import Event, RowSchema, SchemaColumn

SCHEMA = RowSchema((SchemaColumn("id", "int", True), SchemaColumn("v", "varchar", False)))
EXTENSION = {"commitTs": 455000614502400000}


def message(*args: Any, **members: Any) -> Message:
    return None, compact(canal(*args, **members))


def unmarked(word: str, database: str, sql: str) -> Message:
    """What Alibaba Canal sends that is neither rows nor marked as DDL."""
    nothing = {"table": "", "pkNames": None, "mysqlType": None, "sqlType": None, "data": None}
    return None, compact(canal(word, database=database, sql=sql) | nothing)


def cell(type_text: str, value: str | None, *, compiled: bool = True) -> bytes | None:
    """The cell of one value of this type."""
    types = {"c": type_text}
    event = both("canal-json", message(data=[{"c": value}], types=types, pkNames=[]), compiled=compiled)[0]
    assert event.after is not None
    return event.after[0]


def described(type_text: str) -> tuple[str | None, str | None]:
    """What a schema says of a type."""
    row_schema = both("canal-json", message(data=[{"c": "1"}], types={"c": type_text}))[0].row_schema
    assert row_schema is not None
    return row_schema.columns[0].type, row_schema.columns[0].full_type


def test_an_insert_has_the_new_row_with_the_types_of_mysql_type_and_the_keys_of_pk_names() -> None:
    assert both("canal-json", message()) == [
        Event(kind="row", op="insert", commit_ts=None, database="db", table="t", row_schema=SCHEMA, after=[b"1", b"x"])
    ]


def test_a_real_update_of_ticdc_decodes_as_its_documents_say() -> None:
    value = (
        '{"id":0,"database":"test","table":"bench","pkNames":["id"],"isDdl":false,"type":"UPDATE","es":1735689600000,"ts":1795255999662,'
        '"sql":"","sqlType":{"id":-5,"name":12,"ref":-5},"mysqlType":{"ref":"bigint unsigned","id":"bigint","name":"varchar"},'
        '"old":[{"id":"1000000000","name":"street münchen","ref":null}],"data":[{"id":"1000000000","name":"a \\u003c b","ref":"7"}],'
        '"_tidb":{"commitTs":455000614502400000}}'
    )
    event = both("canal-json", (b"", value.encode()))[0]
    assert (event.op, event.commit_ts, event.database, event.table) == ("update", 455000614502400000, "test", "bench")
    assert event.after == [b"1000000000", b"a < b", b"7"]
    assert event.before == [b"1000000000", "street münchen".encode(), None]
    assert event.row_schema == event.before_schema
    assert event.row_schema == RowSchema(
        (SchemaColumn("id", "bigint", True), SchemaColumn("name", "varchar"), SchemaColumn("ref", "bigint unsigned"))
    )


def test_a_delete_has_the_row_before_only() -> None:
    event = both("canal-json", message("DELETE"))[0]
    assert (event.op, event.row_schema, event.after, event.before_schema, event.before) == ("delete", None, None, SCHEMA, [b"1", b"x"])


def test_a_delete_that_repeats_its_row_in_old_is_the_same_delete() -> None:
    """TiCDC before 5.4 (docs/reference/protocols.md 5.1)."""
    assert both("canal-json", message("DELETE", old=[{"id": "1", "v": "x"}]), compiled=False) == both("canal-json", message("DELETE"))


def test_old_may_have_the_changed_columns_only_or_none() -> None:
    event = both("canal-json", message("UPDATE", old=[{"v": "old"}]))[0]
    assert (event.op, event.before_schema, event.before) == ("update", RowSchema(SCHEMA.columns[1:]), [b"old"])
    nothing = both("canal-json", message("UPDATE", old=[{}]))[0]
    assert (nothing.op, nothing.before_schema, nothing.before) == ("update", RowSchema(()), [])


def test_the_order_of_mysql_type_and_the_codes_of_sql_type_do_not_matter() -> None:
    plain = both("canal-json", message())
    messages = [message(), message(mysqlType={"v": "varchar", "id": "int"}), message(sqlType={"v": -4, "id": 2005})]
    assert scanned("canal-json", messages) == dict.fromkeys(range(3), plain)
    assert both("canal-json", message(sqlType=None), compiled=False) == plain


def test_text_that_alibaba_s_canal_takes_for_a_blob_is_written_as_the_code_points_of_its_utf_8() -> None:
    """MariaDB's JSON is a LONGTEXT in the binlog; Canal writes it as text only if it read the type LONGTEXT from the server."""
    blob = message(data=[{"j": "\u00c3\u00bc"}], types={"j": "json"}, pkNames=[], sqlType={"j": 2004})
    text = message(data=[{"j": "\u00c3\u00bc"}], types={"j": "json"}, pkNames=[], sqlType={"j": 12})
    null = message(data=[{"j": None}], types={"j": "json"}, pkNames=[], sqlType={"j": 2004})
    cut = message(data=[{"j": "\u00c3"}], types={"j": "json"}, pkNames=[], sqlType={"j": 2004})
    found = scanned("canal-json", [blob, text, blob, null, text, cut])
    assert {i: e[0].after for i, e in found.items()} == {
        0: ["ü".encode()],
        1: ["Ã¼".encode()],
        2: ["ü".encode()],
        3: [None],
        4: ["Ã¼".encode()],
    }
    assert both("canal-json", cut, compiled=False)[0].after == ["\ufffd".encode()]


@pytest.mark.parametrize("code", [2004, 12])
def test_a_shape_is_bytes(code: int) -> None:
    point = message(data=[{"p": "\x00ð?"}], types={"p": "point"}, pkNames=[], sqlType={"p": code})
    assert both("canal-json", point)[0].after == [b"\x00\xf0?"]


def test_a_set_has_the_same_digits_under_every_code() -> None:
    """The code of a SET is that of a BLOB where its value is NULL."""
    rows = [{"s": "5"}, {"s": None}]
    for code in (-7, 2004):
        events = both("canal-json", message(data=rows, types={"s": "set('a','b')"}, pkNames=[], sqlType={"s": code}))
        assert [e.after for e in events] == [[b"5"], [None]]


@pytest.mark.parametrize("sql", ["insert into t values (1)", "UPDATE t set a = 'ü\\n'", "delete from t", "Replace into t values (1)"])
def test_the_statement_in_front_of_its_rows_is_stepped_over(sql: str) -> None:
    assert both("canal-json", unmarked("QUERY", "", sql)) == []
    rows = [unmarked("QUERY", "", sql), message(), unmarked("QUERY", "", sql), message()]
    assert {i: len(events) for i, events in scanned("canal-json", rows).items()} == {0: 0, 1: 1, 2: 0, 3: 1}


@pytest.mark.parametrize("sql", ["/* x */ update t set a = 1", "create table u as select 1", "call p()", "inse", ""])
def test_other_statements_of_no_database_stand_beside_rows_too(sql: str) -> None:
    assert both("canal-json", unmarked("QUERY", "", sql), compiled=False) == []


@pytest.mark.parametrize(
    ("database", "sql"),
    [("shop", "drop database shop"), ("", "alter table t add c int"), ("", "/* x */ /*!50000 drop*/ table t"), ("", "-- x\nTRUNCATE t")],
)
def test_a_statement_that_an_old_canal_does_not_mark_is_one(database: str, sql: str) -> None:
    event = both("canal-json", unmarked("QUERY", database, sql), compiled=False)[0]
    assert (event.kind, event.database, event.ddl, event.ddl_type) == ("ddl", database or None, sql, "QUERY")


def test_the_commit_of_an_xa_transaction_is_no_event_and_its_rollback_is_refused() -> None:
    assert both("canal-json", unmarked("XACOMMIT", "", "XA COMMIT X'71',X'',1"), compiled=False) == []
    with_rows = canal("QUERY", database="", sql="insert into t values (1)")
    assert refused("canal-json", (None, compact(with_rows))).code == "UNKNOWN_TYPE"
    error = refused("canal-json", unmarked("XAROLLBACK", "", "XA ROLLBACK X'71',X'',1"))
    assert error.code == "UNKNOWN_TYPE"
    assert "XAROLLBACK: rows that came before were taken back" in str(error)


def test_alibaba_s_messages_hold_several_rows_and_name_their_table_last() -> None:
    value = {
        "data": [{"id": "1", "name": "b"}, {"id": "2", "name": None}],
        "database": "db",
        "es": 1600000000000,
        "gtid": "",
        "id": 17,
        "isDdl": False,
        "mysqlType": {"id": "int(11)", "name": "varchar(16)"},
        "old": [{"name": "a"}, {"name": "ä"}],
        "pkNames": ["id"],
        "sql": "",
        "sqlType": {"id": 4, "name": 12},
        "table": "t",
        "ts": 1600000000500,
        "type": "UPDATE",
    }
    events = both("canal-json", (None, compact(value)))
    assert [(e.op, e.after, e.before) for e in events] == [
        ("update", [b"1", b"b"], [b"a"]),
        ("update", [b"2", None], ["ä".encode()]),
    ]
    assert events[0].row_schema == RowSchema(
        (SchemaColumn("id", "int", True, full_type="int(11)"), SchemaColumn("name", "varchar", full_type="varchar(16)"))
    )
    deleted = both("canal-json", (None, compact(value | {"type": "DELETE", "old": None})))
    assert [(e.op, e.after, e.before) for e in deleted] == [("delete", None, [b"1", b"b"]), ("delete", None, [b"2", None])]


def test_members_that_are_unknown_or_oddly_written_change_nothing() -> None:
    plain = both("canal-json", message())
    assert both("canal-json", (None, json.dumps(canal()).encode()), compiled=False) == plain
    assert both("canal-json", message(x={"y": [1]}), compiled=False) == plain
    assert both("canal-json", (None, compact(dict(reversed(canal().items()))))) == plain
    twice = compact(canal())[:-1] + b',"table":"t"}'
    assert both("canal-json", (None, twice), compiled=False) == plain


@pytest.mark.parametrize("names", [[], None])
def test_a_table_without_a_primary_key_has_no_key_columns(names: Any) -> None:
    row_schema = both("canal-json", message(pkNames=names))[0].row_schema
    assert row_schema is not None
    assert [c.key for c in row_schema.columns] == [False, False]


def test_the_commit_ts_is_there_only_with_the_extension() -> None:
    assert both("canal-json", message(_tidb=EXTENSION))[0].commit_ts == 455000614502400000
    assert both("canal-json", message())[0].commit_ts is None
    largest = both("canal-json", message(_tidb={"commitTs": (1 << 64) - 1}), compiled=False)[0]
    assert largest.commit_ts == (1 << 64) - 1


def test_a_watermark_is_a_resolved_ts() -> None:
    assert both("canal-json", (None, MARK)) == [Event(kind="resolved", commit_ts=469374055665369095)]
    assert both("canal-json", (None, MARK.replace(b'"table":""', b'"table":"t"')), compiled=False)[0].kind == "resolved"


def test_large_message_marks_come_from_the_extension() -> None:
    handle = both("canal-json", message(_tidb=EXTENSION | {"onlyHandleKey": True}), compiled=False)[0]
    assert (handle.handle_only, handle.claim_check, handle.after) == (True, None, [b"1", b"x"])
    claim = both("canal-json", message(_tidb=EXTENSION | {"claimCheckLocation": "s3://b/x.json"}), compiled=False)[0]
    assert (claim.handle_only, claim.claim_check) == (False, "s3://b/x.json")


def test_ddl_keeps_the_statement_and_canal_s_word() -> None:
    ddl = canal("ALTER", isDdl=True, sql="ALTER TABLE t ADD c INT", _tidb=EXTENSION) | {"data": None, "mysqlType": None, "table": ""}
    assert both("canal-json", (None, compact(ddl)), compiled=False) == [
        Event(kind="ddl", commit_ts=455000614502400000, database="db", table=None, ddl="ALTER TABLE t ADD c INT", ddl_type="ALTER")
    ]


@pytest.mark.parametrize(
    ("text", "word", "full"),
    [
        ("int", "int", None),
        ("bigint unsigned", "bigint unsigned", None),
        ("int unsigned zerofill", "int unsigned", None),
        ("int(11)", "int", "int(11)"),
        ("tinyint(3) unsigned zerofill", "tinyint unsigned", "tinyint(3) unsigned zerofill"),
        ("decimal(10,4)", "decimal", "decimal(10,4)"),
        ("varbinary", "varbinary", None),
        ("enum('a','it''s, \"b\" <c>')", "enum", "enum('a','it''s, \"b\" <c>')"),
    ],
)
def test_a_schema_has_the_type_s_word_and_its_text_where_that_says_more(text: str, word: str, full: str | None) -> None:
    assert described(text) == (word, full)


@pytest.mark.parametrize(
    ("type_text", "value", "want"),
    [
        ("bigint", "-9223372036854775808", b"-9223372036854775808"),
        ("bigint unsigned", "18446744073709551615", b"18446744073709551615"),
        ("double", "1000000000000000000000", b"1000000000000000000000"),
        ("decimal", "129012.1230000", b"129012.1230000"),
        ("json", '{"k": "<é>", "日": "\\"\\\\\t"}', '{"k": "<é>", "日": "\\"\\\\\t"}'.encode()),
        ("varchar", "", b""),
        ("varchar", "\x00\x7f\x80\u2028😀", "\x00\x7f\x80\u2028😀".encode()),
        ("varchar", None, None),
        ("varbinary(16)", "\x00\x01 ÿþ<", b"\x00\x01 \xff\xfe<"),
        ("blob", "".join(map(chr, range(256))), bytes(range(256))),
        ("binary", "é", b"\xe9"),
    ],
)
def test_cells_are_text_as_sent_and_binary_columns_are_bytes(type_text: str, value: str | None, want: bytes | None) -> None:
    assert cell(type_text, value) == want


def test_a_surrogate_pair_is_one_character() -> None:
    value = compact(canal()).replace(b'"v":"x"', rb'"v":"\ud83d\ude00"')
    assert both("canal-json", (None, value), compiled=False)[0].after == [b"1", "😀".encode()]


def test_names_may_hold_quotes_and_any_character() -> None:
    odd = message(
        database="库-1.x", table='表 "q".t', pkNames=["列 1"], types={"列 1": "int", 'sel"ect': "int"}, data=[{"列 1": "1", 'sel"ect': "2"}]
    )
    event = both("canal-json", odd)[0]
    assert (event.database, event.table, event.after) == ("库-1.x", '表 "q".t', [b"1", b"2"])
    assert event.row_schema == RowSchema((SchemaColumn("列 1", "int", True), SchemaColumn('sel"ect', "int")))


NOTHING = dict.fromkeys(("pkNames", "sqlType", "mysqlType", "old", "data"))
MARK = compact(canal("TIDB_WATERMARK") | NOTHING | {"database": "", "table": "", "_tidb": {"watermarkTs": 469374055665369095}})
ERRORS = {
    "null value": ((None, None), "NULL_VALUE"),
    "empty value": ((None, b""), "BAD_JSON"),
    "not an object": ((None, b"[]"), "BAD_JSON"),
    "two objects": ((None, compact(canal()) * 2), "BAD_JSON"),
    "cut": ((None, compact(canal())[:-1]), "BAD_JSON"),
    "NaN": ((None, compact(canal()).replace(b'"es":1', b'"es":NaN')), "BAD_JSON"),
    "too deep": ((None, b'{"x":' * 100_000), "BAD_JSON"),
    "bad UTF-8": ((None, compact(canal()).replace(b'"x"', b'"\xff"')), "BAD_UTF8"),
    "half a pair": ((None, compact(canal()).replace(b'"x"', rb'"\ud800"')), "BAD_UTF8"),
    "half a pair in an unknown member": ((None, compact(canal())[:-1] + rb',"z":"\uDFFF"}'), "BAD_UTF8"),
    "control character": ((None, compact(canal()).replace(b'"x"', b'"\t"')), "BAD_JSON"),
    "no type": ((None, b"{}"), "BAD_STRUCTURE"),
    "type a number": (message(type=5), "BAD_VALUE"),
    "unknown type": (message("UPSERT"), "UNKNOWN_TYPE"),
    "isDdl text": (message(isDdl="no"), "BAD_VALUE"),
    "row with isDdl": (message(isDdl=True), "BAD_STRUCTURE"),
    "no database": (message(database=None), "BAD_VALUE"),
    "empty table": (message(table=""), "BAD_STRUCTURE"),
    "no data": ((None, compact(canal() | {"data": []})), "BAD_STRUCTURE"),
    "data null": ((None, compact(canal() | {"data": None})), "BAD_STRUCTURE"),
    "data an object": (message(data={"id": "1"}), "BAD_STRUCTURE"),
    "row null": (message(data=[None]), "BAD_STRUCTURE"),
    "row without columns": (message(data=[{}]), "BAD_STRUCTURE"),
    "update without old": (message("UPDATE"), "BAD_STRUCTURE"),
    "more old than data": (message("UPDATE", old=[{}, {}]), "BAD_STRUCTURE"),
    "no mysqlType": (message(types={}), "BAD_STRUCTURE"),
    "mysqlType with one column twice": (
        (None, compact(canal()).replace(b'"mysqlType":{"id":"int","v":"varchar"}', b'"mysqlType":{"id":"int","id":"int"}')),
        "BAD_STRUCTURE",
    ),
    "mysqlType null": (message(mysqlType=None), "BAD_STRUCTURE"),
    "mysqlType of numbers": (message(types={"id": 4, "v": 12}), "BAD_VALUE"),
    "type without parenthesis": (message(types={"id": "int", "v": "varchar(16"}), "UNKNOWN_TYPE"),
    "endless type": (message(types={"id": "int", "v": "a" + " " * 100_000 + "!"}), "UNKNOWN_TYPE"),
    "column of old without type": (message("UPDATE", old=[{"w": "1"}]), "BAD_STRUCTURE"),
    "pkNames a string": (message(pkNames="id"), "BAD_STRUCTURE"),
    "pkNames of numbers": (message(pkNames=[1]), "BAD_STRUCTURE"),
    "number": (message(data=[{"id": 1, "v": "x"}]), "BAD_VALUE"),
    "float": (message(data=[{"id": 1.5, "v": "x"}]), "BAD_VALUE"),
    "object": (message(data=[{"id": {}, "v": "x"}]), "BAD_VALUE"),
    "no byte": (message(types={"id": "int", "v": "blob"}, data=[{"id": "1", "v": "Ā"}]), "BAD_VALUE"),
    "extension a number": (message(_tidb=5), "BAD_STRUCTURE"),
    "extension without ts": (message(_tidb={}), "BAD_STRUCTURE"),
    "commitTs text": (message(_tidb={"commitTs": "1"}), "BAD_VALUE"),
    "commitTs 2^64": (message(_tidb={"commitTs": 1 << 64}), "BAD_VALUE"),
    "commitTs negative": (message(_tidb={"commitTs": -1}), "BAD_VALUE"),
    "onlyHandleKey text": (message(_tidb=EXTENSION | {"onlyHandleKey": "yes"}), "BAD_VALUE"),
    "claim check a number": (message(_tidb=EXTENSION | {"claimCheckLocation": 5}), "BAD_VALUE"),
    "watermark with a bad name": ((None, MARK.replace(b'"table":""', b'"table":"\xff"')), "BAD_UTF8"),
    "watermark with a bad database": ((None, MARK.replace(b'"database":""', b'"database":"\\q"')), "BAD_JSON"),
    "watermark with a bad key": ((None, MARK.replace(b'"pkNames":null', b'"pkNames":["\\q"]')), "BAD_JSON"),
    "watermark without ts": (message("TIDB_WATERMARK", _tidb=EXTENSION), "BAD_STRUCTURE"),
    "watermark without extension": (message("TIDB_WATERMARK"), "BAD_STRUCTURE"),
    "ddl without sql": (message("ALTER", isDdl=True, sql=None), "BAD_VALUE"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_bad_message_has_its_error(name: str) -> None:
    bad, code = ERRORS[name]
    assert refused("canal-json", bad).code == code


def test_errors_say_where_and_what_came() -> None:
    assert refused("canal-json", ERRORS["number"][0]).message == "column 'id' of row 0 of data is a JSON number, expected a string or null"
    assert refused("canal-json", ERRORS["no byte"][0]).message == "column 'v' of row 0 of data holds U+0100, which is no byte"
    assert "UPDATE with 1 rows in data, 0 of them empty, and 2 in old" in refused("canal-json", ERRORS["more old than data"][0]).message


def test_a_bad_message_does_not_touch_its_neighbours() -> None:
    events = both("canal-json", message())
    mixed = [message(), ERRORS["number"][0], message("INSERT", x=1), (None, None), message()]
    assert decoded("canal-json", mixed) == [events, "BAD_VALUE", events, "NULL_VALUE", events]


def test_the_scan_tells_tables_types_and_schemas_of_one_batch_apart() -> None:
    messages = [
        message(table=table, types=types, pkNames=keys, data=[row], **{"type": "UPDATE", "old": [old]})
        for table in ("a", "b")
        for types in ({"id": "int", "v": "varchar"}, {"id": "bigint", "v": "varbinary"})
        for keys in (["id"], [], None)
        for row in ({"id": "1", "v": "é"}, {"id": "2", "v": None}, {"v": "3"})
        for old in ({}, {"v": "ü"}, {"id": "7"})
    ]
    assert scanned("canal-json", messages) == {i: read("canal-json", m) for i, m in enumerate(messages)}


def test_a_delete_of_handle_columns_only_is_part_of_its_table_s_layout() -> None:
    """delete-only-output-handle-key-columns: the message has the types of those columns only."""
    messages = [message(), message("DELETE", data=[{"id": "1"}], types={"id": "int"}), message()]
    got = scanned("canal-json", messages)
    assert [(e.op, e.before) for e in got[1]] == [("delete", [b"1"])]
    assert got[1][0].before_schema == RowSchema(SCHEMA.columns[:1])
    untyped = message(data=[{"id": "1", "v": "x"}], types={"id": "int"})
    assert list(scanned("canal-json", [message(), untyped])) == [0]
