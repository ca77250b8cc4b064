"""What a file is: inspect's lines, an archive object of any layout and codec, lines of bare values, one bare value; damaged ones, too."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.archives.objects import WRITERS, Message, gzipped, open_value
from tests.sniff.messages import encoded
from tidelake.demo.messages.encode_canal_json import CanalJsonEncoder
from tidelake.sniff import judge
from tidelake.sniff.containers import BARE, BARE_LINES, INSPECT, Found, recognised

RECORDS = encoded(CanalJsonEncoder())
MESSAGES = [Message(7 + i, value, key) for i, (key, value) in enumerate(RECORDS)]
LINES = b"".join(
    json.dumps({"key": k.hex() if k is not None else None, "value": (v or b"").hex(), "offset": 5}).encode() + b"\n" for k, v in RECORDS
)
CODECS = {"none": lambda content: content, "gzip": gzipped, "zstd": lambda content: pa.compress(content, "zstd", asbytes=True)}

PACKED = [name for name in WRITERS if "avro" in name or "parquet" in name or name in ("canonical", "secor")]  # with codecs of their own
BARELY = ("confluent-json-nested", "confluent-bin")  # whose content says no more than a file of values: told by their names
UNTOLD = ("confluent-bin-open",)  # of another protocol than the messages here
OBJECTS = [(name, c) for name in WRITERS for c in CODECS if (c == "none" or name not in PACKED) and name not in UNTOLD]
SOUND = [CODECS[codec](WRITERS[layout][0](MESSAGES)) for layout, codec in OBJECTS] + [LINES]


def found(folder: Path, content: bytes, name: str = "object", limit: int = 100) -> Found:
    path = folder / name
    path.write_bytes(content)
    return recognised(path, limit)


def messages(of: Found) -> list[tuple[str, int, int, bytes | None, bytes | None]]:
    rows = [row for batch in of.batches() for row in batch.to_pylist()]
    return [(r["topic"], r["partition"], r["offset"], r["key"], r["value"]) for r in rows]


@pytest.mark.parametrize(("layout", "codec"), OBJECTS)
def test_archive_objects_are_told_by_their_content(tmp_path: Path, layout: str, codec: str) -> None:
    write, extension = WRITERS[layout]
    of = found(tmp_path, CODECS[codec](write(MESSAGES)), f"t+0+00000000000000000007.{extension}")
    assert (of.container, of.layout) == (layout, layout)
    assert [(at, json.loads(value or b"")) for *at, _, value in messages(of)] == [
        (["t", 0, m.offset], json.loads(m.value or b"")) for m in MESSAGES
    ]
    assert {key for *_, key, _ in messages(of)} <= {None, b""}
    assert (of.cut, of.problem) == ("", "")
    verdict = judge(of.batches())
    assert (verdict.messages, verdict.guesses[0].protocol, verdict.guesses[0].confidence) == (5, "canal-json", "certain")


@pytest.mark.parametrize("layout", BARELY)
def test_bare_lines_without_an_archive_s_name_are_lines(tmp_path: Path, layout: str) -> None:
    write, extension = WRITERS[layout]
    of = found(tmp_path, write(MESSAGES), f"lines.{extension}")
    assert (of.container, of.layout, [at for *at, _, _ in messages(of)]) == (BARE_LINES, None, [["", 0, i] for i in range(5)])


@pytest.mark.parametrize("codec", CODECS)
def test_raw_records_of_open_protocol_are_told_by_their_lengths(tmp_path: Path, codec: str) -> None:
    values = [open_value(b'{"u":{}}', b"\n{}"), open_value(b""), open_value(b"{}")]
    content = CODECS[codec](b"".join(value + b"\n" for value in values))
    of = found(tmp_path, content, "t+0+0000000007.bin")
    assert (of.container, of.layout) == ("confluent-bin-open", "confluent-bin-open")
    assert messages(of) == [("t", 0, 7 + i, None, value) for i, value in enumerate(values)]
    assert found(tmp_path, values[0]).container == BARE  # one value, without the newline behind it


def test_base64_lines_may_be_empty(tmp_path: Path) -> None:
    of = found(tmp_path, b'""\n"e30="\n', "t+0+0000000007.json")
    assert (of.container, messages(of)) == ("confluent-json", [("t", 0, 7, None, b""), ("t", 0, 8, None, b"{}")])


@pytest.mark.parametrize("codec", CODECS)
def test_lines_for_inspect_keep_their_coordinates(tmp_path: Path, codec: str) -> None:
    of = found(tmp_path, CODECS[codec](LINES))
    assert (of.container, of.layout, of.compressed) == (INSPECT, None, codec != "none")
    assert messages(of) == [("", 0, 5, k, v) for k, v in RECORDS]


def test_json_values_one_a_line_are_messages(tmp_path: Path) -> None:
    of = found(tmp_path, b"\r\n".join(v or b"" for _, v in RECORDS) + b"\r\n")
    assert of.container == BARE_LINES
    assert messages(of) == [("", 0, i, None, v) for i, (_, v) in enumerate(RECORDS)]


@pytest.mark.parametrize(
    "value", [RECORDS[0][1], b"", b"\x01\x02", b"\x04\x22\x4d\x18", b'"I","t","db",1\r\n', b"{}", b"PAR", b"\x1f\x8b\x08"]
)
def test_anything_else_is_one_value(tmp_path: Path, value: bytes) -> None:
    of = found(tmp_path, value)
    assert of.container == BARE
    assert messages(of) == [("", 0, 0, None, value)]


def test_a_compressed_value_is_not_taken_for_a_compressed_file(tmp_path: Path) -> None:
    value = pa.compress(RECORDS[0][1], "lz4", asbytes=True)
    assert messages(found(tmp_path, value)) == [("", 0, 0, None, value)]


def test_no_more_messages_than_the_limit_are_read(tmp_path: Path) -> None:
    of = found(tmp_path, LINES * 1000, limit=700)
    assert len(messages(of)) == 700
    assert of.cut == "only the first 700 messages were looked at"


def test_what_precedes_damage_is_read_and_the_damage_is_told(tmp_path: Path) -> None:
    of = found(tmp_path, LINES * 200 + b'{"key": 5}\n', limit=9999)
    assert len(messages(of)) == 1000
    assert of.problem.startswith("line 1001 is not a line of `tidelake inspect`")
    cut = found(tmp_path, WRITERS["aiven-parquet"][0](MESSAGES)[:-9])
    assert (cut.container, messages(cut)) == ("aiven-parquet", [])
    assert "not readable as Parquet" in cut.problem


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_hostile_files_are_told_and_never_raise(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from(SOUND)))
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=6)):
        content[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    of = found(tmp_path, bytes(content[:cut]))
    assert all(len(row) == 5 for row in messages(of))


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=200),
    start=st.sampled_from([b"", b"PAR1", b"Obj\x01", b"\x1f\x8b", b"\x82SNAPPY\x00", b'{"key":"', b'"', b"[[[["]),
)
def test_any_bytes_are_some_file(tmp_path: Path, content: bytes, start: bytes) -> None:
    of = found(tmp_path, start + content)
    assert all(len(row) == 5 for row in messages(of))
