"""What must not be read as if it were sound: damaged records block, archives of other settings are refused."""

from __future__ import annotations

import io
import zlib
from functools import partial
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

from tests.archives import objects
from tests.archives.objects import Message, read
from tidelake.errors import ConfigError, OrderError, StorageError

LINE = b'{"offset":%d,"value":"QQ=="}'


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (b'{"offset":7,"value":"QQ', "not a JSON object"),
        (b'{"offset":7,"value":"QQ="}', "key, value or a header is not base64"),
        (b'{"offset":7,"value":"QQ==","key":"*"}', "key, value or a header is not base64"),
        (b'{"offset":7,"value":"QQ==","headers":[{"key":"k","value":"*"}]}', "key, value or a header is not base64"),
        (b'{"offset":null,"value":"QQ=="}', "offset is None"),
        (b'{"offset":-1,"value":"QQ=="}', "offset is -1"),
        (b'{"offset":"7","value":"QQ=="}', "offset is '7'"),
        (b'{"offset":9223372036854775808,"value":"QQ=="}', "offset is 9223372036854775808"),
        (b'{"value":"QQ=="}', "offset is None"),
        (b"[]", "not a JSON object"),
        (b"\xff\xfe", "not a JSON object"),
        (LINE % 7 + LINE % 8, "not a JSON object"),
    ],
)
def test_a_damaged_jsonl_record_blocks_and_is_named_by_its_line(damage: bytes, problem: str, tmp_path: Path) -> None:
    lines = [LINE % i for i in range(6)] + [damage] + [LINE % i for i in range(7, 20)]
    with pytest.raises(OrderError) as caught:
        read("aiven-jsonl", tmp_path, b"\n".join(lines))
    error = caught.value
    assert (error.code, error.exit_code) == ("DAMAGED_OBJECT", 3)
    assert error.message.startswith(f"t+0+{0:020d}.jsonl, line 7: {problem}")
    assert "land the hour again" in error.remedy


def test_the_line_of_a_damaged_record_counts_from_the_beginning_of_a_long_object(tmp_path: Path) -> None:
    lines = [b'{"offset":%d,"value":"%s"}' % (i, b"QUFB" * 100) for i in range(50_000)]
    lines[49_998] = b"oops"
    with pytest.raises(OrderError, match="line 49999: not a JSON object"):
        read("aiven-jsonl", tmp_path, b"\n".join(lines))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (b"QQ==,QQ==,7", "3 fields instead of 4 or 5"),
        (b"QQ==,QQ==,x,1", "offset is b'x'"),
        (b"QQ==,QQ==,,1", "offset is b''"),
        (b"QQ==,QQ==,9223372036854775808,1", "offset is b'9223372036854775808'"),
        (b"QQ==,QQ==,7,soon", "timestamp is b'soon'"),
        (b"QQ==,QQ,7,1", "key, value or a header is not base64"),
        (b"", "1 fields instead of 4 or 5"),
    ],
)
def test_a_damaged_csv_record_blocks_and_is_named_by_its_line(damage: bytes, problem: str, tmp_path: Path) -> None:
    lines = [b",QQ==,%d,1" % i for i in range(6)] + [damage] + [b",QQ==,%d,1" % i for i in range(7, 20)]
    with pytest.raises(OrderError, match="DAMAGED_OBJECT") as caught:
        read("aiven-csv", tmp_path, b"\n".join(lines))
    assert f", line 7: {problem}" in caught.value.message


@pytest.mark.parametrize("cut", [1, 2, 3, 40])
def test_an_array_without_its_end_is_cut_short(cut: int, tmp_path: Path) -> None:
    content = objects.json_array([Message(i, b"v") for i in range(3)])
    with pytest.raises((StorageError, OrderError), match=r"BAD_OBJECT: t\+0.*cut short|DAMAGED_OBJECT: t\+0.*line 4: not a JSON object"):
        read("aiven-json", tmp_path, content[:-cut])


def test_what_follows_an_array_is_an_error(tmp_path: Path) -> None:
    content = objects.json_array([Message(i, b"v") for i in range(3)])
    with pytest.raises(OrderError, match=r"DAMAGED_OBJECT.*line 5: not a JSON object"):
        read("aiven-json", tmp_path, content + b"\n" + content)


