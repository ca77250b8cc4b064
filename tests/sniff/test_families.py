"""Each protocol is known by its own marks, and the options that the bytes show are said."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
import pytest

from tests.protocols import avro_messages, canal_messages, simple_messages, untyped_messages
from tests.protocols.json_messages import canal, column, open_key, open_message
from tests.protocols.simple_messages import compact
from tests.sniff.messages import (
    CHANGES,
    ORDERS,
    STATEMENT,
    TS,
    Message,
    avro,
    best,
    encoded,
    of_every_protocol,
    simple,
    texts,
    verdict,
)
from tidelake.demo.messages.encode_avro import AvroEncoder
from tidelake.demo.messages.encode_canal_json import CanalJsonEncoder
from tidelake.demo.messages.encode_open import OpenEncoder
from tidelake.demo.messages.model import SourceChange
from tidelake.protocols import protocol_names

OTHERS = [name for name in protocol_names() if name != "avro"]


def test_there_are_messages_of_every_protocol() -> None:
    assert sorted(of_every_protocol()) == sorted(protocol_names())


@pytest.mark.parametrize("protocol", OTHERS)
def test_messages_of_one_protocol_are_certainly_of_it(protocol: str) -> None:
    messages = of_every_protocol()[protocol]
    found = verdict(messages)
    assert [(g.protocol, g.confidence, g.decoded, g.misread_count) for g in found.guesses] == [(protocol, "certain", len(messages), 0)]
    assert (found.messages, found.unrecognised_count, found.decided) == (len(messages), 0, True)


@pytest.mark.parametrize("protocol", OTHERS)
def test_one_message_alone_is_enough(protocol: str) -> None:
    for message in of_every_protocol()[protocol]:
        assert (best([message]).protocol, best([message]).confidence) == (protocol, "certain")


# Avro


def test_avro_is_likely_without_its_schemas_and_says_which_are_needed() -> None:
    messages, _ = avro()
    guess = best(messages)
    assert (guess.protocol, guess.confidence, guess.decoded, guess.waiting) == ("avro", "likely", 0, 3)
    assert (guess.framing, guess.schema_ids, guess.options) == ("Confluent", (1, 2), {})
    assert "value begins with 0x00 and a 4-byte schema id (2), and so does the key" in texts(guess)


def test_avro_is_certain_with_its_schemas_which_say_the_extension_and_the_modes() -> None:
    messages, schemas = avro()
    guess = best(messages, schemas)
    assert (guess.confidence, guess.decoded, guess.waiting) == ("certain", 3, 0)
    assert guess.options == {"enable_tidb_extension": True}
    fields = [avro_messages.field("d", avro_messages.kind("string", "DECIMAL"), null=0), *avro_messages.EXTENSION, *avro_messages.CHECKSUM]
    more = best(messages, schemas | {2: avro_messages.schema(*fields)})
    assert more.options == {"enable_tidb_extension": True, "enable_row_checksum": True, "avro_decimal_handling_mode": "string"}


def test_a_tombstone_alone_is_no_proof() -> None:
    messages, schemas = avro()
    assert best(messages[2:]).confidence == "possible"
    assert best(messages[2:], schemas).confidence == "likely"
    assert "other protocols write the same" in texts(best(messages[2:]))


def test_glue_framing_is_told_by_its_uuid() -> None:
    uuid = "b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63"
    guess = best([(avro_messages.glue(uuid, b"\2"), avro_messages.glue(uuid, b"\2"))])
    assert (guess.protocol, guess.confidence, guess.framing, guess.schema_ids) == ("avro", "likely", "AWS Glue", (uuid,))


def test_avro_s_own_watermark_and_statement_show_their_options() -> None:
    encoder = AvroEncoder()
    for message in (encoder.resolved(TS), encoder.ddl(STATEMENT)):
        guess = best([message])
        assert (guess.protocol, guess.confidence) == ("avro", "certain")
        assert guess.options == {"avro_enable_watermark": True, "enable_tidb_extension": True}
    assert best([(None, b"\2" + (5).to_bytes(8, "big"))]).confidence == "likely"  # 5 is no TSO of our times


# compression and large messages


@pytest.mark.parametrize("method", ["snappy", "lz4"])
@pytest.mark.parametrize("protocol", ["canal-json", "simple-json", "simple-avro"])
def test_compression_of_the_whole_value_is_found(protocol: str, method: str) -> None:
    messages = [(k, pa.compress(v, method, asbytes=True)) for k, v in of_every_protocol()[protocol]]
    guess = best(messages)
    assert (guess.protocol, guess.confidence, guess.compression) == (protocol, "certain", method)
    assert guess.options["large_message_handle_compression"] == method
    assert {"snappy": "a raw snappy block: its declared size", "lz4": "04 22 4d 18: an LZ4 frame"}[method] in texts(guess)


@pytest.mark.parametrize("method", ["snappy", "lz4"])
def test_compression_inside_open_protocol_s_frames_is_found(method: str) -> None:
    key, value = OpenEncoder().rows([CHANGES[0]])
    inside = pa.compress((value or b"")[8:], method, asbytes=True)
    guess = best([(key, len(inside).to_bytes(8, "big") + inside)])
    assert (guess.protocol, guess.confidence, guess.compression) == ("open", "certain", method)


def test_a_debezium_envelope_is_compressed_with_its_key() -> None:
    key, value = untyped_messages.debezium("c", key={"id": 1}, after={"id": 1})
    sides = [pa.compress(side, "lz4", asbytes=True) for side in (key, value)]
    guess = best([(sides[0], sides[1])])
    assert (guess.protocol, guess.confidence, guess.compression) == ("debezium", "certain", "lz4")


@pytest.mark.parametrize("protocol", ["open", "canal-json", "simple-json", "simple-avro"])
def test_a_claim_check_file_is_looked_into(protocol: str) -> None:
    key, value = of_every_protocol()[protocol][1]
    file = {name: side and base64.b64encode(side).decode() for name, side in (("key", key or None), ("value", value))}
    guess = best([(None, compact(file))])
    assert (guess.protocol, guess.confidence, guess.options["large_message_handle_option"]) == (protocol, "certain", "claim-check")
    assert "the value is a claim-check file" in texts(guess)


def test_one_claim_check_file_among_other_large_messages_decides_the_option() -> None:
    marked = (None, compact(canal(_tidb={"commitTs": TS, "onlyHandleKey": True})))
    inside = base64.b64encode(compact(canal(_tidb={"commitTs": TS}))).decode()
    guess = best([marked, marked, (None, compact({"key": None, "value": inside}))])
    assert (guess.confidence, guess.options["large_message_handle_option"]) == ("certain", "claim-check")


def test_marks_of_large_messages_are_said() -> None:
    marked: list[tuple[Message, str]] = [
        (open_message((open_key(ohk=True), {"u": {"id": column(3, 1, 11, key=True)}})), "handle-key-only"),
        (open_message((open_key(ccl="s3://b/f.json"), {"u": {"id": column(3, 1, 11, key=True)}})), "claim-check"),
        ((None, compact(canal(_tidb={"commitTs": TS, "onlyHandleKey": True}))), "handle-key-only"),
        ((None, compact(canal(_tidb={"commitTs": TS, "claimCheckLocation": "f.json"}))), "claim-check"),
        (simple_messages.json_row(data={"id": "1"}, handleKeyOnly=True), "handle-key-only"),
    ]
    for message, option in marked:
        assert best([message]).options["large_message_handle_option"] == option


# flavours


def test_the_tidb_extension_of_canal_json_is_seen_and_its_absence_too() -> None:
    guess = best(encoded(CanalJsonEncoder()))
    assert guess.options == {"enable_tidb_extension": True}
    assert "`_tidb.commitTs` is present: the TiDB extension is on" in texts(guess)
    assert best([CanalJsonEncoder(tidb_extension=False).rows([CHANGES[0]], 0)]).options == {}


def test_full_types_are_content_compatible() -> None:
    guess = best([CanalJsonEncoder(content_compatible=True).rows([change], 0) for change in CHANGES])
    assert guess.options == {"enable_tidb_extension": True, "content_compatible": True}
    assert "`mysqlType` holds full types like `" in texts(guess)


def test_old_columns_that_are_fewer_show_only_updated_columns() -> None:
    update = canal("UPDATE", [{"id": "1", "v": "b"}], [{"v": "a"}], _tidb={"commitTs": TS})
    assert best([(None, compact(update))]).options == {"enable_tidb_extension": True, "only_output_updated_columns": True}
    row = {"id": column(3, 1, 11, key=True), "v": column(15, "b", 64)}
    assert best([open_message((open_key(TS), {"u": row, "p": {"v": row["v"]}}))]).options == {"only_output_updated_columns": True}


@pytest.mark.parametrize("flat", [canal(id=7), canal(data=[{"id": "1", "v": "x"}, {"id": "2", "v": "y"}])], ids=["id", "rows"])
def test_flat_messages_of_alibaba_canal_are_told_from_ticdc_s(flat: dict[str, Any]) -> None:
    guess = best([(None, compact(flat))])
    assert (guess.protocol, guess.confidence, guess.options) == ("canal-json", "certain", {"official_canal": True})
    assert "a flat message of Alibaba Canal itself" in texts(guess)


def test_full_types_in_canal_protobuf_are_seen() -> None:
    full = canal_messages.packet(canal_messages.insert(canal_messages.Column("id", "int(11)", "1", key=True)))
    assert best([(None, full)]).options == {"content_compatible": True}


def test_debezium_says_whether_it_has_a_schema_and_the_extension() -> None:
    schema = untyped_messages.schema(untyped_messages.field("id", "int", type="int32"))
    with_schema = best([untyped_messages.debezium("c", schema, after={"id": 1})])
    assert with_schema.options == {"enable_tidb_extension": True}
    assert best([untyped_messages.debezium("c", after={"id": 1})]).options == {"debezium_disable_schema": True}
    watermark = best([untyped_messages.debezium("m", db="", table="")])
    assert watermark.options == {"debezium_disable_schema": True, "enable_tidb_extension": True}
    bare = best([untyped_messages.debezium("u", after={"id": 1})])
    assert bare.options == {"debezium_disable_schema": True, "debezium_output_old_value": False}


def test_row_checksums_of_simple_are_seen() -> None:
    checksum = {"version": 0, "corrupted": False, "current": 1, "previous": 0}
    assert best([simple_messages.json_row(data={"id": "1"}, checksum=checksum)]).options == {"enable_row_checksum": True}


@pytest.mark.parametrize(
    ("lines", "options"),
    [
        (b'"I","t","db",454930016746434001,1,"x"\r\n', {"include_commit_ts": True}),
        (b'"I","t","db",1,"x"\n', {"terminator": "\n"}),
        (
            b"I|t|db|454930016746434001|false|1|NULL\n",
            {"delimiter": "|", "quote": "", "null": "NULL", "terminator": "\n", "include_commit_ts": True, "output_old_value": True},
        ),
        (b"'D'[*]'t'[*]'db'[*]\\N\n", {"delimiter": "[*]", "quote": "'", "terminator": "\n"}),
        (b'"I"\t"t"\t"db"\t5\r\n', {"delimiter": "\t"}),
        (b'ticdc-meta$operation,ticdc-meta$table,ticdc-meta$schema,id\r\nI,t,db,5\r\n', {"quote": "", "output_field_header": True}),
    ],
)  # fmt: skip
def test_the_separators_and_leading_fields_of_csv_are_found(lines: bytes, options: dict[str, Any]) -> None:
    guess = best([(None, lines)])
    assert (guess.protocol, guess.confidence) == ("csv", "certain")
    assert guess.options == options


# broken ones, several, none


@pytest.mark.parametrize("protocol", ["open", "craft", "canal", "canal-json", "debezium", "simple-json"])
def test_a_message_that_is_cut_short_is_possible_and_says_why(protocol: str) -> None:
    key, value = of_every_protocol()[protocol][0]
    guess = best([(key, (value or b"")[:-3])])
    assert (guess.protocol, guess.confidence, guess.decoded, guess.misread_count) == (protocol, "possible", 0, 1)
    assert guess.mismatches[0].says.split(":")[0] in ("TRUNCATED", "BAD_LENGTH", "BAD_STRUCTURE", "BAD_JSON")


def test_a_batch_of_no_events_is_likely_open_protocol() -> None:
    guess = best([((1).to_bytes(8, "big"), b"")])
    assert (guess.protocol, guess.confidence, guess.decoded) == ("open", "likely", 1)


def test_in_a_mixed_file_the_best_guess_tells_what_the_others_look_like() -> None:
    rows = [OpenEncoder().rows([SourceChange(ORDERS, TS + i, "insert", None, (i, "x"), i)]) for i in range(20)]
    found = verdict([*rows, (None, b'{"a":1}'), encoded(CanalJsonEncoder())[0]])
    first, second = found.guesses
    assert (first.protocol, first.confidence, first.decoded, first.misread_count) == ("open", "likely", 20, 2)
    assert [(m.at.offset, m.says.split(";")[0].split(":")[0]) for m in first.mismatches] == [
        (120, "a JSON object with the members a"),
        (121, "looks like canal-json"),
    ]
    assert (second.protocol, second.confidence, second.decoded) == ("canal-json", "possible", 1)
    assert (found.messages, found.unrecognised_count, found.unrecognised[0].at.offset) == (22, 1, 120)


def test_what_two_protocols_explain_equally_well_is_not_certain() -> None:
    _, value = untyped_messages.debezium("m", db="", table="")
    both = json.loads(value or b"") | {"version": 1, "type": "WATERMARK", "commitTs": TS, "buildTs": 5}
    found = verdict([(None, compact(both))])
    assert [(g.protocol, g.confidence, g.decoded) for g in found.guesses] == [("debezium", "likely", 1), ("simple-json", "likely", 1)]


def test_half_and_half_is_undecided() -> None:
    found = verdict([*encoded(OpenEncoder()), *encoded(CanalJsonEncoder())])
    assert {g.confidence for g in found.guesses} == {"possible"}
    assert not found.decided


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        (None, b"hello", "text; value begins with 68 65 6c 6c 6f, key with null"),
        (b"k", b"\xfe\xff\x00\x9c", "bytes without a known mark; value begins with fe ff 00 9c, key with 6b"),
        (None, b"", "an empty value; value begins with no bytes, key with null"),
        (None, b'{"id":1,"x":2}', "a JSON object with the members id, x; value begins with 7b 22 69 64"),
        (b"k", None, "null value, key 6b"),
        (None, b'{"payload":{"source":{"connector":"postgresql"},"op":"c"}}', "a Debezium envelope of connector 'postgresql', not of"),
        (None, b'{"TableColumns":[],"TableVersion":1}', "a schema file of TiCDC's storage sink"),
        (None, b"PAR1....", "a Parquet file"),
    ],
)
def test_what_is_no_protocol_is_described_with_its_first_bytes(key: bytes | None, value: bytes | None, says: str) -> None:
    found = verdict([(key, value)])
    assert (found.guesses, found.decided, found.unrecognised_count) == ((), False, 1)
    assert found.unrecognised[0].says.startswith(says)


def test_evidence_is_counted_over_messages_and_names_the_first() -> None:
    guess = best(simple("simple-json"))
    assert [(e.messages, str(e.first)) for e in guess.evidence] == [(2, "t[3]@100")]
    assert json.loads(simple("simple-json")[0][1] or b"")["type"] == "BOOTSTRAP"


def test_no_messages_are_no_protocol() -> None:
    found = verdict([])
    assert (found.messages, found.guesses, found.decided) == (0, (), False)
