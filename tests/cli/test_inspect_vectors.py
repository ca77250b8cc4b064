"""Every vector of tests/data/vectors, as `tidelake inspect` prints its events: the exact members, words and texts."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest

from tests.cli.calls import call
from tests.protocols import untyped, vectors
from tidelake.errors import DECODE_CODES

MEMBERS = (
    "topic partition offset ordinal kind op commit_ts database table physical_table_id columns old_columns handle_only claim_check "
    "ddl ddl_type error_code error"
).split()
ALL = [pytest.param(v, id=f"{p}:{v['name']}") for p in vectors.PROTOCOLS for v in vectors.load(p)]


def test_the_vectors_are_there() -> None:
    assert len(ALL) > 700


@pytest.mark.parametrize("vector", ALL)
def test_inspect_prints_what_the_vector_says(vector: dict[str, Any]) -> None:
    events = printed(vector["protocol"], settings(vector), schemas(vector))[vector["name"]]
    assert all(list(e) == MEMBERS for e in events)
    if vector["expected"]["type"] == "error":
        assert [(e["kind"], e["ordinal"]) for e in events] == [("rejected", 0)]
        assert events[0]["error_code"] in DECODE_CODES
        assert events[0]["error"]
        return
    want = [without_keys(e) for e in vectors.expected(vector)]
    got = [plain(e, like) for e, like in zip(events, want, strict=True)]
    assert vectors.same(got, want), f"\ngot  {got}\nwant {want}"
    for event, wanted in zip(events, vector["expected"].get("events", [vector["expected"]]), strict=True):
        check_form(event)
        check_types(event, wanted, vector["protocol"])


@cache
def printed(protocol: str, options: tuple[str, ...], known: str) -> dict[str, list[dict[str, Any]]]:
    """The events of every vector with these options and schemas, by its name; one call decodes the messages of all of them."""
    alike = [v for v in vectors.load(protocol) if (settings(v), schemas(v)) == (options, known)]
    messages = [(name, m) for v in alike for name, m in [*(("", m) for m in schema_messages(v)), *((v["name"], m) for m in sent(v))]]
    with TemporaryDirectory() as folder:
        file, of_ids = Path(folder) / "messages.jsonl", Path(folder) / "schemas.json"
        file.write_text("".join(json.dumps({"topic": "t", "partition": 3, "offset": i} | m) + "\n" for i, (_, m) in enumerate(messages)))
        of_ids.write_text(known)
        tables = ["--table-schemas", Path(folder)] if untyped.write(protocol, Path(folder)) else []
        done = call("inspect", "--protocol", protocol, *options, *(["--avro-schemas", of_ids] if known else []), *tables, file)
    assert (done.code, done.err) == (0, "")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [e["offset"] for e in events] == sorted(e["offset"] for e in events)
    assert {(e["topic"], e["partition"]) for e in events} == {("t", 3)}
    out: dict[str, list[dict[str, Any]]] = {name: [] for name in ("", *(v["name"] for v in alike))}
    for e in events:
        out[messages[e["offset"]][0]].append(e)
    return out


def sent(vector: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of the vector's file: one message, or one a line where the vector is a file of lines."""
    key, value = vectors.record(vector)
    parts: list[bytes | None] = [value]
    if vector.get("container") == "lines" and value is not None:
        parts = list(filter(None, value.split(bytes.fromhex(vector["terminator_hex"]))))
    return [{"key": None if key is None else key.hex(), "value": None if part is None else part.hex()} for part in parts]


def schema_messages(vector: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines before it, where a row needs them; compressed as all of the feed."""
    method = (vector.get("options") or {}).get("large_message_handle_compression", "none")
    values = [value or b"" for _, value in vectors.before(vector)]
    return [{"key": None, "value": (v if method == "none" else pa.compress(v, method, asbytes=True)).hex()} for v in values]


def settings(vector: dict[str, Any]) -> tuple[str, ...]:
    options = dict(vector.get("options") or {})
    if vector.get("container", "").startswith("claim-check"):
        options = {"large_message_handle_option": "claim-check"} | options
    return tuple(part for k, v in options.items() for part in ("--set", f"{k}={str(v).lower() if isinstance(v, bool) else v}"))


def schemas(vector: dict[str, Any]) -> str:
    """The file for --avro-schemas; empty without any."""
    sides = zip(("key", "value"), vectors.record(vector), strict=True)
    known = {str(vectors.schema_id(p)): json.dumps(vector[f"{s}_schema"]) for s, p in sides if p and f"{s}_schema" in vector}
    return json.dumps(known) if known else ""


def without_keys(event: dict[str, Any]) -> dict[str, Any]:
    """inspect does not tell key columns."""
    sides = {side: [(name, None, cell) for name, _, cell in event[side]] for side in ("columns", "old_columns") if event.get(side)}
    return event | sides


def plain(event: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    """A printed event in the vectors' plain form."""
    members = event | {"database": event["database"] or "", "table": event["table"] or ""}
    members |= {side: [(c["name"], None, cell(c)) for c in event[side] or ()] for side in ("columns", "old_columns")}
    return {name: members[name] for name in like}


def cell(column: dict[str, Any]) -> Any:
    value = column["value"]
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"])
    if value is not None and (column["type"] or "").split(" ")[0] in ("float", "double"):
        return "NaN" if value.lower() == "nan" else float(value)
    return None if value is None else value.encode()


def check_form(event: dict[str, Any]) -> None:
    """What holds for every event that was decoded."""
    assert event["error_code"] is event["error"] is None
    assert event["kind"] in ("row", "ddl", "resolved", "bootstrap")
    assert event["commit_ts"] is None or type(event["commit_ts"]) is int
    assert type(event["handle_only"]) is bool
    for side in ("columns", "old_columns"):
        assert event[side] is None or event["kind"] == "row"
        for c in event[side] or ():
            assert list(c) == ["name", "type", "value"]
            assert c["type"] is None or re.fullmatch("[a-z]+( unsigned)?", c["type"])
            if re.search("binary|blob", c["type"] or ""):
                assert c["value"] is None or (list(c["value"]) == ["hex"] and re.fullmatch("([0-9a-f]{2})*", c["value"]["hex"]))
            else:
                assert c["value"] is None or isinstance(c["value"], str) or list(c["value"]) == ["hex"]


def check_types(event: dict[str, Any], wanted: dict[str, Any], protocol: str) -> None:
    """Canal says MySQL's types itself; what a code and its flags mean in Open Protocol and Craft is what Canal says of the same column."""
    for side in ("columns", "old_columns"):
        by_name = {c["name"]: c for c in wanted.get(side) or ()}
        for c in event[side] or ():
            known = by_name.get(c["name"], {})
            if protocol in ("canal-json", "canal") and "mysql_type" in known:
                assert c["type"] == word(known["mysql_type"])
            elif protocol not in ("avro", "canal-json") and "flag" in known:
                assert c["type"] == of_codes().get(code(known), c["type"])


def word(mysql_type: str) -> str:
    return re.sub(r"\(.*\)| zerofill", "", mysql_type)


def code(column: dict[str, Any]) -> tuple[int, int, int]:
    return column["type"], column["flag"] & 0x80, column["flag"] & 1


@cache
def of_codes() -> dict[tuple[int, int, int], str]:
    encoded = [v for v in vectors.load("canal-json") if "case" in v]
    events = [e for v in encoded for e in v["expected"].get("events", [v["expected"]])]
    return {code(c): word(c["mysql_type"]) for e in events for c in e.get("columns") or () if "flag" in c}
