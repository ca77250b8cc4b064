"""docs/protocols.md says what is: its examples print exactly that, its options, codes and protocols are those of the code."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from tests.checkout import CHECKOUT
from tests.cli.calls import call
from tests.protocols.json_messages import decoded
from tests.sniff.messages import of_every_protocol
from tidelake.config.options import SinkOptions
from tidelake.errors import DECODE_CODES
from tidelake.protocols import Context, protocol_names

TEXT = (CHECKOUT / "docs" / "protocols.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
CAPITALS = re.compile(r"`([A-Z]+_[A-Z0-9_]+)`")


@dataclass
class Example:
    """A section's console block, and the files that stand before it."""

    title: str
    console: str
    files: dict[str, str] = field(default_factory=dict)


def sections() -> Iterator[tuple[str, str]]:
    for part in re.split(r"^## ", TEXT, flags=re.MULTILINE):
        title, _, body = part.partition("\n")
        yield title.lstrip("# "), body


def examples() -> list[Example]:
    found = []
    for title, body in sections():
        files: dict[str, str] = {}
        for fence in FENCE.finditer(body):
            language, _, name = fence["info"].partition(" ")
            if language == "console":
                found.append(Example(title, fence["body"], dict(files)))
            else:
                files[name] = fence["body"]
    return found


def table(title: str, first: str) -> list[list[str]]:
    """The cells of a section's table whose header begins with `first`, without the header."""
    body = dict(sections())[title]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines() if line.startswith("|")]
    assert rows[0][0] == first
    return rows[2:]


def name(cell: str) -> str:
    """What stands in a cell's first back quotes."""
    found = re.match("`([^`]+)`", cell)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("example", examples(), ids=lambda e: e.title.split(":")[0])
def test_an_example_prints_exactly_what_the_document_says(example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file, content in example.files.items():
        (tmp_path / file).write_text(content, encoding="utf-8")
    command, _, output = example.console.partition("\n")
    assert command.startswith("$ tidelake ")
    done = call(*shlex.split(command)[2:])
    assert (done.code, done.err) == (0, "")
    assert done.out == output
    assert '"rejected"' not in output


def test_every_protocol_has_an_example() -> None:
    shown = [re.search("--protocol (\\S+)", e.console) for e in examples()]
    assert {found[1] for found in shown if found} == set(protocol_names())
    assert len(examples()) == len(protocol_names()) + 3  # two of Canal-JSON, two of Debezium, and one of sniff


def test_the_overview_names_every_protocol_and_which_are_feeds() -> None:
    rows = table("At a glance", "protocol")
    assert list(dict.fromkeys(name(row[0]) for row in rows)) == [*OVERVIEW]
    assert {len(row) for row in rows} == {11}
    feeds = {name(row[0]) for row in rows if row[10] == "yes"}
    assert feeds == set(protocol_names())


OVERVIEW = ("open", "craft", "avro", "canal-json", "canal", "simple-json", "simple-avro", "debezium", "maxwell", "csv")


def test_the_overview_says_which_values_may_be_compressed() -> None:
    said = {name(row[0]) for row in table("At a glance", "protocol") if row[7] in ("whole value", "key and value")}
    context = Context(options=SinkOptions(large_message_handle_compression="lz4"))
    read = set()
    for protocol, messages in of_every_protocol().items():
        packed = [(key, pa.compress(value, "lz4", asbytes=True) if value else value) for key, value in messages]
        if not any(isinstance(outcome, str) for outcome in decoded(protocol, packed, context)):
            read.add(protocol)
    assert said == read


def test_the_options_are_those_of_the_code() -> None:
    rows = table("Options", "option")
    assert sorted(name(row[0]) for row in rows) == sorted(SinkOptions.model_fields)
    protocols = {protocol.strip() for row in rows for protocol in row[1].split(",")}
    assert protocols <= {*protocol_names(), "all"}


def test_options_that_examples_set_exist() -> None:
    settings = re.findall(r"--set (\w+)=", TEXT.replace("--set name=value", ""))
    assert settings
    assert set(settings) <= SinkOptions.model_fields.keys()


def test_the_error_codes_are_those_of_the_code() -> None:
    rows = table("When a message is rejected", "code")
    assert [name(row[0]) for row in rows] == list(DECODE_CODES)
    assert all(len(row) == 3 and all(row) for row in rows)
    assert set(CAPITALS.findall(TEXT)) <= DECODE_CODES.keys()
