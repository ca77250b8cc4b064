"""CSV of the storage sink: what is read with every option, and what is refused and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.peak import MEASURED, Peak, settle
from tests.protocols.both_paths import both
from tests.protocols.untyped_messages import COLUMNS, context
from tidelake.errors import ConfigError, DecodeError
from tidelake.history.event import Event, SchemaColumn
from tidelake.protocols import Context, decoder
from tidelake.protocols.table_schemas import table_schemas

OLD = {"output_old_value": True}


def events(text: str, with_context: Context | None = None) -> list[Event]:
    return both("csv", [(None, text.encode())], with_context or context())[0]


def after(text: str, **options: Any) -> list[bytes | None]:
    (event,) = events(text, context(**options))
    assert event.after is not None
    return list(event.after)


def test_operations_names_and_commit_ts() -> None:
    found = events('"I","t","db",7,1\r\n"U","t","db",8,2\r\n"D","t","db",18446744073709551615,3\r\n', context(include_commit_ts=True))
    assert [(e.op, e.commit_ts, e.after, e.before) for e in found] == [
        ("insert", 7, [b"1"], None),
        ("update", 8, [b"2"], None),
        ("delete", (1 << 64) - 1, None, [b"3"]),
    ]
    assert {(e.kind, e.database, e.table) for e in found} == {("row", "db", "t")}


def test_a_key_of_digits_is_the_table_version_whose_columns_go_before_others() -> None:
    known = {"t": COLUMNS, "t@441": (SchemaColumn("old", "int", key=True),)}
    versioned = Context(columns=lambda database, table: known.get(table))
    for key, names in ((b"441", ["old"]), (b"442", None), (b"x", None), (None, None)):
        row = b'"I","t","db",1\r\n' if names else b'"I","t","db",1,a,AA==,2\r\n'
        (event,) = both("csv", [(key, row)], versioned)[0]
        assert event.row_schema is not None
        assert [c.name for c in event.row_schema.columns] == (names or [c.name for c in COLUMNS])


def test_quoted_text_holds_anything_and_only_the_bare_null_word_is_null() -> None:
    assert after('"I","t","db","a""b","x,\r\ny","","\\N",\\N,-1.5e+06,"\\n"\r\n') == [
        b'a"b',
        b"x,\r\ny",
        b"",
        b"\\N",
        None,
        b"-1.5e+06",
        b"\\n",
    ]


@pytest.mark.parametrize("quote", ["'", "|", "^", "]", "\\", "é"])
def test_any_character_may_be_the_quote(quote: str) -> None:
    row = ["I", "t", "db", f"a{quote}b,\n"]
    assert after(",".join(quote + f.replace(quote, quote * 2) + quote for f in row) + "\n", quote=quote, terminator="\n") == [
        row[3].encode()
    ]


def test_without_a_quote_backslashes_escape() -> None:
    options = {"quote": "", "delimiter": "[*]", "terminator": "\n"}
    assert after("I[*]t[*]db[*]a\\[\\*\\]b[*]\\r\\n\\\\[*][*x[*]\\N[*]\\\\N[*]\r\n", **options) == [
        b"a[*]b",
        b"\r\n\\",
        b"[*x",
        None,
        b"\\N",
        b"\r",
    ]


def test_without_a_quote_text_that_spells_the_null_word_is_null() -> None:
    assert after("I|t|db|NULL|NULLS|\n", quote="", delimiter="|", terminator="\n", null="NULL") == [None, b"NULLS", b""]


def test_an_empty_terminator_is_ticdc_s_default() -> None:
    assert after('"I","t","db",1\r\n', terminator="") == [b"1"]


def test_an_update_is_a_deleted_and_an_inserted_line() -> None:
    lines = ['"D","t","db",false,1', '"D","t","db",true,1', '"I","t","db",true,2', '"I","t","db",false,3']
    found = events("".join(line + "\r\n" for line in lines), context(**OLD))
    assert [(e.op, e.after, e.before) for e in found] == [
        ("delete", None, [b"1"]),
        ("update", [b"2"], [b"1"]),
        ("insert", [b"3"], None),
    ]


@pytest.mark.parametrize(
    "second",
    ['"I","t","db",false,2', '"I","u","db",true,2', '"I","t","dc",true,2', '"D","t","db",true,2'],
    ids=["flag", "table", "db", "op"],
)
def test_lines_that_are_not_of_one_update_stay_two_events(second: str) -> None:
    assert [e.op for e in events(f'"D","t","db",true,1\r\n{second}\r\n', context(**OLD))] == [
        "delete",
        {"I": "insert", "D": "delete"}[second[1]],
    ]


def test_half_an_update_at_the_edge_of_a_message_is_what_it_says() -> None:
    assert [e.op for e in events('"D","t","db",true,1\r\n', context(**OLD))] == ["delete"]
    assert [e.op for e in events('"I","t","db",true,1\r\n', context(**OLD))] == ["insert"]


def test_the_handle_key_is_no_column_and_keeps_the_lines_of_an_update_apart() -> None:
    found = events('"D","t","db",true,"k",1\r\n"I","t","db",true,"k",2\r\n', context(output_handle_key=True, **OLD))
    assert [(e.op, e.after, e.before) for e in found] == [("delete", None, [b"1"]), ("insert", [b"2"], None)]


def test_columns_are_numbered_where_nothing_names_them() -> None:
    (event,) = events('"I","t","db",1,"x"\r\n')
    assert event.row_schema is not None
    assert event.row_schema.columns == (SchemaColumn("c1"), SchemaColumn("c2"))


def test_a_header_names_them() -> None:
    text = '"ticdc-meta$operation","ticdc-meta$table","ticdc-meta$schema","v","id"\r\n"I","t","db","x",1\r\n'
    (event,) = events(text, context(COLUMNS))
    assert event.row_schema is not None
    assert event.row_schema.columns == (COLUMNS[1], COLUMNS[0])
    (event,) = events(text)
    assert event.row_schema is not None
    assert event.row_schema.columns == (SchemaColumn("v"), SchemaColumn("id"))
    assert events(text[: text.index("\n") + 1]) == []


@pytest.mark.parametrize(("encoding", "text"), [("base64", "/wA="), ("hex", "ff00")])
def test_a_known_table_names_and_types_them(encoding: str, text: str) -> None:
    (event,) = events(f'"I","t","db",1,"x","{text}","1.50"\r\n', context(COLUMNS, binary_encoding_method=encoding))
    assert event.row_schema is not None
    assert (event.row_schema.columns, event.after) == (COLUMNS, [b"1", b"x", b"\xff\0", b"1.50"])


def test_a_delete_may_hold_the_handle_alone() -> None:
    (event,) = events('"D","t","db",1\r\n', context(COLUMNS, delete_only_output_handle_key_columns=True))
    assert event.before_schema is not None
    assert (event.before_schema.columns, event.before) == (COLUMNS[:1], [b"1"])


REFUSED: dict[str, tuple[bytes | None, dict[str, Any], str]] = {
    "null": (None, {}, "NULL_VALUE"),
    "nothing": (b"", {}, "TRUNCATED"),
    "no terminator": (b'"I","t","db",1', {}, "TRUNCATED"),
    "half a terminator": (b'"I","t","db",1\r', {}, "TRUNCATED"),
    "half a terminator after a quote": (b'"I","t","db","1"\r', {}, "TRUNCATED"),
    "inside a quote": (b'"I","t","db","1\r\n', {}, "TRUNCATED"),
    "after a delimiter": (b'"I","t","db",', {}, "TRUNCATED"),
    "text after a quote": (b'"I","t","db","1"2\r\n', {}, "BAD_STRUCTURE"),
    "no columns": (b'"I","t","db"\r\n', {}, "BAD_STRUCTURE"),
    "no table": (b'"I","","db",1\r\n', {}, "BAD_STRUCTURE"),
    "an empty line": (b"\r\n", {}, "BAD_STRUCTURE"),
    "another operation": (b'"X","t","db",1\r\n', {}, "UNKNOWN_TYPE"),
    "not UTF-8": (b'"I","t","db","\xff"\r\n', {}, "BAD_UTF8"),
    "commit ts that is none": (b'"I","t","db",x,1\r\n', {"include_commit_ts": True}, "BAD_VALUE"),
    "commit ts too large": (b'"I","t","db",18446744073709551616,1\r\n', {"include_commit_ts": True}, "BAD_VALUE"),
    "commit ts of other digits": ('"I","t","db",٣,1\r\n'.encode(), {"include_commit_ts": True}, "BAD_VALUE"),
    "is-update that is none": (b'"I","t","db",1,1\r\n', OLD, "BAD_VALUE"),
    "an escape that is none": (b"I,t,db,\\q\r\n", {"quote": ""}, "BAD_VALUE"),
    "a backslash at the end": (b"I,t,db,\\", {"quote": ""}, "TRUNCATED"),
    "fewer columns than the table": (b'"I","t","db",1\r\n', {"columns": COLUMNS}, "BAD_STRUCTURE"),
    "more columns than the table": (b'"I","t","db",1,2,"",4,5\r\n', {"columns": COLUMNS}, "BAD_STRUCTURE"),
    "no base64": (b'"I","t","db",1,"x","=","1"\r\n', {"columns": COLUMNS}, "BAD_VALUE"),
    "no hex": (b'"I","t","db",1,"x","f","1"\r\n', {"columns": COLUMNS, "binary_encoding_method": "hex"}, "BAD_VALUE"),
    "too many lines": (b'"I","t","d",1\r\n' * 65_537, {}, "TOO_LARGE"),
    "too many columns": (b'"I","t","d"' + b",1" * 5_000 + b"\r\n", {}, "TOO_LARGE"),
}


@pytest.mark.parametrize(("value", "options", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_csv_is_refused_with_its_code(value: bytes | None, options: dict[str, Any], code: str) -> None:
    with pytest.raises(DecodeError) as error:
        decoder("csv").read(None, value, context(**options))
    assert error.value.code == code


TABLE = {
    "Schema": "db",
    "Table": "t",
    "TableVersion": 5,
    "TableColumns": [
        {"ColumnName": "id", "ColumnType": "BIGINT UNSIGNED", "ColumnPrecision": "20", "ColumnNullable": "false", "ColumnIsPk": "true"},
        {"ColumnName": "d", "ColumnType": "DECIMAL", "ColumnPrecision": "10", "ColumnScale": "2"},
        {"ColumnName": "at", "ColumnType": "DATETIME", "ColumnScale": "3"},
        {"ColumnName": "b", "ColumnType": "BIT", "ColumnPrecision": "10"},
        {"ColumnName": "v", "ColumnType": "VARBINARY", "ColumnPrecision": "16"},
    ],
    "TableColumnsTotal": 5,
}


def test_schema_files_of_the_sink_say_the_columns_and_the_newest_counts(tmp_path: Path) -> None:
    below = tmp_path / "db" / "t" / "meta"
    below.mkdir(parents=True)
    (below / "schema_5_1.json").write_text(json.dumps(TABLE))
    (below / "schema_4_1.json").write_text(json.dumps(TABLE | {"TableVersion": 4, "TableColumns": TABLE["TableColumns"][:1]}))  # type: ignore[index]
    (tmp_path / "schema_9_1.json").write_text(json.dumps({"Schema": "db", "Table": "", "TableVersion": 9, "TableColumns": None}))
    of = table_schemas(tmp_path)
    assert of("db", "t") == (
        SchemaColumn("id", "bigint unsigned", key=True),
        SchemaColumn("d", "decimal", full_type="decimal(10,2)"),
        SchemaColumn("at", "datetime", full_type="datetime(3)"),
        SchemaColumn("b", "bit", full_type="bit(10)"),
        SchemaColumn("v", "varbinary"),
    )
    assert of("db", "u") is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"Schema": 1, "Table": "t"}', json.dumps(TABLE).replace("BIGINT", "(")])
def test_another_file_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "schema_1_1.json").write_text(text)
    with pytest.raises(ConfigError, match=r"schema_1_1\.json: not a schema file"):
        table_schemas(tmp_path)
    with pytest.raises(ConfigError, match="none: No such file"):
        table_schemas(tmp_path / "none")


@pytest.mark.parametrize("many", [0, 1, 999, 1000, 1001, 2000, 5003])
@pytest.mark.parametrize(("quote", "delimiter"), [('"', ","), ("'", "||"), ("»", ","), ("", ","), ("", "|é")])
def test_a_text_may_hold_any_number_of_marks(many: int, quote: str, delimiter: str) -> None:
    """Marks: quotes, or escaped delimiters, backslashes and line ends. In UTF-8, ° begins like »."""
    plain = f"a{quote}°{delimiter}\\\r\n"
    escaped = "".join(f"\\{c}" for c in f"{delimiter}\\")
    piece = plain.replace(quote, quote * 2) if quote else f"a°{escaped}\\r\\n"
    line = delimiter.join(f"{quote}{word}{quote}" for word in ("I", "t", "db", piece * many)) + "\r\n"
    found = events(line * 2, context(quote=quote, delimiter=delimiter))
    assert [e.after for e in found] == [[(plain * many).encode()]] * 2


@pytest.mark.skipif(not MEASURED, reason="memory is measured on Linux only")
@pytest.mark.parametrize(("quote", "mark"), [('"', '""'), ("", "\\n")])
def test_a_text_of_marks_takes_a_few_times_its_bytes(quote: str, mark: str) -> None:
    line = f"{quote}I{quote},{quote}t{quote},{quote}db{quote},{quote}{mark * 2_000_000}{quote}\r\n".encode()
    settle()
    peak = Peak()
    (event,) = decoder("csv").read(None, line, context(quote=quote))
    assert peak.grown() < 100_000_000
    assert event.after is not None
    assert len(event.after[0] or b"") == 2_000_000
