"""Every vector of tests/data/vectors: as a file with others of the same options, and as the only message there is."""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from functools import cache
from typing import Any

import pytest

from tests.protocols import vectors
from tests.protocols.avro_messages import context
from tests.sniff.messages import batch
from tidelake.config.options import SinkOptions
from tidelake.sniff import CERTAIN, LIKELY, POSSIBLE, SniffVerdict, judge

SAID = (  # options that the bytes show; those of CSV are found together
    "large_message_handle_compression large_message_handle_option enable_tidb_extension content_compatible official_canal "
    "only_output_updated_columns avro_enable_watermark enable_row_checksum debezium_disable_schema delimiter quote terminator "
    "include_commit_ts output_old_value avro_decimal_handling_mode"
).split()
UNSEEN = {  # (protocol, option) that is on, but not in the bytes
    ("craft", "only_output_updated_columns"): "Craft ignores the option",
    ("canal-json", "large_message_handle_option"): "the content of a raw claim-check file is a message like any other",
    ("simple-json", "large_message_handle_option"): "likewise",
    ("simple-avro", "large_message_handle_option"): "likewise, and handle-key-only is a mark inside the record",
}
UNTOLD = {  # (protocol, option) that the bytes show, of hand-collected vectors that do not say their options
    ("open", "large_message_handle_option"),
    ("open", "only_output_updated_columns"),
    ("canal-json", "large_message_handle_option"),
    ("canal-json", "only_output_updated_columns"),
    ("debezium", "enable_tidb_extension"),
    ("debezium", "debezium_disable_schema"),
}
ALONE = {"watermark", "java-fixture-ddl_2", "java-fixture-row_2", "java-fixture-rts_2"}
EXPECTED = {  # of single messages: (protocol, guess, confidence) → how many
    ("open", "open", CERTAIN): 224,
    ("open", "open", LIKELY): 3,  # batches of no events: the version word alone
    ("craft", "craft", CERTAIN): 180,
    ("avro", "avro", CERTAIN): 109,
    ("avro", "avro", LIKELY): 13,  # deletes, whose value is null, and a made-up watermark of 1970
    ("canal-json", "canal-json", CERTAIN): 171,
    ("canal", "canal", CERTAIN): 27,
    ("debezium", "debezium", CERTAIN): 23,
    ("maxwell", "maxwell", CERTAIN): 21,
    ("csv", "csv", CERTAIN): 32,
    ("simple-json", "simple-json", CERTAIN): 50,
    ("simple-avro", "simple-avro", CERTAIN): 28,
}


def is_message(vector: dict[str, Any]) -> bool:
    return bool(vector["expected"]["type"] != "error")


@cache
def files() -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """Vectors with the same protocol, options and container; those of lines are their lines."""
    found = defaultdict(list)
    for protocol in vectors.PROTOCOLS:
        for vector in filter(is_message, vectors.load(protocol)):
            found[protocol, json.dumps(vector.get("options") or {}, sort_keys=True), vector.get("container", "")].append(vector)
    return dict(found)


def sent(vector: dict[str, Any]) -> list[tuple[bytes | None, bytes | None]]:
    key, value = vectors.record(vector)
    if vector.get("container") == "lines" and value is not None:
        return [(key, part) for part in value.split(bytes.fromhex(vector["terminator_hex"])) if part]
    return [(key, value)]


def judged(found: list[dict[str, Any]]) -> SniffVerdict:
    """The messages of these vectors as one file, with their Avro schemas."""
    schemas: dict[int | str, Any] = {}
    for vector in found:
        for side, payload in zip(("key", "value"), vectors.record(vector), strict=True):
            if payload and f"{side}_schema" in vector:
                schemas[vectors.schema_id(payload)] = vector[f"{side}_schema"]
    return judge([batch(message for vector in found for message in sent(vector))], context(schemas))


def test_a_file_of_each_protocol_and_options_is_recognised() -> None:
    for (protocol, options, container), found in files().items():
        verdict, name = judged(found), f"{protocol} {options} {container}"
        guess = verdict.guesses[0]
        assert (guess.protocol, guess.misread_count, guess.waiting) == (protocol, 0, 0), name
        alone = all(vector["value_hex"] is None for vector in found) or [v["name"] for v in found] == ["watermark", "ddl"]
        assert guess.confidence == (LIKELY if alone and protocol != "avro" else CERTAIN), name


def test_the_options_that_the_bytes_show_are_right() -> None:
    unseen, untold = set[tuple[str, str]](), set[tuple[str, str]]()
    for (protocol, options, _), found in files().items():
        true: dict[str, Any] = json.loads(options)
        said = SinkOptions.model_validate(judged(found).guesses[0].options).model_dump()
        for name in SAID:
            if name in true and said[name] != true[name]:
                unseen.add((protocol, name))
            elif name not in true and said[name] != getattr(SinkOptions(), name):
                untold.add((protocol, name))
    assert unseen == UNSEEN.keys()
    assert untold == UNTOLD


def test_single_messages_are_recognised_up_to_those_that_could_be_anything(capsys: pytest.CaptureFixture[str]) -> None:
    confusion, doubtful = Counter[tuple[str, str, str]](), list[str]()
    for protocol in vectors.PROTOCOLS:
        for vector in filter(is_message, vectors.load(protocol)):
            guess = judged([vector]).guesses[0]
            confusion[protocol, guess.protocol, guess.confidence] += 1
            if guess.confidence != CERTAIN:
                doubtful.append(vector["name"])
    table = [f"{protocol:<12} → {guessed:<12} {confidence:<8} {count:>4}" for (protocol, guessed, confidence), count in confusion.items()]
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(table) + "\n")
    assert dict(confusion) == EXPECTED
    assert all("delete" in name or "split" in name or name in ALONE for name in doubtful)


def test_no_broken_message_is_certain() -> None:
    broken = [(p, v) for p in vectors.PROTOCOLS for v in vectors.load(p) if not is_message(v)]
    told = Counter(g[0].confidence if (g := judged([v]).guesses) else "none" for _, v in broken)
    assert told == {POSSIBLE: 31, "none": 6}
