"""Every layout reads what its connector writes, from objects of our own."""

from __future__ import annotations

import io
import json
import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from tests.archives import objects
from tests.archives.objects import WRITERS, Message, compressed, read
from tidelake.archives import SourceObject, layout_of
from tidelake.archives.readers.layout import BATCH_BYTES
from tidelake.errors import ConfigError
from tidelake.history.event import MESSAGE

MESSAGES = [
    Message(5, b"five", b"key", 1_767_607_200_000, [("src", b"ticdc"), ("empty", None)]),
    Message(6, b'\x00\n\xff,";:', None, 1_767_607_200_123, []),
    Message(9, None, b"k", 1_767_607_260_500, []),
    Message(7, b"x" * 70_000, b"k\n", -1, [("s", b"\x00")]),
]


def test_jsonl_keeps_everything(tmp_path: Path) -> None:
    assert read("aiven-jsonl", tmp_path, objects.jsonl(MESSAGES)) == MESSAGES


def test_a_json_array_keeps_everything(tmp_path: Path) -> None:
    assert read("aiven-json", tmp_path, objects.json_array(MESSAGES)) == MESSAGES
    assert read("aiven-json", tmp_path, objects.json_array(MESSAGES[:1]) + b"\n") == MESSAGES[:1]
    assert read("aiven-json", tmp_path, b"[\n]") == []


def test_text_and_json_keep_everything_but_headers(tmp_path: Path) -> None:
    texts = [Message(1, '{"a":"é\\n"}\n{"b":2}'.encode(), b'k"'), Message(2, None, None), Message(5, b"plain", b"")]
    assert read("aiven-jsonl-string", tmp_path, objects.jsonl_string(texts)) == [m._replace(headers=None) for m in texts]
    values = [b'{ "a" : [1.50, {"value": "}"}], "b":"\\"" }', None, b"{}", b'{"value":{"x":"]"}}']
    whole = [Message(i, value, b"k") for i, value in enumerate(values)]
    assert read("aiven-jsonl-nested", tmp_path, objects.jsonl_nested(whole)) == [m._replace(headers=None) for m in whole]


def test_csv_keeps_everything(tmp_path: Path) -> None:
    assert read("aiven-csv", tmp_path, objects.csv(MESSAGES)) == MESSAGES


def test_parquet_keeps_everything(tmp_path: Path) -> None:
    content = objects.parquet(MESSAGES, fields=("key", "value", "offset", "timestamp", "headers"))
    assert read("aiven-parquet", tmp_path, content) == MESSAGES


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_avro_keeps_everything(codec: str, tmp_path: Path) -> None:
    content = objects.avro(MESSAGES, codec=codec, fields=("key", "value", "offset", "timestamp", "headers"))
    assert read("aiven-avro", tmp_path, content) == MESSAGES


def test_confluent_json_keeps_values_and_counts_offsets_from_its_name(tmp_path: Path) -> None:
    found = read("confluent-json", tmp_path, objects.confluent([MESSAGES[0], MESSAGES[1], MESSAGES[3]]), number=40)
    assert found == [Message(40 + i, MESSAGES[at].value, None, None, None) for i, at in enumerate((0, 1, 3))]


def test_confluent_avro_keeps_values_and_counts_offsets_from_its_name(tmp_path: Path) -> None:
    found = read("confluent-avro", tmp_path, objects.confluent_avro(MESSAGES), number=40)
    assert found == [Message(40 + i, m.value, None, None, None) for i, m in enumerate(MESSAGES)]


@pytest.mark.parametrize("layout", ["canonical", "lenses-avro"])
def test_our_own_objects_and_lenses_avro_keep_everything(layout: str, tmp_path: Path) -> None:
    assert read(layout, tmp_path, WRITERS[layout][0](MESSAGES), number=9) == MESSAGES


