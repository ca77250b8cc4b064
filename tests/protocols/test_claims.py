"""Rows in claim-check files (docs/reference/protocols.md 1.5): a message and its file give the row's events, or an error that says why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.protocols import both_paths, vectors
from tests.protocols.claim_messages import LOCATION, STUB, envelope, row
from tests.protocols.json_messages import canal, column, compact, open_key, open_message
from tests.protocols.simple_messages import Message, text
from tidelake.config.options import SinkOptions
from tidelake.errors import StorageError
from tidelake.history.event import Event
from tidelake.protocols import Context
from tidelake.protocols.claim_files import claim_files

CLAIM = SinkOptions(large_message_handle_option="claim-check")
FILES = [
    pytest.param(v, id=f"{p}:{v['name']}")
    for p in vectors.PROTOCOLS
    for v in vectors.load(p)
    if v.get("container", "")[:11] == "claim-check"
]


def decoded(protocol: str, stub: Message, context: Context, folder: Path | None) -> list[Event]:
    """The events of the message beside another, with the files of the folder."""
    context = replace(context, claim_file=claim_files(str(folder)) if folder else None, memory=dict(context.memory))
    return both_paths.decoded(protocol, [stub, stub], context)[1]


# vectors


def stub_of(file: dict[str, Any]) -> Message:
    """The message that names the vector's file: only those of Open are among the vectors. Of the others the message of the same row
    with its handle alone, which differs in saying so in place of the location."""
    ours = vectors.load(file["protocol"])
    name = "claim-check-insert" if file["name"] == "claim-check-file" else file["name"].removesuffix("/file")
    for v in ours:
        if v["name"] == name:
            return vectors.record(v)
    key, value = vectors.record(next(v for v in ours if v["name"] == f"{file['case']}@handle-key-only-none"))
    assert value is not None
    quoted = LOCATION.encode()
    old, new = {
        "canal-json": (b'"onlyHandleKey":true', b'"claimCheckLocation":"%s"' % quoted),
        "simple-json": (b'"handleKeyOnly":true', b'"claimCheckLocation":"%s","handleKeyOnly":true' % quoted),
        "simple-avro": (b"\x0d\0\2\1", b"\x0d\2" + text(LOCATION) + b"\2\1"),
    }[file["protocol"]]
    assert value.count(old) == 1
    return key, value.replace(old, new)


def test_every_file_among_the_vectors_is_tried() -> None:
    protocols = [p.values[0]["protocol"] for p in FILES]
    assert {p: protocols.count(p) for p in protocols} == {"open": 7, "canal-json": 4, "simple-json": 2, "simple-avro": 2}


@pytest.mark.parametrize("file", FILES)
def test_a_message_and_its_file_give_the_file_s_events(file: dict[str, Any], tmp_path: Path) -> None:
    context, stub = vectors.context(file), stub_of(file)
    named = decoded(file["protocol"], stub, context, None)
    assert [e.claim_check is None for e in named] == [False]
    (tmp_path / str(named[0].claim_check).rpartition("/")[2]).write_bytes(bytes.fromhex(file["value_hex"]))
    events, want = decoded(file["protocol"], stub, context, tmp_path), vectors.expected(file)
    assert [(e.kind, e.handle_only, e.claim_check) for e in events] == [("row", False, None)] * len(want)
    assert vectors.same([vectors.plain(e, w) for e, w in zip(events, want, strict=True)], want)


# by hand


def outcome(stub: Message, files: dict[str, bytes], folder: Path, **context: Any) -> Event:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (event,) = decoded("open", stub, Context(options=CLAIM, **context), folder)
    return event


def test_a_file_is_found_by_the_last_part_of_its_location_alone(tmp_path: Path) -> None:
    event = outcome(STUB, {"d2f1.json": envelope(row())}, tmp_path)
    assert (event.op, event.after, event.before, event.claim_check) == ("update", [b"1", b"long"], [b"1", b"long"], None)
    assert outcome(row(value=None, ccl="d2f1.json"), {}, tmp_path).after == [b"1", b"long"]


def test_a_file_that_is_not_there_is_told_with_its_name_and_the_storage(tmp_path: Path) -> None:
    event = outcome(STUB, {"other.json": envelope(row())}, tmp_path)
    assert (event.error_code, event.error) == ("CLAIM_CHECK", f"the claim-check file d2f1.json is not in {tmp_path}")
    assert (event.raw_key, event.raw_value) == STUB


NAMELESS = ["s3://b/..", "s3://b/.", "s3://b/", "..\\d2f1.json", "s3://b/a\0", "s3://b/" + "x" * 256]


@pytest.mark.parametrize("location", NAMELESS)
def test_a_location_without_the_name_of_a_file_opens_nothing(tmp_path: Path, location: str) -> None:
    event = outcome(row(value=None, ccl=location), {}, tmp_path)
    assert (event.error_code, "ends in no plain file name" in str(event.error)) == ("CLAIM_CHECK", True)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    event = outcome(row(value=None, ccl="s3://b/folder"), {}, tmp_path)
    assert (event.error_code, event.error) == ("CLAIM_CHECK", f"the claim-check file folder is not in {tmp_path}")


def test_a_name_leads_out_of_the_storage_in_no_way(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "d2f1.json").write_bytes(envelope(row()))
    for location in ("../d2f1.json", f"{tmp_path}/d2f1.json"):
        assert outcome(row(value=None, ccl=location), {}, tmp_path / "in").error_code == "CLAIM_CHECK"


def test_a_file_above_the_cap_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = envelope(row(value="x" * 600))
    assert outcome(STUB, {"d2f1.json": file}, tmp_path, max_bytes=len(file)).kind == "row"
    monkeypatch.delattr("tidelake.io.storage.Store.read")
    event = outcome(STUB, {}, tmp_path, max_bytes=len(file) - 1)
    said = f"the claim-check file d2f1.json in {tmp_path} has {len(file)} bytes, the cap is {len(file) - 1}"
    assert (event.error_code, event.error) == ("TOO_LARGE", said)


WRONG = {
    "another table": (row(tbl="u"), "holds update of db.u at 7 (id '1'), the message announces update of db.t at 7 (id '1')"),
    "another database": (row(scm="e"), "holds update of e.t at 7"),
    "another commit ts": (row(ts=8), "holds update of db.t at 8"),
    "another row": (row(2), "holds update of db.t at 7 (id '2')"),
    "a row of other columns": (open_message((open_key(), {"u": {"v": column(15, "x")}})), "(id NULL)"),
    "a delete": (open_message((open_key(), {"d": {"id": column(3, 1, 11, key=True)}})), "holds delete of db.t"),
    "another former row": (
        open_message((open_key(), {"u": {"id": column(3, 1, 11)}, "p": {"id": column(3, 2, 11)}})),
        "holds update of db.t",
    ),
    "two rows": (open_message(*[(open_key(), {"u": {"id": column(3, 1, 11)}})] * 2), "holds 2 events, the message 1"),
    "a resolved ts": (open_message(({"ts": 7, "t": 3}, None)), "holds a resolved, expected a complete row"),
    "a message that names a file": (STUB, "holds a row without its columns"),
    "a handle": (row(value=None, ohk=True), "holds a row without its columns"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_of_something_else_is_refused_and_both_are_said(name: str, tmp_path: Path) -> None:
    content, said = WRONG[name]
    event = outcome(STUB, {"d2f1.json": envelope(content)}, tmp_path)
    assert (event.error_code, said in str(event.error), "d2f1.json" in str(event.error)) == ("BAD_STRUCTURE", True, True), event.error
    assert (event.raw_key, event.raw_value) == STUB


BROKEN = [(b"", "BAD_STRUCTURE"), (b"\0" * 7, "TRUNCATED"), (b'{"key":"', "BAD_JSON"), (b'{"key":null,"value":null}', "NULL_VALUE")]


@pytest.mark.parametrize(("content", "code"), BROKEN)
def test_a_broken_file_has_its_error_with_its_name(content: bytes, code: str, tmp_path: Path) -> None:
    event = outcome(STUB, {"d2f1.json": content}, tmp_path)
    assert event.error_code == code
    assert str(event.error).startswith("the claim-check file d2f1.json: ")


def test_a_message_of_several_files_or_of_other_rows_beside_is_refused(tmp_path: Path) -> None:
    cells = {"u": {"id": column(3, 1, 11, key=True)}}
    files = {"a.json": envelope(row()), "b.json": envelope(row())}
    for keys in ((open_key(ccl="a.json"), open_key(ccl="b.json")), (open_key(ccl="a.json"), open_key())):
        event = outcome(open_message(*((k, cells) for k in keys)), files, tmp_path)
        assert (event.error_code, "one of all" in str(event.error)) == ("BAD_STRUCTURE", True)


def test_a_message_of_several_rows_takes_a_file_of_as_many(tmp_path: Path) -> None:
    about = {"enable_tidb_extension": True, "large_message_handle_option": "claim-check"}
    ids, values = [{"id": "1"}, {"id": "2"}], [{"id": "1", "v": "x"}, {"id": "2", "v": "y"}]
    stub = (b"", compact(canal(data=ids, _tidb={"commitTs": 5, "claimCheckLocation": LOCATION})))
    (tmp_path / "d2f1.json").write_bytes(compact(canal(data=values, _tidb={"commitTs": 5})))
    events = decoded("canal-json", stub, Context(options=SinkOptions(**about)), tmp_path)
    assert [e.after for e in events] == [[b"1", b"x"], [b"2", b"y"]]


def test_without_files_at_hand_the_row_is_given_with_its_handle_and_location() -> None:
    (event,) = decoded("open", STUB, Context(options=CLAIM), None)
    assert (event.after, event.claim_check) == ([b"1"], LOCATION)


def test_a_storage_that_cannot_be_asked_fails_the_run_and_not_the_message(tmp_path: Path) -> None:
    (tmp_path / "d2f1.json").write_bytes(envelope(row()))

    def down(location: str, cap: int) -> bytes:
        raise StorageError("down")

    with pytest.raises(StorageError):
        both_paths.decoded("open", [STUB], Context(options=CLAIM, claim_file=down))
