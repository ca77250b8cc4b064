"""What a real connector sent of a known row, in several of its modes: the events say what the server says (tests/upstream/record.py)."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.data_files import data_bytes
from tests.protocols.both_paths import Message, both
from tests.sniff.messages import verdict
from tests.tidb.present import mysql_type
from tests.upstream.record import BINARY, COLUMNS
from tidelake.history.event import Event, SchemaColumn
from tidelake.protocols import Context

RECORDED: list[dict[str, Any]] = [
    {"connector": kind} | mode for kind in ("mariadb", "mysql") for mode in json.loads(data_bytes(f"vectors/debezium_{kind}.json.xz"))
]
NAMES = [", ".join([r["connector"], *(f"{k}={v}" for k, v in r["settings"].items())]) for r in RECORDED]
TABLE = tuple(SchemaColumn(n, t.name, full_type=t.sql, elements=t.elements) for n, (sql, _) in COLUMNS.items() for t in [mysql_type(sql)])
MILLISECONDS = {"fine", "finer"}  # columns whose digits time.precision.mode=connect drops


def _messages(recorded: dict[str, Any]) -> list[Message]:
    return [(_bytes(m["key"]), _bytes(m["value"])) for m in recorded["messages"]]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _events(recorded: dict[str, Any]) -> list[Event]:
    context = Context(columns=lambda database, table: TABLE)
    return [e for found in both("debezium", _messages(recorded), context) for e in found]


def _plain(name: str, cell: bytes) -> object:
    """The value apart from digits that a message does not carry."""
    sql = COLUMNS[name][0]
    if name in BINARY:
        return cell
    text = cell.decode()
    if sql == "JSON":
        return json.dumps(json.loads(text), sort_keys=True)  # MySQL's own text has blanks that its binlog has not
    if sql.startswith("DECIMAL"):
        return Decimal(text)
    if sql.startswith(("DATETIME", "TIMESTAMP")):
        return datetime.fromisoformat(text)
    return text.rstrip("0").rstrip(".") if sql.startswith("TIME") and "." in text else text


@pytest.mark.parametrize("recorded", RECORDED, ids=NAMES)
def test_every_cell_is_what_the_server_says(recorded: dict[str, Any]) -> None:
    dropped = MILLISECONDS if recorded["settings"].get("time_precision_mode") == "connect" else set[str]()
    events = _events(recorded)
    assert {e.error for e in events} == {None}
    found = {e.after[0]: dict(zip(COLUMNS, e.after, strict=True)) for e in events if e.after is not None}
    assert [row["id"] for row in recorded["rows"]] == ["1", "2"]
    for row in recorded["rows"]:
        sent = found[row["id"].encode()]
        for name in COLUMNS.keys() - dropped:
            cell, text = sent[name], row[name]
            assert cell is not None, name
            assert _plain(name, cell) == _plain(name, bytes.fromhex(text) if name in BINARY else text.encode()), name


@pytest.mark.parametrize("recorded", RECORDED, ids=NAMES)
def test_operations_and_places_are_those_of_the_history(recorded: dict[str, Any]) -> None:
    events = [e for e in _events(recorded) if e.kind == "row"]
    assert [e.op for e in events] == ["upsert", "insert", "update", "delete", "insert", "delete", "insert"]
    assert events[0].source is None
    names = [e.source for e in events[1:]]
    assert all(names)
    assert names == sorted(names, key=str)
    assert names[2] == names[3]  # one binlog event, an update of the key: the deleted and the new row


@pytest.mark.parametrize("recorded", RECORDED, ids=NAMES)
def test_sniff_is_certain_of_them(recorded: dict[str, Any]) -> None:
    assert [(g.protocol, g.confidence) for g in verdict(_messages(recorded)).guesses] == [("debezium", "certain")]