def test_canonical_objects_may_use_the_short_names(tmp_path: Path) -> None:
    headers = pa.list_(pa.struct([("k", pa.string()), ("v", pa.binary())]))
    names = {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "ts_ms": pa.int64(), "ts_type": pa.string()}
    schema = pa.schema([*names.items(), ("key", pa.binary()), ("value", pa.binary()), ("headers", headers), ("src_index", pa.int64())])
    row = {"topic": "t", "partition": 0, "offset": 7, "ts_ms": 8, "key": None, "value": b"v", "headers": [{"k": "a", "v": b"b"}]}
    assert read("canonical", tmp_path, objects.table([row], schema)) == [Message(7, b"v", None, 8, [("a", b"b")])]


def test_lenses_parquet_keeps_everything_but_headers_without_a_value(tmp_path: Path) -> None:
    found = read("lenses-parquet", tmp_path, objects.lenses_parquet(MESSAGES), number=9)
    assert found == [m._replace(headers=sorted(h for h in m.headers or [] if h[1] is not None)) for m in MESSAGES]


def test_lenses_json_keeps_everything_but_headers(tmp_path: Path) -> None:
    assert read("lenses-json", tmp_path, objects.lenses_json(MESSAGES), number=9) == [m._replace(headers=None) for m in MESSAGES]


def test_confluent_parquet_keeps_values_null_ones_too_offsets_and_timestamps(tmp_path: Path) -> None:
    found = read("confluent-parquet", tmp_path, objects.confluent_parquet(MESSAGES), number=40)
    assert found == [m._replace(key=None, headers=None) for m in MESSAGES]


@pytest.mark.parametrize("layout", ["canonical", "kcat", "lenses-json", "lenses-avro", "lenses-parquet"])
def test_records_of_another_topic_than_the_name_says_are_refused(layout: str, tmp_path: Path) -> None:
    writer: Any = WRITERS[layout][0]
    texts = [Message(1, b"v")]
    with pytest.raises(
        ConfigError, match=r"ARCHIVE_LAYOUT: .*it holds records of a topic or partition other than t\[0\]; .*check source\.template"
    ):
        read(layout, tmp_path, writer(texts, topic="u"))


def test_kcat_lines_keep_everything_that_is_text(tmp_path: Path) -> None:
    whole = [
        Message(7, '{"a":"é\\n"}\n'.encode(), b'k"', 8, [("src", b"ticdc"), ("empty", None), ("src", b"")]),
        Message(9, None, None, 9, []),
        Message(8, b"", b"", 0, [("k", b"v")]),
    ]
    assert read("kcat", tmp_path, objects.kcat(whole), number=99) == whole
    assert read("kcat", tmp_path, objects.kcat([Message(1, b"v", None, -1, [])])) == [Message(1, b"v", None, None, [])]


@pytest.mark.parametrize("codec", ["", "DefaultCodec", "GzipCodec"])
def test_a_sequence_file_keeps_offsets_and_values_null_as_empty(codec: str, tmp_path: Path) -> None:
    whole = [Message(i * 3, bytes([i]) * i) for i in range(120)] + [Message(1, None)]
    content = objects.secor(whole, codec=codec, metadata=[("name", "x" * 200)])
    assert read("secor", tmp_path, content, number=99) == [Message(m.offset, m.value or b"", None, None, None) for m in whole]


@pytest.mark.parametrize("codec", ["snappy", "zstandard"])
def test_avro_codecs_that_need_no_library_of_their_own_are_read(codec: str, tmp_path: Path) -> None:
    def packed(block: bytes) -> bytes:
        if codec == "snappy":
            return pa.Codec("snappy").compress(block, asbytes=True) + zlib.crc32(block).to_bytes(4, "big")
        return compressed("zstd", block)

    plain = objects.confluent_avro(MESSAGES[:2], codec="null")
    head, sync = plain[: plain.index(plain[-16:]) + 16], plain[-16:]
    head = head.replace(b"avro.codec\x08null", b"avro.codec" + bytes([2 * len(codec)]) + codec.encode())
    block = packed(plain[len(head) - len(codec) + 4 :][2:-16])
    content = head + b"\x04" + varint(len(block)) + block + sync
    assert [m.value for m in read("confluent-avro", tmp_path, content)] == [b"five", MESSAGES[1].value]


