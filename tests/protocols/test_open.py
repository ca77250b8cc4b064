"""Open Protocol: framing, rows, values and errors, by the general reader and by the compiled scan."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.protocols.json_messages import (
    both,
    canal,
    column,
    compact,
    decoded,
    open_key,
    open_message,
    open_raw,
    part,
    refused,
)
from tidelake.config.options import SinkOptions
from tidelake.history.event import Event, RowSchema, SchemaColumn
from tidelake.protocols import Context

ROW = {"id": column(3, 1, 11, key=True), "v": column(15, "a", 64)}
SCHEMA = RowSchema((SchemaColumn("id", "int", True, 11), SchemaColumn("v", "varchar", False, 64)))
KEY, VALUE = open_message((open_key(), {"u": ROW}))


def one(columns: dict[str, Any], *, compiled: bool = True) -> Event:
    """The row with these columns."""
    return both("open", open_message((open_key(), {"u": columns})), compiled=compiled)[0]


def cell(code: int, value: Any, flag: int = 65, *, compiled: bool = True) -> bytes | None:
    """The cell of one value."""
    event = one({"c": column(code, value, flag)}, compiled=compiled)
    assert event.after is not None
    return event.after[0]


def raw_cell(code: int, text: bytes, flag: int = 65, *, compiled: bool = True) -> bytes | None:
    """The cell of one value given as JSON text."""
    value = b'{"u":{"c":{"t":%d,"f":%d,"v":%s}}}' % (code, flag, text)
    event = both("open", open_raw((compact(open_key()), value)), compiled=compiled)[0]
    assert event.after is not None
    return event.after[0]


def options(**values: Any) -> Context:
    return Context(options=SinkOptions(**values))


def test_an_insert_has_the_new_row_and_its_schema_in_message_order() -> None:
    assert both("open", (KEY, VALUE)) == [
        Event(kind="row", op="insert", commit_ts=7, database="db", table="t", row_schema=SCHEMA, after=[b"1", b"a"]),
    ]


def test_the_worked_example_of_the_reference_decodes_to_its_two_inserts() -> None:
    row = '{"u":{"id":{"t":3,"h":true,"f":11,"v":%d},"val":{"t":15,"f":64,"v":"%s"}}}'
    key = '{"ts":454376015366979596,"scm":"marvin","tbl":"t1","rid":%d,"t":1}'
    events = both("open", open_raw(*((key.encode() % n, (row % (n, v)).encode()) for n, v in ((1, "aa"), (3, "cc")))))
    assert [(e.commit_ts, e.database, e.table, e.after) for e in events] == [
        (454376015366979596, "marvin", "t1", [b"1", b"aa"]),
        (454376015366979596, "marvin", "t1", [b"3", b"cc"]),
    ]


def test_a_delete_has_the_row_before_only() -> None:
    event = both("open", open_message((open_key(), {"d": ROW})))[0]
    assert (event.op, event.row_schema, event.after, event.before_schema, event.before) == ("delete", None, None, SCHEMA, [b"1", b"a"])


def test_an_update_has_both_rows() -> None:
    event = both("open", open_message((open_key(), {"u": ROW, "p": ROW | {"v": column(15, None, 64)}})))[0]
    assert (event.op, event.after, event.before, event.before_schema) == ("update", [b"1", b"a"], [b"1", None], SCHEMA)


def test_the_row_before_an_update_has_the_columns_that_were_sent_and_no_others() -> None:
    event = both("open", open_message((open_key(), {"u": ROW, "p": {"v": column(15, "old", 64)}})))[0]
    assert event.before_schema == RowSchema((SchemaColumn("v", "varchar", False, 64),))
    assert event.before == [b"old"]
    nothing = both("open", open_message((open_key(), {"u": ROW, "p": {}})))[0]
    assert (nothing.op, nothing.before_schema, nothing.before) == ("update", RowSchema(()), [])


def test_stray_members_of_the_row_before_are_dropped() -> None:
    """The new architecture's fault with a column that became NULL (docs/reference/protocols.md 2.3)."""
    message = open_message((open_key(), {"u": ROW, "p": {"t": 15, "f": 64, "v": None, "id": column(3, 1, 11, key=True)}}))
    event = both("open", message, compiled=False)[0]
    assert (event.op, event.before, event.before_schema) == ("update", [b"1"], RowSchema(SCHEMA.columns[:1]))


