"""The fast path of Aiven's lines gives what the reader that knows all of JSON gives, or nothing."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.archives.objects import Message, jsonl
from tidelake.archives.readers import aiven_records
from tidelake.archives.readers.layout import SourceObject
from tidelake.archives.readers.lines import Block
from tidelake.archives.scan import aiven_lines
from tidelake.errors import TidelakeError
from tidelake.history.event import HEADERS

SOURCE = SourceObject("t", 0, "t+0+0.jsonl", 0, 1, "etag")
RECORD = b'{"key":"QQ==","value":"QUI=","offset":7,"timestamp":"2024-02-29T23:59:59.007Z","headers":[]}'
MS = int(datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC).timestamp()) * 1000 + 7

stamps = st.none() | st.integers(0, 253_402_300_799_999)
texts = st.none() | st.binary(max_size=9)
headers = st.none() | st.just([])
plain = st.builds(Message, st.integers(0, 10**18 - 1), texts, texts, stamps, headers)


def slow(data: bytes, monkeypatch: pytest.MonkeyPatch) -> pa.RecordBatch | str:
    """What the other reader gives, or its error."""
    with monkeypatch.context() as patched:
        patched.setattr(aiven_lines, "records", lambda *_: None)
        try:
            return aiven_records.batch_of(aiven_records.BASE64, Block(data, 1), SOURCE)
        except TidelakeError as e:
            return str(e)


def fast(data: bytes) -> aiven_lines.Records | None:
    return aiven_lines.records(data, data.count(b"\n") + 1)


@given(st.lists(plain, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_what_the_connector_writes_of_messages_without_headers_is_read_alike(messages: list[Message], random: object) -> None:
    lines = []
    for line in jsonl(messages).split(b"\n"):
        members = list(json.loads(line).items())
        random.shuffle(members)  # type: ignore[attr-defined]
        lines.append(json.dumps(dict(members), separators=(",", ":")).encode())
    data = b"\n".join(lines)
    found = fast(data)
    assert found is not None
    with pytest.MonkeyPatch.context() as patched:
        expected = slow(data, patched)
    assert isinstance(expected, pa.RecordBatch)
    for name in ("offset", "timestamp_ms", "key", "value", "headers"):
        column = getattr(found, name)
        column.validate(full=True)
        assert column.equals(expected.column(name)), name


@pytest.mark.parametrize(
    "line",
    [
        RECORD,
        RECORD.replace(b",", b", ").replace(b'":', b'": '),
        RECORD.replace(b',"headers":[]', b""),
        RECORD.replace(b'"QQ=="', b"null"),
        RECORD.replace(b".007Z", b"Z"),
        b'{"value":null,"offset":0}',
        b'{"value":"","offset":999999999999999999}',
    ],
)
def test_every_form_that_the_connector_has_goes_the_fast_way(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    found, expected = fast(line + b"\n" + line), slow(line + b"\n" + line, monkeypatch)
    assert found is not None
    assert isinstance(expected, pa.RecordBatch)
    assert [getattr(found, n).to_pylist() for n in MEMBERS] == [expected.column(n).to_pylist() for n in MEMBERS]


MEMBERS = ("offset", "timestamp_ms", "key", "value", "headers")


def test_values_and_their_times_are_exact() -> None:
    found = fast(RECORD)
    assert found is not None
    assert (found.offset[0].as_py(), found.timestamp_ms[0].as_py(), found.key[0].as_py(), found.value[0].as_py()) == (7, MS, b"A", b"AB")
    assert found.headers.type == HEADERS


@pytest.mark.parametrize(
    "spoiled",
    [
        RECORD[:-1],
        RECORD + b" ",
        RECORD + b"\r",
        RECORD + b"\n",
        b"\n" + RECORD,
        b"[]",
        b"",
        RECORD.replace(b'"QQ=="', b'"Q\\u0051=="'),
        RECORD.replace(b'"QQ=="', b'"QQ="'),
        RECORD.replace(b'"QQ=="', b'"Q==="'),
        RECORD.replace(b'"QQ=="', b'"QQ==QQ=="'),
        RECORD.replace(b'"QQ=="', b'"*A=="'),
        RECORD.replace(b'"QQ=="', b"nulL"),
        RECORD.replace(b'"QQ=="', b"7"),
        RECORD.replace(b'"QQ=="', b'"QQ=='),
        RECORD.replace(b":7,", b":07,"),
        RECORD.replace(b":7,", b":-7,"),
        RECORD.replace(b":7,", b":7.0,"),
        RECORD.replace(b":7,", b":null,"),
        RECORD.replace(b":7,", b":1000000000000000000,"),
        RECORD.replace(b"[]", b'[{"key":"k","value":"QQ=="}]'),
        RECORD.replace(b'"key"', b'"keys"'),
        RECORD.replace(b'"key"', b'"value"'),
        RECORD.replace(b'"key"', b'"other"'),
        RECORD.replace(b'"offset":7,', b""),
        RECORD.replace(b'"value":"QUI=",', b""),
        RECORD.replace(b"02-29", b"02-30"),
        RECORD.replace(b"2024-02", b"2023-02"),
        RECORD.replace(b"23:59:59", b"24:00:00"),
        RECORD.replace(b".007Z", b".07Z"),
        RECORD.replace(b".007Z", b"+00:00"),
        RECORD.replace(b"2024", b"1969"),
    ],
)
def test_anything_else_is_left_to_the_other_reader(spoiled: bytes) -> None:
    assert fast(spoiled) is None


def test_no_damage_is_read_otherwise_than_by_the_other_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte of a record replaced by every kind of byte that means something, and every record cut short."""
    taken = 0
    for at in range(len(RECORD)):
        for other in b'"\\,:{}[]0aA=/ n\x00\xff':
            data = RECORD[:at] + bytes([other]) + RECORD[at + 1 :]
            found = fast(data)
            if found is not None:
                taken += 1
                expected = slow(data, monkeypatch)
                assert isinstance(expected, pa.RecordBatch), (data, expected)
                assert [getattr(found, n).to_pylist() for n in MEMBERS] == [expected.column(n).to_pylist() for n in MEMBERS], data
        assert fast(RECORD[:at]) is None
    assert taken > 50


def test_records_of_many_sizes_lie_one_behind_the_other() -> None:
    values = [bytes([i % 251]) * (i * 37 % 900) for i in range(300)]
    data = b"\n".join(b'{"offset":%d,"value":"%b"}' % (i, b64encode(value)) for i, value in enumerate(values))
    found = fast(data)
    assert found is not None
    assert found.value.to_pylist() == values
    assert found.key.null_count == found.headers.null_count == found.timestamp_ms.null_count == 300
