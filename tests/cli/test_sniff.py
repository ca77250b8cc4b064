"""sniff: a table for people, JSON for programs, exit codes, and commands that do what they promise."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.archives.objects import WRITERS, gzipped
from tests.archives.objects import Message as Record
from tests.cli.calls import Called, call
from tests.sniff.messages import Message, avro, encoded, of_every_protocol
from tidelake.cli.inspect import sink_options
from tidelake.config.feed import Feed
from tidelake.config.options import SinkOptions
from tidelake.demo.messages.encode_canal_json import CanalJsonEncoder

CANAL = encoded(CanalJsonEncoder())


def write(folder: Path, messages: list[Message], name: str = "messages.jsonl") -> Path:
    sides = [{"key": None if k is None else k.hex(), "value": None if v is None else v.hex()} for k, v in messages]
    (folder / name).write_text("".join(json.dumps({"topic": "t", "partition": 1, "offset": i} | m) + "\n" for i, m in enumerate(sides)))
    return folder / name


def document(done: Called) -> dict[str, Any]:
    assert done.err == ""
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_people_get_the_guess_its_evidence_and_what_to_do_next(tmp_path: Path) -> None:
    file = write(tmp_path, CANAL)
    done = call("sniff", file)
    lines = done.out.splitlines()
    assert (done.code, done.err, lines[0]) == (0, "", f"{file}: inspect lines, 5 messages")
    row = next(line for line in lines if line.startswith("│ canal-json"))
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "canal-json", "certain", "5 of 5", "one JSON object a message", "none", "enable_tidb_extension = true",
    ]  # fmt: skip
    assert lines[lines.index("evidence") + 1 :] == [
        "  value is a JSON object with `isDdl`, `mysqlType`, `pkNames`: Canal-JSON (5 messages, first t[1]@0)",
        "  `_tidb.commitTs` is present: the TiDB extension is on (4 messages, first t[1]@0)",
        "  `_tidb.watermarkTs` is present: the TiDB extension is on (t[1]@4)",
        "feed.toml",
        '  protocol = "canal-json"',
        "",
        "  [options]",
        "  enable_tidb_extension = true",
        "to see the events",
        f"  tidelake inspect --protocol canal-json --set enable_tidb_extension=true {file}",
    ]


def test_programs_get_json(tmp_path: Path) -> None:
    file = write(tmp_path, [*CANAL * 4, (None, b"{")])
    found = document(call("sniff", "--json", file))
    (guess,) = found.pop("guesses")
    assert found.pop("feed_toml")[0] == 'protocol = "canal-json"'
    assert found.pop("unrecognised")[0]["at"] == {"topic": "t", "partition": 1, "offset": 20}
    assert found == {
        "file": str(file),
        "container": "inspect lines",
        "messages": 21,
        "cut": None,
        "problem": None,
        "decided": True,
        "unrecognised_count": 1,
        "command": f"tidelake inspect --protocol canal-json --set enable_tidb_extension=true {file}",
    }
    assert guess.pop("evidence")[0]["messages"] == 20
    assert guess.pop("mismatches")[0]["says"].startswith("text; value begins with 7b, key with null")
    assert guess == {
        "protocol": "canal-json",
        "confidence": "likely",
        "framing": "one JSON object a message",
        "compression": "none",
        "options": {"enable_tidb_extension": True},
        "decoded": 20,
        "waiting_for_schema": 0,
        "seen": 20,
        "schema_ids": [],
        "misread_count": 1,
    }


def test_what_is_no_protocol_exits_with_three_and_shows_the_bytes(tmp_path: Path) -> None:
    file = write(tmp_path, [(b"k", b"hello\x1b[31m")])
    done = call("sniff", file)
    assert (done.code, done.err) == (3, "")
    assert done.out.splitlines()[1:] == [
        "no protocol of TiCDC or Canal",
        "messages",
        "  t[1]@0: bytes without a known mark; value begins with 68 65 6c 6c 6f 1b 5b 33 31 6d, key with 6b",
    ]
    assert call("sniff", write(tmp_path, [(None, CANAL[0][1] and CANAL[0][1][:-1])])).code == 3


def test_wrong_use_exits_with_two(tmp_path: Path) -> None:
    assert call("sniff", tmp_path / "nowhere").code == 2
    assert call("sniff", tmp_path).code == 2
    assert call("sniff", write(tmp_path, CANAL), "--limit", 0).code == 2
    assert call("sniff", write(tmp_path, CANAL), "--avro-schemas", tmp_path / "none.json").code == 2


def test_a_limit_is_told(tmp_path: Path) -> None:
    done = call("sniff", "--limit", 3, write(tmp_path, CANAL))
    assert done.out.splitlines()[0].endswith("inspect lines, 3 messages; only the first 3 messages were looked at")


def test_stdin_may_be_lines_an_archive_object_or_a_value(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    records = [Record(i, value, key) for i, (key, value) in enumerate(CANAL)]
    for content, container in (
        (write(tmp_path, CANAL).read_bytes(), "inspect lines"),
        (gzipped(WRITERS["aiven-jsonl"][0](records)), "aiven-jsonl"),
        (WRITERS["aiven-parquet"][0](records), "aiven-parquet"),
        (CANAL[0][1] or b"", "one bare value"),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        found = document(call("sniff", "--json", "-"))
        assert (found["container"], found["guesses"][0]["protocol"]) == (container, "canal-json")


@pytest.mark.parametrize("protocol", of_every_protocol())
def test_the_command_and_the_toml_that_are_told_are_right(tmp_path: Path, protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text(json.dumps(avro()[1]))
    file = write(tmp_path, of_every_protocol()[protocol])
    found = document(call("sniff", "--json", "--avro-schemas", "s.json", file))
    assert (found["guesses"][0]["protocol"], found["guesses"][0]["confidence"]) == (protocol, "certain")
    shell = subprocess.run(["bash", "-c", f"printf '%s\\0' {found['command']}"], check=True, capture_output=True, text=True)
    words = shell.stdout.split("\0")[:-1]
    assert words[:2] == ["tidelake", "inspect"]
    events = call(*words[1:])
    assert (events.code, events.err) == (0, "")
    assert [json.loads(line)["kind"] for line in events.out.splitlines()].count("rejected") == 0
    lines = tomllib.loads("\n".join(found["feed_toml"]))
    settings = [word for before, word in pairwise(words) if before == "--set"]
    assert SinkOptions(**lines.get("options", {})) == sink_options(settings)
    assert lines["protocol"] == protocol
    assert lines.keys() <= Feed.model_fields.keys()


def test_control_characters_in_settings_survive_the_shell(tmp_path: Path) -> None:
    file = write(tmp_path, [(None, b'"I"\t"t\'"\t"db"\t454930016746434001\t1\n')])
    command = document(call("sniff", "--json", file))["command"]
    assert command.startswith(
        "tidelake inspect --protocol csv --set $'delimiter=\\x09' --set $'terminator=\\x0a' --set include_commit_ts=true"
    )
    shell = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], check=True, capture_output=True, text=True)
    events = call(*shell.stdout.split("\0")[1:-1])
    assert [(e["table"], e["kind"]) for e in map(json.loads, events.out.splitlines())] == [("t'", "row")]


def test_messages_of_an_archive_object_are_written_for_inspect(tmp_path: Path) -> None:
    file, target = tmp_path / "cdc+3+00000000000000000007.gz", tmp_path / "out.jsonl"
    file.write_bytes(gzipped(WRITERS["aiven-jsonl"][0]([Record(7 + i, value, key) for i, (key, value) in enumerate(CANAL)])))
    plain = document(call("sniff", "--json", file))
    assert plain["command"].startswith(f"tidelake sniff {file} --lines messages.jsonl && tidelake inspect --protocol canal-json")
    assert plain["feed_toml"][-2:] == ["[source]", 'layout = "aiven-jsonl"']
    found = document(call("sniff", "--json", "--lines", target, file))
    events = call(*shlex.split(found["command"])[1:])
    assert [(e["topic"], e["partition"], e["offset"]) for e in map(json.loads, events.out.splitlines())] == [
        ("cdc", 3, 7 + i) for i in range(5)
    ]


def test_a_damaged_object_says_so(tmp_path: Path) -> None:
    file = tmp_path / "object.parquet"
    file.write_bytes(WRITERS["aiven-parquet"][0]([Record(0, b"x")])[:-1])
    done = call("sniff", file)
    assert (done.code, done.err) == (3, "")
    assert done.out.splitlines()[1].startswith("the rest cannot be read: the file: not readable as Parquet")