@pytest.mark.parametrize(
    ("layout", "damage", "problem"),
    [
        ("aiven-jsonl-string", b'{"offset":7,"value":1}', "key or value is not text"),
        ("aiven-jsonl-string", b'{"offset":7,"value":"\xff"}', "not a JSON object"),
        ("aiven-jsonl-string", b'{"offset":-7,"value":"a"}', "offset is -7"),
        ("aiven-jsonl-nested", b'{"offset":7,"value":{"a":1}', "not a JSON object"),
        ("aiven-jsonl-nested", b'{"offset":7,"value":{"a":}}', "not a JSON object"),
        ("aiven-jsonl-nested", b'{"offset":7,"key":{},"value":{}}', "key or value is not text"),
    ],
)
def test_a_damaged_record_of_a_converter_blocks_and_is_named_by_its_line(layout: str, damage: bytes, problem: str, tmp_path: Path) -> None:
    value = b'"t"' if layout == "aiven-jsonl-string" else b'{"a":"}"}'
    lines = [b'{"offset":%d,"value":%s}' % (i, value) for i in range(20)]
    with pytest.raises(OrderError, match=f"DAMAGED_OBJECT: .*line 7: {problem}"):
        read(layout, tmp_path, b"\n".join([*lines[:6], damage, *lines[7:]]))


KCAT = b'{"topic":"t","partition":0,"offset":%d,"tstype":"create","ts":1,"broker":0,"key":null,"payload":"v"}'


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (b"% Reached end of topic", "line 7: not a JSON object"),
        ((KCAT % 7).replace(b'"v"', b'"\xff"'), "line 7: not a JSON object"),
        ((KCAT % 7).replace(b'"ts"', b'"headers":["k"],"ts"'), "lines 1 to 19: a header without a value"),
        (KCAT % -7, "line 7: offset is -7"),
    ],
)
def test_a_damaged_line_of_kcat_blocks_and_is_named(damage: bytes, problem: str, tmp_path: Path) -> None:
    lines = [KCAT % i for i in range(20)]
    with pytest.raises(OrderError, match=f"DAMAGED_OBJECT: .*, {problem}"):
        read("kcat", tmp_path, b"\n".join([*lines[:6], damage, *lines[7:]]))


SECOR = objects.secor([Message(i, b"%d" % i * 9) for i in range(30)])


@pytest.mark.parametrize(
    ("content", "error", "problem"),
    [
        (b"SEQ\x05" + SECOR[4:], StorageError, "does not begin with SEQ 06"),
        (SECOR[:50], StorageError, "it ends inside its header"),
        (SECOR[:-1], StorageError, "cut short after record 29"),
        (SECOR + b"\xff\xff", StorageError, "cut short after record 30"),
        (SECOR + b"\xff" * 20, OrderError, "after record 30: not a record"),
        (SECOR + (16).to_bytes(4, "big") + (9).to_bytes(4, "big") + b"k" * 20, OrderError, "after record 30: not a record"),
        (SECOR + (10).to_bytes(4, "big") + (8).to_bytes(4, "big") + b"\x00" * 10, OrderError, "record 31: its value has no length"),
        (SECOR + (13).to_bytes(4, "big") + (8).to_bytes(4, "big") + b"\x00" * 13, OrderError, "record 31: the length of its value differs"),
        (SECOR + (12).to_bytes(4, "big") + (8).to_bytes(4, "big") + b"\xff" * 8 + b"\x00" * 4, OrderError, "record 31: no offset"),
    ],
)
def test_a_damaged_sequence_file_is_an_error_that_says_where(content: bytes, error: type[Exception], problem: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=problem):
        read("secor", tmp_path, content)


def test_a_damaged_value_in_a_compressed_sequence_file_is_named(tmp_path: Path) -> None:
    content = bytearray(objects.secor([Message(i, b"value") for i in range(3)], codec="DefaultCodec"))
    content[-3] ^= 0xFF
    with pytest.raises(OrderError, match=r"DAMAGED_OBJECT.*record 3: cannot be decompressed"):
        read("secor", tmp_path, bytes(content))


