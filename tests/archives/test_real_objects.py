"""The objects of tests/data/archives, written by real connectors, against what was produced (docs/reference/archives.md 9)."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.archives.objects import Message, read_file
from tests.archives.real_objects import objects, with_siblings
from tests.data_files import data_bytes
from tidelake.errors import ConfigError, OrderError

Place = tuple[str, int]


@cache
def produced() -> dict[Place, list[Message]]:
    """What was produced to every partition, by offset."""
    out: dict[Place, list[Message]] = defaultdict(list)
    for r in json.loads(data_bytes("archives/produced.json.xz")):
        key, value = (None if r[name] is None else bytes.fromhex(r[name]) for name in ("key", "value"))
        out[r["topic"], r["partition"]].append(Message(r["offset"], value, key, r["ts"], [(k, bytes.fromhex(v)) for k, v in r["headers"]]))
    return {place: sorted(messages) for place, messages in out.items()}


def archived(layout: str, folder: str, topic: str) -> dict[Place, list[Message]]:
    """All messages that a layout reads, by offset."""
    out: dict[Place, list[Message]] = defaultdict(list)
    for path, source in objects(folder, topic):
        out[source.topic, source.partition] += read_file(layout, path, source)
    return {place: sorted(messages) for place, messages in out.items()}


def expected(topic: str, **lost: Any) -> dict[Place, list[Message]]:
    """What was produced to a topic, with members replaced."""
    return {place: [m._replace(**lost) for m in messages] for place, messages in produced().items() if place[0] == topic}


TOPICS = ("cdc.open", "cdc.craft", "cdc.canal", "cdc.avro")


@pytest.mark.parametrize("topic", TOPICS)
def test_aiven_jsonl_equals_what_was_produced(topic: str) -> None:
    assert archived("aiven-jsonl", "aiven/jsonl-gzip", topic) == expected(topic)


@pytest.mark.parametrize("topic", ["cdc.open", "cdc.craft"])
def test_aiven_jsonl_with_snappy_equals_what_was_produced(topic: str) -> None:
    assert archived("aiven-jsonl", "aiven/jsonl-snappy", topic) == expected(topic)


@pytest.mark.parametrize("topic", TOPICS)
def test_aiven_json_equals_what_was_produced(topic: str) -> None:
    assert archived("aiven-json", "aiven/json", topic) == expected(topic)


def test_aiven_text_equals_what_was_produced_but_headers() -> None:
    assert archived("aiven-jsonl-string", "aiven/jsonl-stringconverter", "cdc.canal") == expected("cdc.canal", headers=None)


def test_aiven_nested_json_is_the_first_document_of_every_message_in_another_order() -> None:
    found = archived("aiven-jsonl-nested", "aiven/jsonl-jsonconverter", "cdc.canal")["cdc.canal", 0]
    truth = expected("cdc.canal", headers=None)["cdc.canal", 0]
    assert [m._replace(value=None) for m in found] == [m._replace(value=None) for m in truth]
    assert [first_document(m) for m in found] == [first_document(m) for m in truth]


def test_aiven_wall_clock_hours_hold_everything_too() -> None:
    for topic in ("cdc.open", "cdc.craft"):
        found = archived("aiven-parquet", "aiven/parquet-wallclock", topic)
        assert {place: [m._replace(headers=None) for m in messages] for place, messages in found.items()} == expected(topic, headers=None)


def first_document(message: Message) -> object:
    """The first JSON document of a value."""
    return json.JSONDecoder().raw_decode((message.value or b"").decode())[0]


@pytest.mark.parametrize("topic", TOPICS)
def test_aiven_csv_equals_what_was_produced_but_empty_values_are_null(topic: str) -> None:
    wanted = {place: [m._replace(key=m.key or None, value=m.value or None) for m in found] for place, found in expected(topic).items()}
    assert archived("aiven-csv", "aiven/csv-gzip", topic) == wanted


@pytest.mark.parametrize("topic", TOPICS)
def test_aiven_avro_equals_what_was_produced_but_the_headers_it_was_not_told_to_write(topic: str) -> None:
    assert archived("aiven-avro", "aiven/avro", topic) == expected(topic, headers=None)


@pytest.mark.parametrize("topic", TOPICS)
def test_aiven_parquet_equals_what_was_produced_but_headers_where_the_first_record_has_none(topic: str) -> None:
    found = archived("aiven-parquet", "aiven/parquet", topic)
    assert {place: [m._replace(headers=None) for m in messages] for place, messages in found.items()} == expected(topic, headers=None)
    there = {(place, m.offset): m.headers for place, messages in found.items() for m in messages if m.headers is not None}
    told = {(place, m.offset): m.headers for place, messages in expected(topic).items() for m in messages}
    assert there == {at: told[at] for at in there}
    assert there or topic == "cdc.craft"


@pytest.mark.parametrize("topic", ["cdc.open", "cdc.craft", "cdc.canal"])
def test_confluent_json_holds_every_value_and_the_offsets_of_files_without_late_records(topic: str) -> None:
    wanted = {(place, m.offset): m.value for place, messages in expected(topic).items() for m in messages}
    found = {
        (place, m.offset): m for place, messages in archived("confluent-json", "confluent/cf-json-b64", topic).items() for m in messages
    }
    everything = [m for messages in archived("confluent-json", "confluent/cf-json-b64", topic).values() for m in messages]
    assert sorted(m.value or b"" for m in everything) == sorted(v or b"" for v in wanted.values())
    assert all((m.key, m.timestamp_ms, m.headers) == (None, None, None) for m in everything)
    right = sum(found[at].value == wanted[at] for at in wanted if at in found)
    assert right >= len(wanted) * 0.9


def test_confluent_json_strings_hold_every_value_byte_for_byte() -> None:
    found = archived("confluent-json-string", "confluent/cf-json-str", "cdc.canal")
    values = sorted(m.value or b"" for messages in found.values() for m in messages)
    assert values == sorted(m.value or b"" for m in expected("cdc.canal")["cdc.canal", 0])
    assert any(b"\n" in value for value in values)


def test_confluent_nested_json_holds_the_first_document_of_every_message_in_another_order() -> None:
    def canonical(text: bytes) -> str:
        return json.dumps(json.JSONDecoder().raw_decode(text.decode())[0], sort_keys=True)

    found = archived("confluent-json-nested", "confluent/cf-json-conv", "cdc.canal")["cdc.canal", 0]
    truth = expected("cdc.canal")["cdc.canal", 0]
    assert sorted(canonical(m.value or b"") for m in found) == sorted(canonical(m.value or b"") for m in truth)
    assert {m.value for m in found} & {m.value for m in truth} == set()


@pytest.mark.parametrize("topic", ["cdc.open", "cdc.craft", "cdc.canal"])
def test_confluent_avro_holds_every_value(topic: str) -> None:
    found = archived("confluent-avro", "confluent/cf-avro", topic)
    truth = expected(topic)
    assert {place: sorted(m.value or b"" for m in messages) for place, messages in found.items()} == {
        place: sorted(m.value or b"" for m in messages) for place, messages in truth.items()
    }


def test_confluent_avro_with_keys_and_headers_equals_what_was_produced_but_timestamps(tmp_path: Path) -> None:
    found = {
        (source.topic, source.partition): read_file("confluent-avro", *with_siblings(path, source, tmp_path))
        for path, source in objects("confluent/cf-avro-keys", "cdc2.open")
    }
    assert found == expected("cdc2.open", timestamp_ms=None)


def test_raw_open_protocol_with_keys_and_headers_equals_what_was_produced_but_timestamps_or_is_damaged(tmp_path: Path) -> None:
    (sound, damaged) = objects("confluent/cf-bin-keys", "cdc2.open")
    assert read_file("confluent-bin-open", *with_siblings(*sound, tmp_path)) == expected("cdc2.open", timestamp_ms=None)["cdc2.open", 0]
    with pytest.raises(OrderError, match=r"DAMAGED_OBJECT.*cdc2\.open\+1.*\.keys\.bin, record 17: not Open Protocol"):
        read_file("confluent-bin-open", *with_siblings(*damaged, tmp_path))
    assert (produced()["cdc2.open", 1][16].key or b"")[8] == 0x80  # a length that no message has


def test_raw_open_protocol_without_keys_holds_every_value_up_to_one_of_another_kind() -> None:
    found = {source.partition: (path, source) for path, source in objects("confluent/cf-bin", "cdc.open")}
    truth = expected("cdc.open", key=None, timestamp_ms=None, headers=None)
    for partition in (1, 2):
        assert read_file("confluent-bin-open", *found[partition]) == truth["cdc.open", partition]
    with pytest.raises(OrderError, match=r"DAMAGED_OBJECT.*record 12: not Open Protocol"):
        read_file("confluent-bin-open", *found[0])
    assert (truth["cdc.open", 0][11].value or b"").startswith(b'{"key"')  # of a claim-check message


def test_raw_lines_are_split_where_a_message_has_newlines_inside() -> None:
    found = [m.value for m in archived("confluent-bin", "confluent/cf-bin", "cdc.canal")["cdc.canal", 0]]
    values = [m.value or b"" for m in expected("cdc.canal")["cdc.canal", 0]]
    assert found == b"\n".join(values).split(b"\n")
    assert len(found) > len(values)


def test_confluent_json_whose_nulls_are_ignored_lacks_them_and_counts_wrong_offsets_behind_them() -> None:
    found = archived("confluent-json", "confluent/cf-null-ignore", "cdc.avro")
    truth = expected("cdc.avro")
    for place, messages in truth.items():
        values = [m.value for m in messages if m.value is not None]
        assert [m.value for m in found[place]] == values
        assert len(values) < len(messages)


def test_confluent_json_with_tagged_objects_equals_what_was_produced() -> None:
    found = archived("confluent-json", "confluent/cf-tag", "cdc2.open")
    assert found == expected("cdc2.open", key=None, timestamp_ms=None, headers=None)


def test_confluent_keys_beside_the_values_belong_to_them(tmp_path: Path) -> None:
    truth = [(place, m.key, m.value) for place, messages in expected("cdc2.avro").items() for m in messages if m.value is not None]
    found = [
        ((source.topic, source.partition), m.key, m.value)
        for path, source in objects("confluent/cf-null-write", "cdc2.avro")
        for m in read_file("confluent-json", *with_siblings(path, source, tmp_path))
    ]
    assert sorted(found) == sorted(truth)
    assert len(found) == 26


@pytest.mark.parametrize(
    ("layout", "folder", "problem"),
    [
        ("aiven-csv", "aiven/default", "not key,value,offset,timestamp"),
        ("aiven-jsonl", "aiven/jsonl-bare", "its records have no offset"),
        ("aiven-jsonl", "aiven/jsonl-jsonconverter", "not base64"),
        ("aiven-jsonl", "aiven/jsonl-stringconverter", "not base64"),
        ("aiven-jsonl", "aiven/json", "it is one JSON array"),
        ("confluent-json", "confluent/cf-json-conv", "not JSON strings"),
        ("confluent-json-string", "confluent/cf-json-b64", "not JSON strings of text"),
        ("confluent-json-nested", "confluent/cf-json-str", "not JSON objects"),
    ],
)
def test_archives_of_settings_that_lose_messages_are_refused(layout: str, folder: str, problem: str) -> None:
    found = [pair for pair in objects(folder, "") if "cdc.canal" in pair[1].key]
    assert found
    for path, source in found:
        with pytest.raises(ConfigError, match=problem):
            read_file(layout, path, source)
