"""Keys and headers that lie beside the values."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.archives.objects import Message, confluent, confluent_nested, confluent_string, read
from tidelake.archives.shape import BATCH_BYTES
from tidelake.errors import ConfigError, OrderError

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
    with pytest.raises(ConfigError, match=r"headers of that format are not read; have them written as \.headers\.json"):
        read("confluent-json", tmp_path, confluent(VALUES), headers=("parquet", b"PAR1"))
