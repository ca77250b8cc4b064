"""Maxwell's own messages: those that the real program wrote, hand-made ones, and what is refused and why."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data_files import data_bytes
from tests.protocols.both_paths import Message, both
from tests.protocols.json_messages import compact
from tests.protocols.untyped_messages import VERSION, context, daemon, daemon_ddl, maxwell, maxwell_rows
from tidelake.errors import DecodeError
from tidelake.history.event import Event, SchemaColumn
from tidelake.protocols import decoder

KEY = b'{"database":"db","table":"t","pk.id":1}'
UUID = b"d1ad647d-cabf-4443-a17d-fb7cdaa1f0b0"


def recorded() -> list[Message]:
    """What the real Maxwell sent (tests/data/README.md)."""
    said = json.loads(data_bytes("vectors/maxwell_upstream.json.xz"))
    return [(m["key"] if m["key"] is None else m["key"].encode(), m["value"].encode()) for m in said]


def events(*messages: Message, **options: Any) -> list[Event]:
    return [e for some in both("maxwell", messages, context(None, **options)) for e in some]


def row(op: str, key: bytes | None = KEY, **more: Any) -> Message:
    return key, compact(daemon(op, **more))


def cells(event: Event, side: str = "after") -> dict[str, bytes | None]:
    """A row image by column."""
    schema, found = {"after": (event.row_schema, event.after), "before": (event.before_schema, event.before)}[side]
    assert schema is not None
    assert found is not None
    return dict(zip((c.name for c in schema.columns), found, strict=True))


def test_every_recorded_message_is_read_but_those_in_which_nothing_changed() -> None:
    found = both("maxwell", recorded(), context())
    assert [i for i, some in enumerate(found) if not some] == [33, 36, 39], "bootstrap-start, Maxwell's own order, bootstrap-complete"
    assert all(len(some) < 2 for some in found)
    assert Counter((e.kind, e.op or e.ddl_type) for some in found for e in some) == {
        ("row", "insert"): 16,
        ("row", "update"): 4,
        ("row", "delete"): 1,
        ("row", "upsert"): 3,
        ("ddl", "table-create"): 5,
        ("ddl", "table-alter"): 4,
        ("ddl", "table-drop"): 4,
        ("ddl", "database-create"): 1,
        ("ddl", "database-alter"): 1,
        ("ddl", "database-drop"): 1,
    }


def test_a_recorded_row_has_the_values_that_were_inserted() -> None:
    found = cells(both("maxwell", recorded(), context())[1][0])
    assert {n: found[n] for n in ("id", "b", "bu", "d", "f", "b9", "b64", "v", "l", "bin", "bl", "dt", "y", "e", "s")} == {
        "id": b"1",
        "b": b"-9223372036854775808",
        "bu": b"18446744073709551615",
        "d": b"1E-10",
        "f": b"3.4E38",
        "b9": b"341",
        "b64": b"18446744073709551615",
        "v": 'näme "q" \\ \n'.encode(),
        "l": "é".encode(),
        "bin": b"AQI=",
        "bl": b"/wA=",
        "dt": b"2024-02-29 12:34:56.123456",
        "y": b"2024",
        "e": b"paid",
        "s": b'["x", "z"]',
    }
    assert found["ts"] == b"2024-02-29 07:04:56.123456", "in UTC, while the server's clocks show 12:34"


def test_a_recorded_statement_on_two_tables_is_one_for_each() -> None:
    found = [e.ddl for e in events(*recorded()) if e.ddl is not None]
    assert [sql for sql in found if sql.startswith(("RENAME", "DROP TABLE"))] == [
        "RENAME TABLE `shop`.`log` TO `shop`.`log2`",
        "RENAME TABLE `shop`.`orders` TO `shop`.`orders2`",
        "DROP TABLE `shop`.`l3`",
        "DROP TABLE `shop`.`l4`",
        "DROP TABLE `other`.`x`",
        "DROP TABLE `shop`.`orders2`",
    ]


def test_recorded_names_ascend_with_the_binlog_and_no_two_rows_share_one() -> None:
    found = events(*recorded(), output_xoffset=True)
    of_first_run = [e for e in found[:33] if e.source is not None]
    assert [e.source for e in of_first_run] == sorted(e.source or "" for e in of_first_run)
    names = [e.source for e in found if e.kind == "row" and e.source]
    assert len(names) == len(set(names)) == 18
    assert names[0] == "0/binlog.0000000002:0000000000000049383:9999999999"
    assert [e.source for e in found if e.database == "shop" and e.table == "caught"] == [None] * 6, (
        "a bootstrap, and rows that waited for it"
    )


def test_a_row_has_its_new_image_and_the_old_values_that_changed() -> None:
    insert, update, unchanged, delete = events(
        row("insert", data={"id": 1, "v": "x"}, primary_key_columns=["id"]),
        row("update", data={"id": 1, "v": "y"}, old={"v": "x"}),
        row("update", data={"id": 1, "v": "y"}),
        row("delete", data={"id": 1, "v": "y"}),
    )
    assert (insert.op, cells(insert), insert.before) == ("insert", {"id": b"1", "v": b"x"}, None)
    assert (update.op, cells(update), cells(update, "before")) == ("update", {"id": b"1", "v": b"y"}, {"v": b"x"})
    assert (unchanged.after, unchanged.before) == ([b"1", b"y"], None)
    assert (delete.op, delete.after, cells(delete, "before")) == ("delete", None, {"id": b"1", "v": b"y"})
    assert insert.row_schema is not None
    assert insert.row_schema.columns == (SchemaColumn("id", key=True, form="maxwell"), SchemaColumn("v", form="maxwell"))
    assert {(e.database, e.table, e.commit_ts, e.source) for e in (insert, update, unchanged, delete)} == {("db", "t", None, None)}


@pytest.mark.parametrize("key", [KEY, b'["db","t",[{"id":1}]]', b'{"database":"db","table":"t","_uuid":"x"}', UUID, None, b""])
def test_a_key_of_any_kind_changes_nothing(key: bytes | None) -> None:
    (event,) = events(row("insert", key, data={"id": 1}))
    assert (event.op, event.after) == ("insert", [b"1"])


@pytest.mark.parametrize("key", [KEY, UUID, None])
def test_a_tombstone_is_no_event(key: bytes | None) -> None:
    assert events((key, None)) == []


def test_a_row_of_a_bootstrap_replaces_what_is_there_and_its_ends_are_no_events() -> None:
    start, one, end = (daemon(f"bootstrap-{what}", data=data) for what, data in (("start", {}), ("insert", {"id": 1}), ("complete", {})))
    (event,) = events(*((None, compact(m)) for m in (start, one, end)), output_xoffset=True)
    assert (event.op, event.after, event.source) == ("upsert", [b"1"], None)


def test_values_keep_their_text_and_json_is_written_as_mysql_prints_it() -> None:
    sent = b'{"n":1.50,"e":1E-10,"big":18446744073709551616,"s":["a","b"],"j":{"k":[1.0,null,true,"\\u00e9\\""],"l":{}},"t":true,"z":null}'
    whole = compact(daemon("insert", data={"id": 1})).replace(b'{"id":1}', sent)
    (event,) = events((KEY, whole))
    assert event.after == [
        b"1.50",
        b"1E-10",
        b"18446744073709551616",
        b'["a", "b"]',
        '{"k": [1.0, null, true, "é\\""], "l": {}}'.encode(),
        b"true",
        None,
    ]


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3),
    )
)
def test_the_text_of_an_array_or_object_is_the_same_json(value: Any) -> None:
    (event,) = events((KEY, compact(daemon("insert", data={"j": [value]}))))
    assert event.after is not None
    assert json.loads(event.after[0] or b"") == [value]


def test_a_statement_keeps_its_text_and_database() -> None:
    alter, create, database = events(
        (UUID, compact(daemon_ddl())),
        (UUID, compact(daemon_ddl("table-create", "CREATE TABLE t (id INT)"))),
        (UUID, compact({"type": "database-drop", "database": "db", "ts": 1000, "sql": "DROP DATABASE db"})),
    )
    assert (alter.kind, alter.ddl, alter.ddl_type) == ("ddl", "ALTER TABLE t ADD c INT", "table-alter")
    assert (alter.database, alter.table) == ("db", "t")
    assert (alter.commit_ts, alter.source) == (None, None)
    assert (create.ddl, create.ddl_type) == ("CREATE TABLE t (id INT)", "table-create")
    assert (database.ddl, database.table, database.source) == ("DROP DATABASE db", None, None)


def test_of_a_statement_on_several_tables_only_the_part_of_this_one_counts() -> None:
    old, new = {"database": "db", "table": "t"}, {"database": "d`2", "table": "u"}
    drop = daemon_ddl("table-drop", "DROP TABLE a, t /* generated by server */")
    rename = daemon_ddl("table-alter", "/* why */ -- so\n RENAME TABLE a TO b, t TO u", old=old, **{"def": new})
    alter = daemon_ddl("table-alter", "ALTER TABLE t RENAME u, ADD c INT", old=old, **{"def": new})
    assert [e.ddl for e in events(*((UUID, compact(m)) for m in (drop, rename, alter)))] == [
        "DROP TABLE `db`.`t`",
        "RENAME TABLE `db`.`t` TO `d``2`.`u`",
        "ALTER TABLE t RENAME u, ADD c INT",
    ]


def test_a_row_is_named_by_its_place_in_the_binlog_if_every_row_can_be() -> None:
    numbered = daemon("insert", data={"id": 1}, xoffset=3)
    del numbered["commit"]
    last, bare = daemon("insert", data={"id": 1}), {n: v for n, v in numbered.items() if n != "xoffset"}
    waited = {n: v for n, v in numbered.items() if n != "xid"}
    unplaced = {n: v for n, v in numbered.items() if n != "position"}
    messages = [(KEY, compact(m)) for m in (numbered, last, bare, waited, unplaced)]
    place = "0/binlog.0000000002:0000000000000048052:"
    assert [e.source for e in events(*messages, output_xoffset=True)] == [f"{place}0000000003", f"{place}9999999999", None, None, None]
    assert {e.source for e in events(*messages)} == {None}, "the feed does not say that Maxwell numbers rows"
    statements = [(UUID, compact(daemon_ddl()))]
    assert [e.source for e in events(*statements, output_xoffset=True)] == ["0/binlog.0000000002:0000000000000000004:0000000000"]


def test_a_table_of_many_layouts_is_read_with_bounded_memory() -> None:
    found = events(*(row("insert", data={f"c{n}": n}) for n in range(5000)))
    assert [e.after for e in found] == [[b"%d" % n] for n in range(5000)]


GOOD = daemon("insert", data={"id": 1})
REFUSED = {
    "TiCDC's rows without their key": ((None, maxwell_rows(maxwell("insert", data={"id": 1}))[1]), "TRUNCATED"),
    "TiCDC's key": ((VERSION, compact(daemon("bootstrap-insert", data={"id": 1}))), "UNKNOWN_TYPE"),
    "two rows": ((KEY, compact(GOOD) * 2), "BAD_JSON"),
    "cut short": ((KEY, compact(GOOD)[:-1]), "BAD_JSON"),
    "an array": ((KEY, b"[]"), "BAD_JSON"),
    "no value": ((KEY, b""), "BAD_JSON"),
    "another type": (row("truncate", data={"id": 1}), "UNKNOWN_TYPE"),
    "no type": ((KEY, compact({"database": "db", "table": "t", "data": {}})), "BAD_STRUCTURE"),
    "no table": (row("insert", data={"id": 1}, table=""), "BAD_STRUCTURE"),
    "no data": (row("insert"), "BAD_STRUCTURE"),
    "empty data": (row("insert", data={}), "BAD_STRUCTURE"),
    "old of an insert": (row("insert", data={"id": 1}, old={"id": 2}), "BAD_STRUCTURE"),
    "old a list": (row("update", data={"id": 1}, old=[1]), "BAD_STRUCTURE"),
    "key columns a number": (row("insert", data={"id": 1}, primary_key_columns=[1]), "BAD_STRUCTURE"),
    "deep JSON": (row("insert", data={"j": json.loads("[" * 101 + "]" * 101)}), "BAD_VALUE"),
    "a number beyond all types": ((KEY, compact(GOOD).replace(b'"id":1}', b'"id":1e999}')), "BAD_VALUE"),
    "position without offset": (row("insert", data={"id": 1}, position="binlog.000002"), "BAD_VALUE"),
    "position of another form": (row("insert", data={"id": 1}, position="binlog.000002:x"), "BAD_VALUE"),
    "xoffset a text": (row("insert", data={"id": 1}, xoffset="1", commit=False), "BAD_VALUE"),
    "encrypted data": (row("insert", encrypted={"iv": "", "bytes": ""}), "BAD_STRUCTURE"),
    "all encrypted": ((KEY, compact({"encrypted": {"iv": "", "bytes": ""}})), "BAD_STRUCTURE"),
    "a dead letter": (
        (KEY, compact({"database": "db", "table": "t", "type": "insert", "reason": "RecordTooLargeException", "data": {"id": 1}})),
        "BAD_STRUCTURE",
    ),
    "a statement without text": ((UUID, compact({n: v for n, v in daemon_ddl().items() if n != "sql"})), "BAD_STRUCTURE"),
    "a statement without table": ((UUID, compact(daemon_ddl(table=""))), "BAD_STRUCTURE"),
    "a rename without names": ((UUID, compact(daemon_ddl("table-alter", "RENAME TABLE t TO u"))), "BAD_STRUCTURE"),
}


@pytest.mark.parametrize(("message", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_message_of_maxwell_is_refused_with_its_code(message: Message, code: str) -> None:
    with pytest.raises(DecodeError) as error:
        decoder("maxwell").read(*message, context(None, output_xoffset=True))
    assert error.value.code == code