def varint(value: int) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", value)
    return out.getvalue()


def test_csv_reads_an_empty_field_as_null(tmp_path: Path) -> None:
    assert read("aiven-csv", tmp_path, b",,7,8\n,QQ==,8,\n") == [Message(7, None, None, 8, None), Message(8, b"A", None, None, None)]


@pytest.mark.parametrize("line", ['{"value":"QQ==","offset":3}', '{"offset":3,"other":[1],"value":"QQ==","key":null}'])
def test_jsonl_needs_neither_keys_nor_timestamps_nor_headers_nor_an_order_of_members(line: str, tmp_path: Path) -> None:
    assert read("aiven-jsonl", tmp_path, line.encode()) == [Message(3, b"A", None, None, None)]


@pytest.mark.parametrize("layout", ["aiven-avro", "aiven-parquet"])
def test_avro_and_parquet_need_neither_keys_nor_timestamps_nor_headers(layout: str, tmp_path: Path) -> None:
    writer = {"aiven-avro": objects.avro, "aiven-parquet": objects.parquet}[layout]
    found = read(layout, tmp_path, writer(MESSAGES, fields=("offset", "value")))
    assert found == [Message(m.offset, m.value, None, None, None) for m in MESSAGES]


@pytest.mark.parametrize("layout", ["aiven-jsonl", "aiven-csv"])
def test_a_newline_after_the_last_record_changes_nothing(layout: str, tmp_path: Path) -> None:
    assert read(layout, tmp_path, WRITERS[layout][0](MESSAGES) + b"\n") == MESSAGES


def test_an_object_named_gz_that_begins_with_parquets_magic_is_parquet(tmp_path: Path) -> None:
    assert len(read("aiven-parquet", tmp_path, objects.parquet(MESSAGES), "t+0+0.parquet.gz")) == 4


@pytest.mark.parametrize("layout", list(WRITERS))
def test_an_object_of_many_batches_is_read_in_pieces_of_the_agreed_size(layout: str, tmp_path: Path) -> None:
    messages = objects.suited(layout, [Message(i, b"%09d" % i * 1_000) for i in range(3_000)])
    path = tmp_path / "object"
    path.write_bytes(WRITERS[layout][0](messages))
    source = SourceObject("t", 0, f"t+0+0.{WRITERS[layout][1]}", 0, path.stat().st_size, "")
    batches = list(layout_of(layout).read(path, source))
    assert all(batch.schema.equals(MESSAGE) for batch in batches)
    sizes = [sum(len(v) for v in batch.column("value").to_pylist()) for batch in batches]
    assert len(sizes) >= 3
    assert max(sizes) <= BATCH_BYTES + 9_000 * 20
    table = pa.Table.from_batches(batches)
    assert table.column("value").to_pylist() == [m.value for m in messages]
    assert table.column("offset").to_pylist() == list(range(3_000))


@pytest.mark.parametrize("layout", ["aiven-jsonl", "aiven-csv", "confluent-json"])
def test_a_line_longer_than_a_block_is_read_whole(layout: str, tmp_path: Path) -> None:
    messages = [Message(0, b"a"), Message(1, b"b" * (BATCH_BYTES * 2)), Message(2, b"c")]
    assert [len(m.value or b"") for m in read(layout, tmp_path, WRITERS[layout][0](messages))] == [1, BATCH_BYTES * 2, 1]


def test_a_member_with_escapes_is_read_like_any_json(tmp_path: Path) -> None:
    line = json.dumps({"offset": 1, "value": b64encode(b"ok").decode()}).replace("b", "\\u0062")
    assert read("aiven-jsonl", tmp_path, line.encode()) == [Message(1, b"ok", None, None, None)]
