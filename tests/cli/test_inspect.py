"""inspect: its lines in, its lines out, and what it says to a wrong one."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tests.checkout import CHECKOUT
from tests.cli import feeds
from tests.cli.calls import Called, call
from tests.protocols import simple_messages as simple
from tests.protocols.json_messages import canal, column, compact, open_key, open_message
from tidelake.config.options import SinkOptions
from tidelake.protocols import protocol_names

TS = 454930016746434001
ROW = {
    "topic": "",
    "partition": 0,
    "offset": 0,
    "ordinal": 0,
    "kind": "row",
    "op": "insert",
    "commit_ts": None,
    "database": "db",
    "table": "t",
    "physical_table_id": None,
    "columns": [{"name": "id", "type": "int", "value": "1"}, {"name": "v", "type": "varchar", "value": "x"}],
    "old_columns": None,
    "handle_only": False,
    "claim_check": None,
    "ddl": None,
    "ddl_type": None,
    "error_code": None,
    "error": None,
}


def line(value: bytes | None, key: bytes | None = None, **place: Any) -> dict[str, Any]:
    return place | {"key": None if key is None else key.hex(), "value": None if value is None else value.hex()}


def inspect(folder: Path, *lines: dict[str, Any] | str, protocol: str = "canal-json", options: tuple[object, ...] = ()) -> Called:
    file = folder / "messages.jsonl"
    file.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines))
    return call("inspect", "--protocol", protocol, *options, file)


def events(done: Called) -> list[dict[str, Any]]:
    assert (done.code, done.err) == (0, "")
    return [json.loads(one) for one in done.out.splitlines()]


# events


def test_a_row_is_printed_with_every_member_in_order(tmp_path: Path) -> None:
    done = inspect(tmp_path, line(compact(canal())))
    assert done.out == json.dumps(ROW) + "\n"


def test_an_update_has_both_images_binary_as_hex_and_its_commit_ts(tmp_path: Path) -> None:
    types = {"id": "bigint(20) unsigned", "raw": "varbinary(9)", "note": "varchar(9)"}
    data, old = [{"id": "18446744073709551615", "raw": "\xff\x00", "note": None}], [{"id": "18446744073709551615", "raw": "", "note": "ö"}]
    message = canal("UPDATE", data, old, types, _tidb={"commitTs": TS})
    (found,) = events(inspect(tmp_path, line(compact(message)), options=("--set", "enable_tidb_extension=true")))
    assert (found["op"], found["commit_ts"]) == ("update", TS)
    assert found["columns"] == [
        {"name": "id", "type": "bigint unsigned", "value": "18446744073709551615"},
        {"name": "raw", "type": "varbinary", "value": {"hex": "ff00"}},
        {"name": "note", "type": "varchar", "value": None},
    ]
    assert [c["value"] for c in found["old_columns"]] == ["18446744073709551615", {"hex": ""}, "ö"]


def test_asked_for_checksums_a_line_says_last_whether_its_row_adds_up(tmp_path: Path) -> None:
    schema = simple.table_schema([simple.column("id")], [simple.index("id", primary=True)])
    sums = [{"checksum": {"version": 2, "corrupted": False, "current": n, "previous": 0}} for n in (crc32((7).to_bytes(8, "little")), 5)]
    messages = [simple.json_schema_message(schema), *(simple.json_row(data={"id": "7"}, **more) for more in (*sums, {}))]
    lines = [line(value) for _, value in messages]
    found = events(inspect(tmp_path, *lines, protocol="simple-json", options=("--checksums",)))
    assert [e["checksum"] for e in found] == [None, "verified", "mismatch", None]
    assert [list(e) for e in found] == [[*ROW, "checksum"]] * 4
    assert [list(e) for e in events(inspect(tmp_path, *lines, protocol="simple-json"))] == [list(ROW)] * 4


def test_a_delete_has_old_columns_only(tmp_path: Path) -> None:
    (found,) = events(inspect(tmp_path, line(compact(canal("DELETE")))))
    assert (found["op"], found["columns"]) == ("delete", None)
    assert [c["value"] for c in found["old_columns"]] == ["1", "x"]


def test_a_commit_ts_is_an_unsigned_integer(tmp_path: Path) -> None:
    message = canal(_tidb={"commitTs": 2**64 - 1})
    (found,) = events(inspect(tmp_path, line(compact(message)), options=("--set", "enable_tidb_extension=true")))
    assert found["commit_ts"] == 2**64 - 1


def test_the_events_of_a_message_are_numbered_and_messages_keep_their_order(tmp_path: Path) -> None:
    row = {"u": {"id": column(3, 5, 11, key=True)}}
    key, value = open_message((open_key(8), row), (open_key(9), row))
    resolved_key, nothing = open_message(({"ts": 10, "t": 3}, None))
    ddl_key, ddl = open_message(({"ts": 11, "scm": "db", "tbl": "t", "t": 2}, {"q": "DROP TABLE t", "t": 4}))
    lines = [line(value, key, offset=7), line(nothing, resolved_key, offset=5), line(ddl, ddl_key, offset=6)]
    found = events(inspect(tmp_path, *lines, protocol="open"))
    assert [(e["offset"], e["ordinal"], e["kind"], e["commit_ts"]) for e in found] == [
        (7, 0, "row", 8),
        (7, 1, "row", 9),
        (5, 0, "resolved", 10),
        (6, 0, "ddl", 11),
    ]
    assert found[0]["columns"] == [{"name": "id", "type": "int", "value": "5"}]
    assert (found[2]["database"], found[2]["columns"], found[2]["op"]) == (None, None, None)
    assert (found[3]["ddl"], found[3]["ddl_type"]) == ("DROP TABLE t", "4")


def test_text_is_printed_as_it_is_and_never_breaks_a_line(tmp_path: Path) -> None:
    text = '"\\ \n\r\t\x00\x85\u2028\u2029 ünï 𝄞'
    done = inspect(tmp_path, line(compact(canal(data=[{"id": "1", "v": text}]))))
    assert len(done.out.splitlines()) == 1
    assert "ünï 𝄞" in done.out
    assert events(done)[0]["columns"][1]["value"] == text


def test_avro_schemas_are_a_file_of_ids_and_texts_or_a_folder(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "t", "namespace": "default.db", "fields": [{"name": "id", "type": "long"}]}
    fields = [*schema["fields"], {"name": "_tidb_op", "type": "string", "default": ""}, {"name": "_tidb_commit_ts", "type": "long"}]
    texts = {"1": json.dumps(schema), "2": json.dumps(schema | {"fields": fields})}
    message = line(b"\0\0\0\0\2\x0e\2c" + b"\x10", b"\0\0\0\0\1\x0e")
    file, folder = tmp_path / "schemas.json", tmp_path / "schemas"
    file.write_text(json.dumps(texts))
    folder.mkdir()
    for number, text in texts.items():
        (folder / f"{number}.avsc").write_text(text)
    for schemas in (file, folder):
        options = ("--avro-schemas", schemas, "--set", "enable_tidb_extension=true")
        (found,) = events(inspect(tmp_path, message, protocol="avro", options=options))
        assert (found["op"], found["commit_ts"], found["table"]) == ("insert", 8, "t")
        assert [(c["name"], c["value"]) for c in found["columns"]] == [("id", "7")]


# of a feed


def test_a_feed_gives_protocol_and_options_and_needs_no_variables(tmp_path: Path) -> None:
    text = feeds.FEED.replace('"open"', '"canal-json"', 1).replace("[lake]", "[options]\nenable_tidb_extension = true\n[lake]")
    feeds.write(tmp_path / "schemas", feed=text)
    (tmp_path / "messages.jsonl").write_text(json.dumps(line(compact(canal(_tidb={"commitTs": 5})))))
    done = call("inspect", "--feed", "shop", "--schemas", tmp_path / "schemas", tmp_path / "messages.jsonl")
    assert [(e["kind"], e["commit_ts"]) for e in events(done)] == [("row", 5)]


def test_a_feed_gives_its_avro_schemas(tmp_path: Path) -> None:
    schemas, messages = CHECKOUT / "schemas", tmp_path / "messages.jsonl"
    messages.write_text(json.dumps(line(b"\0\0\0\0\0", b"\0\0\0\0\0")))
    (found,) = events(call("inspect", "--feed", "bazaar-avro", "--schemas", schemas, messages))
    assert (found["error_code"], str(schemas / "bazaar-avro" / "avro_schemas.json") in found["error"]) == ("UNKNOWN_SCHEMA", True)


def test_a_row_in_a_claim_check_file_is_fetched_from_where_the_option_or_the_feed_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "a.json").write_bytes(compact(canal(_tidb={"commitTs": 5})))
    stub = canal(data=[{"id": "1"}], types={"id": "int"}, _tidb={"commitTs": 5, "claimCheckLocation": "s3://b/a.json"})
    options = ("--set", "enable_tidb_extension=true", "--set", "large_message_handle_option=claim-check")
    (left,) = events(inspect(tmp_path, line(compact(stub)), options=options))
    assert (len(left["columns"]), left["claim_check"]) == (1, "s3://b/a.json")
    (found,) = events(inspect(tmp_path, line(compact(stub)), options=(*options, "--claim-check", tmp_path / "claims")))
    assert found == ROW | {"commit_ts": 5}
    monkeypatch.setenv("TIDELAKE_CLAIMS", str(tmp_path / "claims"))
    for name in ("TIDELAKE_ARCHIVE", "TIDELAKE_LAKE", "TIDELAKE_CATALOG"):
        monkeypatch.setenv(name, "/x")
    text = feeds.FEED.replace('"open"', '"canal-json"', 1).replace("[source]", '[source]\nclaim_check = "${TIDELAKE_CLAIMS}"')
    feeds.write(tmp_path / "schemas", feed=text.replace("[lake]", '[options]\nlarge_message_handle_option = "claim-check"\n[lake]'))
    assert events(call("inspect", "--feed", "shop", "--schemas", tmp_path / "schemas", tmp_path / "messages.jsonl")) == [found]


GIVEN = [("--protocol", "open"), ("--set", "max_batch_size=1"), ("--avro-schemas", "x.json"), ("--claim-check", "x")]


@pytest.mark.parametrize("more", GIVEN)
def test_what_a_feed_gives_is_not_given_twice(tmp_path: Path, more: tuple[str, str]) -> None:
    feeds.write(tmp_path)
    done = call("inspect", "--feed", "shop", "--schemas", tmp_path, *more, "x.jsonl")
    assert (done.code, done.out) == (2, "")
    assert "leave --protocol, --avro-schemas, --claim-check and --set out" in done.err


def test_without_protocol_and_feed_both_are_named() -> None:
    done = call("inspect", "x.jsonl")
    assert (done.code, done.out) == (2, "")
    assert f"no protocol; give --protocol, one of {', '.join(protocol_names())}, or --feed" in done.err


def test_an_unknown_feed_is_told_with_those_there_are(tmp_path: Path) -> None:
    feeds.write(tmp_path)
    done = call("inspect", "--feed", "shpo", "--schemas", tmp_path, "x.jsonl")
    assert (done.code, done.out) == (2, "")
    assert "existing feeds: shop" in done.err


# lines


def test_topic_partition_and_offset_may_be_missing_or_null_and_the_line_counts_as_the_offset(tmp_path: Path) -> None:
    value = compact(canal())
    lines = [
        line(value),
        line(value, topic="shop", partition=3, offset=1017),
        "",
        line(value, topic=None, partition=None, offset=None),
    ]
    found = events(inspect(tmp_path, *lines))
    assert [(e["topic"], e["partition"], e["offset"]) for e in found] == [("", 0, 0), ("shop", 3, 1017), ("", 0, 3)]


def test_hex_may_be_in_capitals_and_members_may_be_more(tmp_path: Path) -> None:
    one = line(compact(canal()), headers=[], comment="?")
    assert events(inspect(tmp_path, one | {"value": one["value"].upper()})) == [ROW]


def test_an_empty_file_has_no_events(tmp_path: Path) -> None:
    assert inspect(tmp_path) == Called(0, "", "")


def test_a_dash_is_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(line(compact(canal()))) + "\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert events(call("inspect", "--protocol", "canal-json", "-")) == [ROW]


def test_more_messages_than_a_batch_are_all_printed_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelake.cli.inspect.BATCH", 3)
    found = events(inspect(tmp_path, *[line(compact(canal(data=[{"id": str(n), "v": "x"}]))) for n in range(10)]))
    assert [(e["offset"], e["columns"][0]["value"]) for e in found] == [(n, str(n)) for n in range(10)]


@pytest.mark.parametrize("protocol", protocol_names())
@pytest.mark.parametrize(("key", "value"), [(None, None), (b"", b""), (b"\xff" * 9, b"\xff" * 9), (None, b"{")])
def test_a_message_that_cannot_be_decoded_is_a_rejected_event_and_its_neighbours_are_not(
    tmp_path: Path, protocol: str, key: bytes | None, value: bytes | None
) -> None:
    if value is None and protocol in ("debezium", "maxwell"):
        value = b"null"  # without a value it is a tombstone, which holds no event
    bad = line(value, key, topic="t", partition=1, offset=2)
    found = events(inspect(tmp_path, bad, line(compact(canal()), offset=3), protocol=protocol))
    assert list(found[0]) == list(ROW)
    assert (found[0]["kind"], found[0]["topic"], found[0]["partition"], found[0]["offset"]) == ("rejected", "t", 1, 2)
    assert found[0]["error_code"].isupper()
    assert len(found[0]["error"]) > 10
    assert all(found[0][name] is None for name in ("op", "commit_ts", "database", "table", "columns", "old_columns", "ddl"))
    assert len(found) == 2
    assert found[1]["kind"] == ("row" if protocol == "canal-json" else "rejected")


# what is wrong


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("{", "line 2: "),
        ('"text"', "line 2: "),
        ("[]", "line 2: "),
        ("null", "line 2: "),
        ('{"value": "0"}', "line 2: "),
        ('{"value": "zz"}', "line 2: "),
        ('{"value": 5}', "line 2: "),
        ('{"key": {}, "value": null}', "line 2: "),
        ('{"offset": "5"}', "line 2: offset: found '5'"),
        ('{"offset": -1}', "line 2: offset: found -1"),
        ('{"offset": 9223372036854775808}', "line 2: offset: found 9223372036854775808"),
        ('{"partition": 2147483648}', "line 2: partition: found 2147483648"),
        ('{"partition": true}', "line 2: partition: found True"),
        ('{"partition": 1.5}', "line 2: partition: found 1.5"),
        ('{"topic": 5}', "line 2: topic: found 5"),
        ("[" * 200_000, "line 2: "),
    ],
)
def test_a_malformed_line_is_told_with_its_number_and_what_a_line_is(tmp_path: Path, wrong: str, said: str) -> None:
    done = inspect(tmp_path, line(compact(canal())), wrong, line(compact(canal())))
    assert done.code == 2
    assert said in done.err
    assert done.err.startswith("error: CONFIG: ")
    assert 'a line is {"key": hex or null, "value": hex or null' in done.err
    assert "Traceback" not in done.err
    assert done.out in ("", json.dumps(ROW) + "\n")


def test_a_line_that_is_not_utf_8_is_told_with_its_number(tmp_path: Path) -> None:
    (tmp_path / "messages.jsonl").write_bytes(b'{"value": null}\n\xff\xfe\n')
    done = call("inspect", "--protocol", "open", tmp_path / "messages.jsonl")
    assert (done.code, done.err.startswith("error: CONFIG: line 2: ")) == (2, True)


@pytest.mark.parametrize("missing", ["nothing.jsonl", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, missing: str) -> None:
    done = call("inspect", "--protocol", "open", tmp_path / missing)
    assert (done.code, done.out) == (2, "")
    assert str(tmp_path / missing) in done.err


def test_an_unknown_option_is_told_with_all_there_are(tmp_path: Path) -> None:
    done = inspect(tmp_path, options=("--set", "enable_tidb_extention=true"))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: CONFIG: --set enable_tidb_extention=true: unknown option; options: ")
    assert all(name in done.err for name in SinkOptions.model_fields)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("enable_tidb_extension", "not key=value"),
        ("enable_tidb_extension=perhaps", "valid boolean"),
        ("max_batch_size=many", "valid integer"),
        ("large_message_handle_compression=zip", "'none', 'snappy' or 'lz4'"),
        ("=", "unknown option"),
    ],
)
def test_a_wrong_value_of_an_option_is_told_with_what_is_allowed(tmp_path: Path, setting: str, said: str) -> None:
    done = inspect(tmp_path, options=("--set", setting))
    assert (done.code, done.out) == (2, "")
    assert f"--set {setting}: " in done.err
    assert said in done.err


def test_the_last_value_of_an_option_counts(tmp_path: Path) -> None:
    both = ("--set", "enable_tidb_extension=false", "--set", "enable_tidb_extension=true")
    (found,) = events(inspect(tmp_path, line(compact(canal(_tidb={"commitTs": 5}))), options=both))
    assert found["commit_ts"] == 5


@pytest.mark.parametrize("protocol", ["opne", "", "OPEN", "../open"])
def test_an_unknown_protocol_is_told_with_all_there_are(tmp_path: Path, protocol: str) -> None:
    done = inspect(tmp_path, protocol=protocol)
    assert (done.code, done.out) == (2, "")
    assert f"protocol {protocol!r} is not supported; supported: {', '.join(protocol_names())}" in done.err


@pytest.mark.parametrize("content", [None, "[]", "{", '{"1": 5}'])
def test_avro_schemas_that_are_none_are_told_with_what_may_be_given(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "schemas.json").write_text(content)
    done = inspect(tmp_path, protocol="avro", options=("--avro-schemas", tmp_path / "schemas.json"))
    assert (done.code, done.out) == (2, "")
    assert "give a JSON file {id: schema text}, a folder of <id>.avsc, an http(s):// registry, or glue://<region>" in done.err


def test_avro_without_schemas_rejects_every_message(tmp_path: Path) -> None:
    (found,) = events(inspect(tmp_path, line(b"\0\0\0\0\1\2", b"\0\0\0\0\1\2"), protocol="avro"))
    assert (found["kind"], found["error_code"]) == ("rejected", "UNKNOWN_SCHEMA")


def test_the_columns_of_csv_lines_come_from_a_schema_file_or_the_feed_s_tables(tmp_path: Path) -> None:
    csv = line(b'"I","orders","shop",18446744073709551615,"x"\r\n')
    columns = [{"ColumnName": "id", "ColumnType": "BIGINT UNSIGNED"}, {"ColumnName": "note", "ColumnType": "VARCHAR"}]
    file = tmp_path / "schema_1_1.json"
    file.write_text(json.dumps({"Schema": "shop", "Table": "orders", "TableVersion": 1, "TableColumns": columns}))
    named = [{"name": "id", "type": "bigint unsigned", "value": "18446744073709551615"}, {"name": "note", "type": "varchar", "value": "x"}]
    (found,) = events(inspect(tmp_path, csv, protocol="csv", options=("--table-schemas", file)))
    assert found["columns"] == named
    feeds.write(tmp_path / "schemas", feed=feeds.FEED.replace('"open"', '"csv"', 1))
    messages = tmp_path / "csv.jsonl"
    messages.write_text(json.dumps(csv) if isinstance(csv, dict) else csv)
    (found,) = events(call("inspect", "--feed", "shop", "--schemas", tmp_path / "schemas", messages))
    assert found["columns"] == named
    (found,) = events(inspect(tmp_path, csv, protocol="csv"))
    assert [c["name"] for c in found["columns"]] == ["c1", "c2"]