@pytest.mark.parametrize("layout", ["aiven-jsonl", "lenses-avro"])
def test_a_header_whose_name_is_not_text_blocks(layout: str, tmp_path: Path) -> None:
    writer = {"aiven-jsonl": objects.jsonl, "lenses-avro": partial(objects.lenses_avro, codec="null")}[layout]
    content = writer([Message(1, b"v", headers=[("name", b"h")])])
    with pytest.raises(OrderError, match=r"DAMAGED_OBJECT: t\+0.*(UTF8|line 1: not a JSON object)"):
        read(layout, tmp_path, content.replace(b"\x08name", b"\x08n\xffme").replace(b'"key":"name"', b'"key":"n\xffme"'))


def test_a_parquet_object_whose_schema_is_not_text_is_an_error_that_names_it(tmp_path: Path) -> None:
    content = objects.parquet([Message(1, b"v")])
    with pytest.raises(StorageError, match=r"BAD_OBJECT: t\+0.*not readable as Parquet"):
        read("aiven-parquet", tmp_path, content.replace(b"timestamp", b"time\xe7tamp"))


LENSES = b'{"key":null,"value":"QQ==","metadata":{"timestamp":1,"topic":"t","partition":0,"offset":%d}}'


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (LENSES % 7 + b"}", "not a JSON object"),
        (b"", "not a JSON object"),
        ((LENSES % 7).replace(b"QQ==", b"QQ"), "value is not base64"),
        ((LENSES % 7).replace(b"offset", b"other"), "offset is None"),
        (LENSES % -7, "offset is -7"),
    ],
)
def test_a_damaged_record_of_lenses_blocks_and_is_named_by_its_line(damage: bytes, problem: str, tmp_path: Path) -> None:
    lines = [LENSES % i for i in range(6)] + [damage] + [LENSES % i for i in range(7, 20)]
    with pytest.raises(OrderError, match="DAMAGED_OBJECT") as caught:
        read("lenses-json", tmp_path, b"\n".join(lines))
    assert f", line 7: {problem}" in caught.value.message


def test_a_damaged_header_in_a_csv_record_blocks(tmp_path: Path) -> None:
    with pytest.raises(OrderError, match="line 2: key, value or a header is not base64"):
        read("aiven-csv", tmp_path, b",QQ==,1,1,QQ==:QQ==;\n,QQ==,2,1,QQ==;\n")


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (b'"QQ"', "not base64"),
        (b"null", "not a JSON string"),
        (b"", "not a JSON string"),
        (b'"QQ="="', "not base64"),
        (b'"Q\\u0051=="', "not base64"),
    ],
)
def test_a_damaged_confluent_record_blocks_and_is_named_by_its_line(damage: bytes, problem: str, tmp_path: Path) -> None:
    with pytest.raises(OrderError, match=f"DAMAGED_OBJECT.*line 3: {problem}"):
        read("confluent-json", tmp_path, b'"QQ=="\n""\n' + damage + b'\n"QQ=="\n')