@pytest.mark.parametrize(
    ("option", "op"),
    [({}, "insert"), ({"open_output_old_value": False}, "upsert"), ({"only_output_updated_columns": True}, "upsert")],
)
def test_a_bare_new_row_is_an_insert_only_where_an_update_would_show_itself(option: dict[str, bool], op: str) -> None:
    assert both("open", (KEY, VALUE), options(**option))[0].op == op


def test_resolved_events_of_one_message_come_in_order() -> None:
    events = both(
        "open", open_message(({"ts": 5, "t": 3}, None), ({"ts": (1 << 64) - 1, "scm": "", "tbl": "", "t": 3}, None)), compiled=False
    )
    assert events == [Event(kind="resolved", commit_ts=5), Event(kind="resolved", commit_ts=(1 << 64) - 1)]
    assert both("open", open_message(({"ts": 0, "scm": "", "tbl": "", "t": 3}, None))) == [Event(kind="resolved", commit_ts=0)]


def test_ddl_keeps_the_statement_and_the_job_type_as_digits() -> None:
    message = open_message((open_key(t=2), {"q": "ALTER TABLE t ADD c INT", "t": 5}), ({"ts": 8, "scm": "db", "t": 2}, {"q": "x", "t": 2}))
    assert both("open", message, compiled=False) == [
        Event(kind="ddl", commit_ts=7, database="db", table="t", ddl="ALTER TABLE t ADD c INT", ddl_type="5"),
        Event(kind="ddl", commit_ts=8, database="db", table=None, ddl="x", ddl_type="2"),
    ]


def test_a_message_may_hold_no_event() -> None:
    assert both("open", open_message()) == []


def test_a_partition_s_table_id_and_the_large_message_marks_come_from_the_key() -> None:
    assert both("open", open_message((open_key(rid=-1, ptn=55), {"u": ROW})))[0].physical_table_id == 55
    marked = both("open", open_message((open_key(ohk=True), {"u": ROW})), compiled=False)[0]
    assert (marked.handle_only, marked.claim_check) == (True, None)
    key = compact(open_key())[:-1] + b',"ohk":true,"ohk":false,"ccl":"s3://b/x.json"}'
    last_wins = both("open", open_raw((key, compact({"u": ROW}))), compiled=False)[0]
    assert (last_wins.handle_only, last_wins.claim_check) == (False, "s3://b/x.json")


def test_members_that_are_unknown_or_oddly_written_change_nothing() -> None:
    plain = both("open", (KEY, VALUE))
    spaced = open_raw((json.dumps(open_key()).encode(), json.dumps({"u": ROW}).encode()))
    assert both("open", spaced, compiled=False) == plain
    assert both("open", open_message((open_key(x={"y": [1]}), {"u": ROW, "z": None})), compiled=False) == plain
    reordered = open_message((dict(reversed(open_key().items())), {"u": ROW}))
    assert both("open", reordered) == plain


@pytest.mark.parametrize(
    ("code", "value", "want"),
    [
        (3, 0, b"0"),
        (8, -(1 << 63), b"-9223372036854775808"),
        (8, (1 << 64) - 1, b"18446744073709551615"),
        (1, -128, b"-128"),
        (13, 2020, b"2020"),
        (16, 9999999999999999999, b"9999999999999999999"),
        (248, 1 << 63, b"9223372036854775808"),
        (246, "-0.000001", b"-0.000001"),
        (12, "2024-07-13 11:27:24", b"2024-07-13 11:27:24"),
        (225, "[1,2.5]", b"[1,2.5]"),
        (245, '{"k": "<é>"}', '{"k": "<é>"}'.encode()),
        (245, '{"a": "\\n\u2028", "日本": "\\"q\\""}', '{"a": "\\n\u2028", "日本": "\\"q\\""}'.encode()),
        (7, None, None),
        (0, None, None),
        (6, None, None),
        (255, None, None),
    ],
)
def test_numbers_and_text_become_canonical_text(code: int, value: Any, want: bytes | None) -> None:
    assert cell(code, value) == want


