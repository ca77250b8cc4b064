"""Keys and headers that lie beside the values."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.archives.objects import Message, confluent, confluent_nested, confluent_string, open_value, read
from tidelake.archives.readers.layout import BATCH_BYTES
from tidelake.errors import ConfigError, OrderError, StorageError

VALUES = [Message(i, b"v%d" % i) for i in range(3)]
HEADERS = b'{"headers":[{"key":"k","value":"dg=="},{"key":"n","value":null}]}\n{"headers":[]}\n{}\n'


def keys_of(*keys: bytes) -> tuple[str, bytes]:
    return "json", confluent([Message(0, key) for key in keys])


def test_keys_and_headers_are_joined_to_the_values_by_counting(tmp_path: Path) -> None:
    found = read("confluent-json", tmp_path, confluent(VALUES), number=7, keys=keys_of(b"a", b"", b"c"), headers=("json", HEADERS))
    assert found == [
        Message(7, b"v0", b"a", None, [("k", b"v"), ("n", None)]),
        Message(8, b"v1", b"", None, []),
        Message(9, b"v2", b"c", None, None),
    ]


def test_keys_are_text_where_values_are(tmp_path: Path) -> None:
    keys = ("json", b'"a\\"b"\n"\\u00e9"\n"AAAA"\n')
    texts = [Message(i, b'{"id":%d}' % i) for i in range(3)]
    for layout, writer in (("confluent-json-string", confluent_string), ("confluent-json-nested", confluent_nested)):
        found = read(layout, tmp_path, writer(texts), keys=keys)
        assert [(m.key, m.value) for m in found] == [(b'a"b', b'{"id":0}'), ("é".encode(), b'{"id":1}'), (b"AAAA", b'{"id":2}')]


@pytest.mark.parametrize(
    ("keys", "problem"), [([b"a", b"b"], "record 3: it is missing"), ([b"a", b"b", b"c", b"d"], "record 4: .*3 records")]
)
def test_keys_of_another_number_than_values_block(keys: list[bytes], problem: str, tmp_path: Path) -> None:
    with pytest.raises(OrderError, match=rf"DAMAGED_OBJECT: t\+0\+0+\.keys\.json, {problem}"):
        read("confluent-json", tmp_path, confluent(VALUES), keys=keys_of(*keys))


def test_keys_of_many_batches_stay_with_their_values(tmp_path: Path) -> None:
    whole = [Message(i, b"%d" % i * 40, b"%d" % i * 9) for i in range(60_000)]
    assert len(confluent(whole)) > BATCH_BYTES
    keys = [m.key or b"" for m in whole]
    found = read("confluent-json", tmp_path, confluent(whole), keys=keys_of(*keys))
    assert [(m.key, m.value) for m in found] == [(m.key, m.value) for m in whole]


@pytest.mark.parametrize("content", [b'{"headers":[{"key":"k","value":"*"}]}', b'{"headers":1}', b'{"other":[]}', b"oops"])
def test_damaged_headers_block(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(OrderError, match=r"DAMAGED_OBJECT: t\+0\+0+\.headers\.json, lines 1 to 1: not headers"):
        read("confluent-json", tmp_path, confluent(VALUES[:1]), headers=("json", content))


def test_headers_of_a_format_that_is_not_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"headers of that format are not read; write them as \.headers\.json"):
        read("confluent-json", tmp_path, confluent(VALUES), headers=("parquet", b"PAR1"))


VERSION = (1).to_bytes(8, "big")


def test_open_protocol_in_raw_files_is_told_apart_by_its_own_lengths(tmp_path: Path) -> None:
    values = [open_value(b'{"q":"a\nb"}', b"\n\n"), b"", open_value(b""), open_value(b"x" * 300, b"\n")]
    keys = [VERSION + open_value(b"\n", b"{}"), VERSION, VERSION + open_value(b"k"), VERSION + open_value(b"\x00", b"")]
    content, beside = (b"".join(record + b"\n" for record in records) for records in (values, keys))
    found = read("confluent-bin-open", tmp_path, content, number=5, keys=("bin", beside))
    assert found == [Message(5 + i, value, key, None, None) for i, (value, key) in enumerate(zip(values, keys, strict=True))]


def test_open_protocol_in_raw_files_is_read_across_blocks(tmp_path: Path) -> None:
    values = [open_value(b"%d\n" % i * 900, b"") for i in range(6_000)]
    content = b"".join(value + b"\n" for value in values)
    assert len(content) > 2 * BATCH_BYTES
    assert [m.value for m in read("confluent-bin-open", tmp_path, content)] == values


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (open_value(b"ab")[:-1] + b"\n", "BAD_OBJECT.*cut short after record 1"),
        (open_value(b"ab") + b"x\n", "DAMAGED_OBJECT.*record 2: not Open Protocol"),
        (b"{}\n", "DAMAGED_OBJECT.*record 2: not Open Protocol"),
        (open_value(b"ab"), "BAD_OBJECT.*cut short after record 1"),
        (b"\x00\x00\x00\n", "BAD_OBJECT.*cut short after record 1"),
        (b"\x00\xff\xff\xff\xff\xff\xff\xff\n", "BAD_OBJECT.*cut short after record 1"),
    ],
)
def test_damaged_open_protocol_in_raw_files_is_an_error(content: bytes, problem: str, tmp_path: Path) -> None:
    with pytest.raises((StorageError, OrderError), match=problem):
        read("confluent-bin-open", tmp_path, open_value(b"first") + b"\n" + content)


def test_raw_files_of_something_else_than_open_protocol_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ARCHIVE_LAYOUT.*it does not hold Open Protocol"):
        read("confluent-bin-open", tmp_path, b'{"id":0}\n')


def test_raw_lines_are_values_without_their_ends(tmp_path: Path) -> None:
    found = read("confluent-bin", tmp_path, b'{"a":1}\r\n\n{"b":2}\n', number=3, keys=("bin", b"x\ny\nz\n"))
    assert [(m.offset, m.key, m.value) for m in found] == [(3, b"x", b'{"a":1}'), (4, b"y", b""), (5, b"z", b'{"b":2}')]