@pytest.mark.parametrize(
    ("layout", "content", "problem", "remedy"),
    [
        ("aiven-jsonl", b'{"value":"QQ=="}\n{"value":"QQ=="}', "its records have no offset", "format.output.fields"),
        ("aiven-jsonl", b'{"offset":1,"key":null}', "its records have no value", "format.output.fields"),
        ("aiven-jsonl", b'{"offset":1,"value":{"id":0}}', "keys, values or headers are not base64", "ByteArrayConverter"),
        ("aiven-jsonl", b'{"offset":1,"value":"{\\"id\\":0}"}', "keys, values or headers are not base64", "ByteArrayConverter"),
        ("aiven-jsonl", b'"QQ=="\n"QQ=="', "a line holds a bare value", "format.output.fields"),
        ("aiven-jsonl", b'[\n{"offset":1,"value":"QQ=="}\n]', "it is one JSON array", "format.output.type = jsonl"),
        ("aiven-json", b'{"offset":1,"value":"QQ=="}', "its first line is not [", "format.output.type = json"),
        ("aiven-json", b'[\n{"offset":1}\n]', "its records have no value", "format.output.fields"),
        ("aiven-jsonl-string", b'{"offset":1,"value":"QQ=="}', "values are not text", "StringConverter"),
        ("aiven-jsonl-string", b'{"offset":1,"value":{"id":0}}', "values are not text", "StringConverter"),
        ("aiven-jsonl-nested", b'{"offset":1,"value":"{}"}', "values are not JSON objects", "JsonConverter"),
        ("aiven-csv", b"QQ==\nQQ==\n\nQQ==", "its lines are not key,value,offset,timestamp", "in this order"),
        ("aiven-csv", b'{"id":0,"a":"b"},1,2\n', "its lines are not key,value,offset,timestamp", "base64 values"),
        ("confluent-json", b'{"id":0}\n{"id":1}\n', "its lines are not JSON strings", "ByteArrayConverter"),
        ("aiven-avro", objects.avro([Message(1, b"")], fields=("key", "value")), "its records have no offset", "format.output.fields"),
        ("aiven-parquet", objects.parquet([Message(1, b"")], fields=("value",)), "it has no column offset", "format.output.fields"),
        ("confluent-parquet", objects.parquet([Message(1, b"")], fields=("value",)), "it has no column offset", "InsertField"),
        ("canonical", objects.parquet([Message(1, b"")]), "it has no column topic and no column partition", "write it with Tidelake"),
        ("lenses-parquet", objects.parquet([Message(1, b"")]), "it has no column metadata", "store.envelope"),
        ("lenses-avro", objects.avro([Message(1, b"")]), "its records have no metadata.offset", "store.envelope"),
        ("kcat", objects.jsonl([Message(1, b"")]), "not what kcat -J writes", "kcat -C -J"),
        ("secor", objects.secor([Message(1, b"")]).replace(b"LongWritable", b"NullWritable"), "NullWritable", "SequenceFileReader"),
        ("secor", objects.secor([], codec="DefaultCodec").replace(b"\x01\x00", b"\x01\x01"), "compressed in blocks", "NONE or RECORD"),
        ("secor", objects.secor([], codec="SnappyCodec"), "compressed by org.apache.hadoop.io.compress.SnappyCodec", "DefaultCodec"),
        ("lenses-json", objects.jsonl([Message(1, b"")]), "not records of key, value and metadata", "store.envelope"),
    ],
)
def test_an_archive_of_other_settings_is_refused_and_says_how_to_set_the_connector(
    layout: str, content: bytes, problem: str, remedy: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(layout, tmp_path, content)
    assert (caught.value.code, caught.value.exit_code) == ("ARCHIVE_LAYOUT", 2)
    assert problem in caught.value.message
    assert remedy in caught.value.remedy


@pytest.mark.parametrize("layout", ["aiven-avro", "aiven-parquet"])
@pytest.mark.parametrize("cut", [1, 100, 3_000])
def test_a_container_that_is_cut_short_is_an_error_that_names_it(layout: str, cut: int, tmp_path: Path) -> None:
    content = objects.WRITERS[layout][0]([Message(i, b"%d" % i * 90) for i in range(500)])
    with pytest.raises(StorageError, match=r"BAD_OBJECT: t\+0\+0"):
        read(layout, tmp_path, content[:-cut])


@pytest.mark.parametrize("layout", ["aiven-avro", "aiven-parquet"])
def test_a_container_of_something_else_is_an_error_that_names_it(layout: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"BAD_OBJECT: t\+0\+0.*not readable as"):
        read(layout, tmp_path, b"something else" * 100)


def test_an_avro_container_damaged_inside_blocks_and_says_after_which_record(tmp_path: Path) -> None:
    content = bytearray(objects.avro([Message(i, b"%d" % i * 90) for i in range(500)], codec="null"))
    content[len(content) // 2] ^= 0xFF
    del content[len(content) // 2 + 1]
    with pytest.raises(OrderError, match=r"DAMAGED_OBJECT: t\+0\+0.*after record [1-9]\d*: not readable as Avro"):
        read("aiven-avro", tmp_path, bytes(content))


def test_an_avro_codec_that_is_not_read_is_refused_and_names_the_setting(tmp_path: Path) -> None:
    content = objects.avro([Message(1, b"a")], codec="null").replace(b"avro.codec\x08null", b"avro.codec\x0abrotl")
    with pytest.raises(ConfigError, match=r"ARCHIVE_LAYOUT: .*'brotl' is not read; set avro\.codec to one of null, deflate, snappy"):
        read("aiven-avro", tmp_path, content)


@pytest.mark.parametrize("layout", ["aiven-avro", "confluent-avro"])
def test_no_bytes_make_an_avro_container_read_as_something_else(layout: str, tmp_path: Path) -> None:
    whole = [Message(i, b"%d" % i * 9, timestamp_ms=0, headers=None) for i in range(40)]
    content = objects.avro(whole, codec="null") if layout == "aiven-avro" else objects.confluent_avro(whole, codec="null")
    begin = content.index(content[-16:]) + 16
    for at in range(begin, len(content)):
        for spoiled in (content[:at], content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :]):
            try:
                found = read(layout, tmp_path, spoiled)
            except (OrderError, StorageError, ConfigError):
                continue
            assert len(found) <= 40
            assert spoiled == content[:begin] or len(found) == 40


def test_an_avro_block_must_hold_as_many_records_as_it_says_and_end_with_its_marker(tmp_path: Path) -> None:
    content = objects.confluent_avro([Message(i, b"value") for i in range(4)], codec="null")
    sync, begin = content[-16:], content.index(content[-16:]) + 16
    assert content[begin] == 8  # four records
    fewer = content[:begin] + b"\x06" + content[begin + 1 :]
    with pytest.raises(OrderError, match=r"DAMAGED_OBJECT: .*after record 3: not readable as Avro"):
        read("confluent-avro", tmp_path, fewer)
    with pytest.raises(OrderError, match=r"DAMAGED_OBJECT: .*the block's sync marker is missing"):
        read("confluent-avro", tmp_path, content[:-16] + sync[::-1])


def test_an_avro_block_of_snappy_with_another_checksum_is_damaged(tmp_path: Path) -> None:
    head = objects.confluent_avro([], codec="null").replace(b"avro.codec\x08null", b"avro.codec\x0csnappy")
    block = pa.Codec("snappy").compress(b"\x02\x02v", asbytes=True)
    for checksum, sound in ((zlib.crc32(b"\x02\x02v"), True), (1, False)):
        content = head + bytes([2, 2 * len(block) + 8]) + block + checksum.to_bytes(4, "big") + head[-16:]
        if sound:
            assert [m.value for m in read("confluent-avro", tmp_path, content)] == [b"v"]
        else:
            with pytest.raises(OrderError, match=r"DAMAGED_OBJECT: .*does not match its checksum"):
                read("confluent-avro", tmp_path, content)


@pytest.mark.parametrize(
    ("layout", "damage", "problem"),
    [
        ("confluent-json-string", b"null", "not a JSON string"),
        ("confluent-json-string", b'"a', "not a JSON string"),
        ("confluent-json-string", b'"\xff"', "not a JSON string"),
        ("confluent-json-string", b'"\\ud800"', "not a JSON string"),
        ("confluent-json-string", b"", "not a JSON string"),
        ("confluent-json-nested", b"null", "not a JSON object"),
        ("confluent-json-nested", b'{"a":1', "not a JSON object"),
        ("confluent-json-nested", b"", "not a JSON object"),
    ],
)
def test_a_damaged_line_of_another_converter_blocks_and_is_named(layout: str, damage: bytes, problem: str, tmp_path: Path) -> None:
    good = b'"t"' if layout == "confluent-json-string" else b'{"a":1}'
    with pytest.raises(OrderError, match=f"DAMAGED_OBJECT: .*line 3: {problem}"):
        read(layout, tmp_path, b"\n".join([good, good, damage, good, b""]))


@pytest.mark.parametrize(
    ("schema", "record", "problem"),
    [
        ({"type": "record", "name": "row", "fields": [{"name": "id", "type": "long"}]}, {"id": 1}, "its records are not bytes"),
        (["null", "long", "bytes"], b"a", "a union of 3 types"),
        ("long", 1, "a record is a number, not bytes"),
    ],
)
def test_avro_of_decoded_rows_is_refused(schema: object, record: object, problem: str, tmp_path: Path) -> None:
    out = io.BytesIO()
    fastavro.writer(out, schema, [record])  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=f"ARCHIVE_LAYOUT: .*{problem}.*ByteArrayConverter"):
        read("confluent-avro", tmp_path, out.getvalue())


def test_a_parquet_record_without_an_offset_blocks_and_is_named(tmp_path: Path) -> None:
    table = pa.table({"offset": pa.array([1, 2, None], pa.int64()), "value": pa.array([b"a"] * 3, pa.binary())})
    out = pa.BufferOutputStream()
    pa.parquet.write_table(table, out)
    with pytest.raises(OrderError, match=r"DAMAGED_OBJECT.*record 3: no offset"):
        read("aiven-parquet", tmp_path, out.getvalue().to_pybytes())