@pytest.mark.parametrize("text", [b"0", b"-0", b"-0.5", b"1e+21", b"1e-7", b"5e-324", b"3.14", b"-1.5E2", b"100000000000000000000000"])
def test_a_float_keeps_the_text_that_was_sent(text: bytes) -> None:
    assert raw_cell(5, text) == text


@pytest.mark.parametrize("text", [b"1.7976931348623157e+308", b"-1.7976931348623157e308", b"1e+100", b"0.00012e308"])
def test_a_double_near_the_end_of_its_range_is_read_by_the_scan(text: bytes) -> None:
    assert raw_cell(5, text) == text


@pytest.mark.parametrize("text", [b"1.00000000000000000001e300", b"0.1e0308", b"1e-0308"])
def test_a_double_in_more_digits_than_needed_is_read_by_the_general_reader(text: bytes) -> None:
    assert raw_cell(5, text, compiled=False) == text


def test_a_string_where_a_number_was_expected_is_kept() -> None:
    assert cell(1, "aa", compiled=False) == b"aa"
    assert cell(5, "1.5", compiled=False) == b"1.5"


@pytest.mark.parametrize("size", range(9))
def test_text_and_blob_columns_are_base64(size: int) -> None:
    raw = bytes(range(256 - size, 256))
    assert cell(252, base64.b64encode(raw).decode(), 65) == raw
    text = "née 日本"[:size]
    assert cell(249, base64.b64encode(text.encode()).decode(), 64) == text.encode()


@pytest.mark.parametrize(
    ("quoted", "raw"),
    [
        ("plain é", "plain é".encode()),
        (r"\x89PNG\r\n\x1a\n", b"\x89PNG\r\n\x1a\n"),
        (r"\a\b\f\n\r\t\v\\\"", b'\a\b\f\n\r\t\v\\"'),
        (r"\u00ad\U000e0001", "\u00ad\U000e0001".encode()),
        ("", b""),
    ],
)
def test_binary_strings_undo_go_s_quoting(quoted: str, raw: bytes) -> None:
    assert cell(15, quoted, 65) == raw
    assert cell(254, quoted, 129) == raw


def test_octal_escapes_are_accepted_though_go_never_writes_them() -> None:
    assert cell(15, r"\000\377", 65, compiled=False) == b"\x00\xff"


def test_text_without_the_binary_flag_keeps_its_backslashes() -> None:
    assert cell(15, r"\x89", 64) == rb"\x89"


def test_column_names_may_hold_quotes_and_any_character() -> None:
    event = one({'sel"ect': column(3, 1), "a.b": column(3, 2), "列 1": column(3, 3), "": column(3, 4)})
    assert event.row_schema is not None
    assert [c.name for c in event.row_schema.columns] == ['sel"ect', "a.b", "列 1", ""]
    assert event.after == [b"1", b"2", b"3", b"4"]


def test_a_column_without_a_flag_has_flag_0() -> None:
    assert one({"c": {"t": 1, "v": 3}}).row_schema == RowSchema((SchemaColumn("c", "tinyint", False, 0),))


