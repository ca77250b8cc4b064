"""Maxwell as TiCDC writes it: what is read, and what is refused and why."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocols.both_paths import Message, both
from tests.protocols.json_messages import compact
from tests.protocols.untyped_messages import COLUMNS, VERSION, context, maxwell, maxwell_ddl, maxwell_rows
from tidelake.errors import DecodeError
from tidelake.history.event import Event, RowSchema, SchemaColumn
from tidelake.protocols import decoder

ROW = {"bin": "/wA=", "id": 1, "n": "1.50", "v": "/wA="}


def events(message: Message, columns: tuple[SchemaColumn, ...] | None = None) -> list[Event]:
    return both("maxwell", [message], context(columns))[0]


def test_rows_follow_one_another_without_a_separator() -> None:
    rows = [
        maxwell("insert", data={"id": 1}),
        maxwell("update", data={"id": 1, "v": "y"}, old={"v": None}),
        maxwell("delete", old={"id": 1}),
    ]
    found = events(maxwell_rows(*rows))
    assert [(e.op, e.after, e.before, e.commit_ts) for e in found] == [
        ("insert", [b"1"], None, None),
        ("update", [b"1", b"y"], [None], None),
        ("delete", None, [b"1"], None),
    ]
    assert {(e.database, e.table) for e in found} == {("db", "t")}
    assert found[1].before_schema == RowSchema((SchemaColumn("v"),))


def test_cells_are_the_text_as_sent_where_the_table_is_unknown() -> None:
    (event,) = events(maxwell_rows(maxwell("insert", data=ROW | {"f": 1.5e-7, "big": (1 << 64) - 1})))
    assert event.after == [b"/wA=", b"1", b"1.50", b"/wA=", b"1.5e-07", b"18446744073709551615"]
    assert event.row_schema is not None
    assert {c.type for c in event.row_schema.columns} == {None}


def test_a_known_table_says_types_and_keys_and_which_text_is_base64() -> None:
    (event,) = events(maxwell_rows(maxwell("insert", data=ROW)), COLUMNS)
    assert event.after == [b"\xff\0", b"1", b"1.50", b"/wA="]
    assert event.row_schema is not None
    assert [(c.name, c.type, c.key) for c in event.row_schema.columns] == [
        ("bin", "varbinary", False),
        ("id", "bigint", True),
        ("n", "decimal", False),
        ("v", "varchar", False),
    ]


@pytest.mark.parametrize("old", [{}, {"old": None}, {"old": {}}])
def test_an_update_that_changed_nothing_has_no_old_row(old: dict[str, Any]) -> None:
    (event,) = events(maxwell_rows(maxwell("update", data={"id": 1}) | old))
    assert (event.op, event.after, event.before, event.before_schema) == ("update", [b"1"], None, None)


def test_a_statement_has_its_commit_ts_and_text() -> None:
    (event,) = events(maxwell_ddl("ALTER TABLE t ADD c INT", (1 << 64) - 1, (1 << 64) - 1, type="table-alter"))
    assert (event.kind, event.commit_ts, event.database, event.table) == ("ddl", (1 << 64) - 1, "db", "t")
    assert (event.ddl, event.ddl_type) == ("ALTER TABLE t ADD c INT", "table-alter")


INSERT = maxwell_rows(maxwell("insert", data={"id": 1}))
REFUSED = {
    "no value": ((VERSION, None), "NULL_VALUE"),
    "no key": ((None, INSERT[1]), "TRUNCATED"),
    "a key cut short": ((VERSION[:7], INSERT[1]), "TRUNCATED"),
    "another version": (((2).to_bytes(8, "big"), INSERT[1]), "UNKNOWN_VERSION"),
    "more in the key": ((VERSION + b"x", INSERT[1]), "TRAILING_BYTES"),
    "no rows": ((VERSION, b""), "BAD_JSON"),
    "a row cut short": ((VERSION, (INSERT[1] or b"")[:-1]), "BAD_JSON"),
    "a second row cut short": ((VERSION, (INSERT[1] or b"") + b"{"), "BAD_JSON"),
    "an array": ((VERSION, b"[]"), "BAD_JSON"),
    "NaN": ((VERSION, (INSERT[1] or b"").replace(b":1}", b":NaN}")), "BAD_JSON"),
    "deep": ((VERSION, b'{"a":' * 100_000), "BAD_JSON"),
    "half a surrogate pair": ((VERSION, compact(maxwell("insert", data={"v": "x"})).replace(b'"x"', rb'"\ud800"')), "BAD_UTF8"),
    "no UTF-8": ((VERSION, b'{"a":"\xff"}'), "BAD_UTF8"),
    "another type": (maxwell_rows(maxwell("bootstrap-insert", data={"id": 1})), "UNKNOWN_TYPE"),
    "type a number": (maxwell_rows(maxwell("insert", data={"id": 1}) | {"type": 1}), "BAD_VALUE"),
    "no table": (maxwell_rows(maxwell("insert", data={"id": 1}) | {"table": ""}), "BAD_STRUCTURE"),
    "no data": (maxwell_rows(maxwell("insert")), "BAD_STRUCTURE"),
    "empty data": (maxwell_rows(maxwell("insert", data={})), "BAD_STRUCTURE"),
    "data a list": (maxwell_rows(maxwell("insert", data=[1])), "BAD_STRUCTURE"),
    "a delete without the row": (maxwell_rows(maxwell("delete", data={"id": 1})), "BAD_STRUCTURE"),
    "old of an update a number": (maxwell_rows(maxwell("update", data={"id": 1}, old=0)), "BAD_STRUCTURE"),
    "a nested value": (maxwell_rows(maxwell("insert", data={"id": {}})), "BAD_VALUE"),
    "a boolean": (maxwell_rows(maxwell("insert", data={"id": True})), "BAD_VALUE"),
    "a number beyond all types": ((VERSION, (INSERT[1] or b"").replace(b":1}", b":1e999}")), "BAD_VALUE"),
    "bytes that are no base64": (maxwell_rows(maxwell("insert", data={"bin": "=="})), "BAD_VALUE"),
    "a statement without text": ((b'{"ts":9}', compact({"type": "x", "database": "", "table": "", "ts": 9})), "BAD_STRUCTURE"),
    "two commit ts": (maxwell_ddl(ts=9, key_ts=8), "BAD_STRUCTURE"),
    "commit ts text": (maxwell_ddl(ts="9"), "BAD_VALUE"),
    "commit ts too large": (maxwell_ddl(ts=1 << 64, key_ts=1 << 64), "BAD_VALUE"),
}


@pytest.mark.parametrize(("message", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_maxwell_is_refused_with_its_code(message: Message, code: str) -> None:
    with pytest.raises(DecodeError) as error:
        decoder("maxwell").read(*message, context(COLUMNS))
    assert error.value.code == code


def test_too_many_rows_and_too_many_bytes_are_refused() -> None:
    with pytest.raises(DecodeError, match="more than 65536 objects"):
        decoder("maxwell").read(VERSION, b"{}" * 65_537, context())
    assert events((VERSION, b"{}"))[0].error_code == "BAD_STRUCTURE"