FRAMES = {
    "null value": ((KEY, None), "NULL_VALUE"),
    "null key": ((None, VALUE), "TRUNCATED"),
    "empty key": ((b"", VALUE), "TRUNCATED"),
    "cut version": ((KEY[:7], VALUE), "TRUNCATED"),
    "version 2": (open_raw((compact(open_key()), VALUE[8:]), version=2), "UNKNOWN_VERSION"),
    "cut length": ((KEY[:12], VALUE), "TRUNCATED"),
    "cut key": ((KEY[:-1], VALUE), "TRUNCATED"),
    "cut value": ((KEY, VALUE[:-1]), "TRUNCATED"),
    "empty value": ((KEY, b""), "BAD_STRUCTURE"),
    "length 2^63": ((KEY[:8] + b"\x80" + KEY[9:], VALUE), "BAD_LENGTH"),
    "length 2^64-1": ((KEY, b"\xff" * 8 + VALUE[8:]), "BAD_LENGTH"),
    "byte after the key": ((KEY + b"\0", VALUE), "TRUNCATED"),
    "empty part after the key": ((KEY + part(b""), VALUE), "BAD_STRUCTURE"),
    "two keys": ((KEY + KEY[8:], VALUE), "BAD_STRUCTURE"),
    "two values": ((KEY, VALUE * 2), "BAD_STRUCTURE"),
    "too many events": ((KEY[:8] + part(b"") * 65537, part(b"") * 65537), "TOO_LARGE"),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_broken_frame_has_its_error(name: str) -> None:
    message, code = FRAMES[name]
    assert refused("open", message).code == code


KEYS = {
    "no ts": (b'{"scm":"db","tbl":"t","t":1}', "BAD_STRUCTURE"),
    "ts as text": (b'{"ts":"7","scm":"db","tbl":"t","t":1}', "BAD_VALUE"),
    "ts with fraction": (b'{"ts":7.0,"scm":"db","tbl":"t","t":1}', "BAD_VALUE"),
    "ts -1": (b'{"ts":-1,"scm":"db","tbl":"t","t":1}', "BAD_VALUE"),
    "ts 2^64": (b'{"ts":18446744073709551616,"scm":"db","tbl":"t","t":1}', "BAD_VALUE"),
    "ts of 5000 digits": (b'{"ts":' + b"1" * 5000 + b',"scm":"db","tbl":"t","t":1}', "BAD_JSON"),
    "ts of 4000 digits": (b'{"ts":' + b"1" * 4000 + b',"scm":"db","tbl":"t","t":1}', "BAD_VALUE"),
    "no t": (b'{"ts":7,"scm":"db","tbl":"t"}', "BAD_STRUCTURE"),
    "t true": (b'{"ts":7,"scm":"db","tbl":"t","t":true}', "BAD_VALUE"),
    "t 9": (b'{"ts":7,"scm":"db","tbl":"t","t":9}', "UNKNOWN_TYPE"),
    "no table": (b'{"ts":7,"scm":"db","t":1}', "BAD_STRUCTURE"),
    "empty table": (b'{"ts":7,"scm":"db","tbl":"","t":1}', "BAD_STRUCTURE"),
    "table a number": (b'{"ts":7,"scm":"db","tbl":5,"t":1}', "BAD_VALUE"),
    "table a float": (b'{"ts":7,"scm":"db","tbl":5.5,"t":1}', "BAD_VALUE"),
    "ptn -1": (b'{"ts":7,"scm":"db","tbl":"t","ptn":-1,"t":1}', "BAD_VALUE"),
    "ptn 2^63": (b'{"ts":7,"scm":"db","tbl":"t","ptn":9223372036854775808,"t":1}', "BAD_VALUE"),
    "ohk text": (b'{"ts":7,"scm":"db","tbl":"t","t":1,"ohk":"yes"}', "BAD_VALUE"),
    "not an object": (b"[]", "BAD_JSON"),
    "nothing": (b"", "BAD_JSON"),
    "NaN": (b'{"ts":7,"scm":"db","tbl":"t","t":1,"x":NaN}', "BAD_JSON"),
    "comma at the end": (b'{"ts":7,"scm":"db","tbl":"t","t":1,}', "BAD_JSON"),
    "two objects": (b'{"ts":7,"scm":"db","tbl":"t","t":1}{}', "BAD_JSON"),
    "leading zero": (b'{"ts":07,"scm":"db","tbl":"t","t":1}', "BAD_JSON"),
    "bad UTF-8": (b'{"ts":7,"scm":"db","tbl":"\xff","t":1}', "BAD_UTF8"),
    "half a pair": (b'{"ts":7,"scm":"db","tbl":"\\ud800","t":1}', "BAD_UTF8"),
    "byte order mark": (b'\xef\xbb\xbf{"ts":7,"scm":"db","tbl":"t","t":1}', "BAD_JSON"),
    "UTF-16": ('{"ts":7,"scm":"db","tbl":"t","t":1}'.encode("utf-16"), "BAD_UTF8"),
    "too deep": (b'{"ts":7,"x":' + b"[" * 100_000, "BAD_JSON"),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_bad_key_has_its_error(name: str) -> None:
    key, code = KEYS[name]
    assert refused("open", open_raw((key, VALUE[8:]))).code == code


C = b'{"u":{"c":{"t":3,"f":65,"v":%s}}}'
VALUES = {
    "no side": (b"{}", "BAD_STRUCTURE"),
    "new and deleted": (b'{"u":{"c":{"t":3,"v":1}},"d":{"c":{"t":3,"v":1}}}', "BAD_STRUCTURE"),
    "previous alone": (b'{"p":{"c":{"t":3,"v":1}}}', "BAD_STRUCTURE"),
    "no columns": (b'{"u":{}}', "BAD_STRUCTURE"),
    "nothing deleted": (b'{"d":{}}', "BAD_STRUCTURE"),
    "side null": (b'{"u":null}', "BAD_STRUCTURE"),
    "column a number": (b'{"u":{"c":5}}', "BAD_STRUCTURE"),
    "no type": (b'{"u":{"c":{"f":65,"v":1}}}', "BAD_STRUCTURE"),
    "no value": (b'{"u":{"c":{"t":3,"f":65}}}', "BAD_STRUCTURE"),
    "type 99": (b'{"u":{"c":{"t":99,"f":65,"v":1}}}', "UNKNOWN_TYPE"),
    "type 256": (b'{"u":{"c":{"t":256,"f":65,"v":1}}}', "BAD_VALUE"),
    "flag -1": (b'{"u":{"c":{"t":3,"f":-1,"v":1}}}', "BAD_VALUE"),
    "key as text": (b'{"u":{"c":{"t":3,"h":"true","f":1,"v":1}}}', "BAD_VALUE"),
    "float for an integer": (C % b"1.0", "BAD_VALUE"),
    "minus zero for an integer": (C % b"-0", "BAD_VALUE"),
    "2^64": (C % b"18446744073709551616", "BAD_VALUE"),
    "-2^63 - 1": (C % b"-9223372036854775809", "BAD_VALUE"),
    "boolean": (C % b"true", "BAD_VALUE"),
    "array": (C % b"[1]", "BAD_VALUE"),
    "Infinity": (C.replace(b'"t":3', b'"t":5') % b"Infinity", "BAD_JSON"),
    "just beyond a double": (C.replace(b'"t":3', b'"t":5') % b"1.7976931348623159e308", "BAD_VALUE"),
    "beyond a double": (C.replace(b'"t":3', b'"t":5') % b"1e400", "BAD_VALUE"),
    "integer beyond a double": (C.replace(b'"t":3', b'"t":5') % (b"9" * 400), "BAD_VALUE"),
    "boolean for a float": (C.replace(b'"t":3', b'"t":5') % b"true", "BAD_VALUE"),
    "number for text": (C.replace(b'"t":3', b'"t":15') % b"5", "BAD_VALUE"),
    "value for type NULL": (C.replace(b'"t":3', b'"t":6') % b"5", "BAD_VALUE"),
    "not base64": (C.replace(b'"t":3', b'"t":252') % b'"@@"', "BAD_VALUE"),
    "base64 without padding": (C.replace(b'"t":3', b'"t":252') % b'"YQ"', "BAD_VALUE"),
    "base64 with a line end": (C.replace(b'"t":3', b'"t":252') % b'"YWFh\\nYWFh"', "BAD_VALUE"),
    "base64 after padding": (C.replace(b'"t":3', b'"t":252') % b'"YQ==YQ=="', "BAD_VALUE"),
    "base64 beyond ASCII": (C.replace(b'"t":3', b'"t":252') % '"YWFé"'.encode(), "BAD_VALUE"),
    "TEXT that is no UTF-8": (C.replace(b'"t":3,"f":65', b'"t":252,"f":64') % b'"/w=="', "BAD_UTF8"),
    "unknown Go escape": (C.replace(b'"t":3', b'"t":15') % rb'"\\q"', "BAD_VALUE"),
    "bare quote": (C.replace(b'"t":3', b'"t":15') % rb'"\""', "BAD_VALUE"),
    "bare line end": (C.replace(b'"t":3', b'"t":15') % rb'"\n"', "BAD_VALUE"),
    "surrogate in a Go escape": (C.replace(b'"t":3', b'"t":15') % rb'"\\ud800"', "BAD_VALUE"),
    "Go escape beyond Unicode": (C.replace(b'"t":3', b'"t":15') % rb'"\\U00110000"', "BAD_VALUE"),
    "cut Go escape": (C.replace(b'"t":3', b'"t":15') % rb'"\\x8"', "BAD_VALUE"),
    "bad UTF-8": (C.replace(b'"t":3', b'"t":15') % b'"\xc0\x80"', "BAD_UTF8"),
    "half a pair": (C.replace(b'"t":3,"f":65', b'"t":15,"f":64') % rb'"\udc00"', "BAD_UTF8"),
    "control character": (C.replace(b'"t":3', b'"t":12') % b'"a\nb"', "BAD_JSON"),
    "unknown JSON escape": (C.replace(b'"t":3', b'"t":12') % rb'"\q"', "BAD_JSON"),
    "cut": (C[:-1] % b"1", "BAD_JSON"),
    "more after it": (C % b"1" + b" x", "BAD_JSON"),
    "nothing": (b"", "BAD_JSON"),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_bad_value_has_its_error(name: str) -> None:
    value, code = VALUES[name]
    assert refused("open", open_raw((compact(open_key()), value))).code == code


def test_errors_say_where_what_was_expected_and_what_came() -> None:
    assert "event 0 announces 9223372036854775843 bytes at byte 8 of the key" in refused("open", FRAMES["length 2^63"][0]).message
    broken = open_message((open_key(), {"u": ROW}), (open_key(), {"u": {"n": column(3, 1 << 64)}}))
    assert refused("open", broken).message == "event 1, column 'n' of u: an integer of 65 bits, expected -2^63 to 2^64 - 1"
    assert "type 9, expected 1 (row), 2 (DDL) or 3 (resolved)" in refused("open", open_message(({"ts": 1, "t": 9}, None))).message


def test_resolved_events_have_no_value() -> None:
    assert refused("open", open_message(({"ts": 5, "t": 3}, {"u": ROW}))).code == "TRAILING_BYTES"


def test_names_of_a_resolved_event_must_be_text_though_nobody_reads_them() -> None:
    assert both("open", open_message(({"ts": 5, "scm": "é", "tbl": "t", "t": 3}, None)), compiled=False)[0].commit_ts == 5
    assert refused("open", open_raw((b'{"ts":5,"scm":"\xff","tbl":"","t":3}', b""))).code == "BAD_UTF8"
    assert refused("open", open_raw((b'{"ts":5,"tbl":"\\q","t":3}', b""))).code == "BAD_JSON"


def test_ddl_needs_its_statement_and_a_number_as_type() -> None:
    assert refused("open", open_message((open_key(t=2), {"t": 5}))).code == "BAD_STRUCTURE"
    assert refused("open", open_message((open_key(t=2), {"q": "x", "t": "5"}))).code == "BAD_VALUE"
    assert refused("open", open_message((open_key(t=2), {"q": 5, "t": 5}))).code == "BAD_VALUE"


def test_one_bad_event_rejects_its_message_whole_and_its_neighbours_are_untouched() -> None:
    good = (KEY, VALUE)
    bad = open_message((open_key(), {"u": ROW}), (open_key(), {}))
    events = both("open", good)
    assert decoded("open", [good, bad, good]) == [events, "BAD_STRUCTURE", events]


def test_a_message_above_the_cap_is_too_large() -> None:
    small = Context(max_bytes=len(KEY) + len(VALUE) - 1)
    assert decoded("open", [(KEY, VALUE)], small) == ["TOO_LARGE"]
    assert decoded("open", [(KEY, VALUE)], Context(max_bytes=len(KEY) + len(VALUE))) == [both("open", (KEY, VALUE))]


def test_another_protocol_s_message_is_refused() -> None:
    assert refused("open", (None, compact(canal()))).code == "TRUNCATED"


def test_half_a_pair_in_a_member_that_is_doubled_teaches_the_scan_nothing() -> None:
    value = b'{"u":{"\\ud800":{"t":3,"f":65,"v":1}},"u":{"c":{"t":3,"f":65,"v":1}}}'
    key, _ = open_message((open_key(), {"u": {}}))
    framed = len(value).to_bytes(8, "big") + value
    (event,) = both("open", (key, framed), compiled=False)
    assert (event.kind, [c.name for c in event.row_schema.columns] if event.row_schema else None) == ("row", ["c"])
