"""Simple where table schemas are kept (docs/reference/protocols.md 9.1): a row waits for its schema, and is read by it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.protocols import both_paths
from tests.protocols.both_paths import Message, decoded
from tests.protocols.simple_messages import STRING, TS, VERSION, avro_row, bootstrap, column, index, json_row, table_schema
from tidelake.decode.shelf import LakeShelf
from tidelake.errors import DecodeError, WaitingError
from tidelake.io.storage import open_store
from tidelake.protocols import Context, decoder
from tidelake.wire.simple.simple_schema import SimpleTableSchema

PROTOCOLS = pytest.mark.parametrize("protocol", ["simple-json", "simple-avro"])
SCHEMA = table_schema([column("id", "bigint"), column("name", "varchar", length=20)], [index("id", primary=True)])


def context(folder: Path) -> Context:
    """As a worker makes it for one landed object."""
    return Context(shelf=LakeShelf(open_store(str(folder)), "shop"))


def row(protocol: str, version: int = VERSION) -> Message:
    if protocol == "simple-json":
        return json_row(data={"id": "1", "name": "a"}, schemaVersion=version)
    return avro_row(data={"id": (1, 1), "name": (STRING, "a")}, version=version)


@PROTOCOLS
def test_a_row_without_its_schema_waits_and_says_for_what(protocol: str, tmp_path: Path) -> None:
    [[event]] = both_paths.both(protocol, [row(protocol)], context(tmp_path))
    assert (event.kind, event.error_code) == ("rejected", "NO_TABLE_SCHEMA")
    assert (event.database, event.table, event.schema_version, event.commit_ts) == ("db", "t", VERSION, TS)
    assert event.raw_value == row(protocol)[1]
    with pytest.raises(WaitingError, match=f"schema version {VERSION} of db.t has not come yet"):
        decoder(protocol).read(*row(protocol), context(tmp_path))


@PROTOCOLS
def test_what_one_object_brings_another_finds(protocol: str, tmp_path: Path) -> None:
    first, second = context(tmp_path), context(tmp_path)
    [[before]] = decoded(protocol, [row(protocol)], second)
    assert before.kind == "rejected"
    decoded(protocol, [bootstrap(protocol, SCHEMA)], first)
    [[still]] = decoded(protocol, [row(protocol)], second)
    assert still.kind == "rejected"  # a task does not ask twice: the whole hour is decoded again
    [[event], [other]] = both_paths.both(protocol, [row(protocol), row(protocol, VERSION + 1)], context(tmp_path))
    assert (event.kind, event.op, event.after) == ("row", "insert", [b"1", b"a"])
    assert event.row_schema is not None
    assert [(c.name, c.type, c.key) for c in event.row_schema.columns] == [("id", "bigint", True), ("name", "varchar", False)]
    assert (other.kind, other.schema_version) == ("rejected", VERSION + 1)


@PROTOCOLS
def test_rows_before_their_schema_in_the_same_batch_do_not_wait(protocol: str, tmp_path: Path) -> None:
    events = decoded(protocol, [row(protocol), row(protocol), bootstrap(protocol, SCHEMA)], context(tmp_path))
    assert [e.kind for (e,) in events] == ["row", "row", "bootstrap"]


@PROTOCOLS
def test_another_schema_of_a_version_on_the_shelf_is_refused(protocol: str, tmp_path: Path) -> None:
    decoded(protocol, [bootstrap(protocol, SCHEMA)], context(tmp_path))
    other = table_schema([column("id", "int")], [index("id", primary=True)])
    [[event]] = decoded(protocol, [bootstrap(protocol, other)], context(tmp_path))
    assert (event.kind, event.error_code) == ("rejected", "BAD_STRUCTURE")
    assert "a second schema with other columns" in (event.error or "")


def test_a_shelf_gives_back_what_was_kept_first(tmp_path: Path) -> None:
    schema = SimpleTableSchema("sh/op", "t,1", (1 << 64) - 1, SimpleTableSchema.from_json(_KEPT).columns)
    shelf = LakeShelf(open_store(str(tmp_path)), "shop")
    assert shelf.find(schema.database, schema.table, schema.version) is None
    shelf.keep(schema)
    shelf.keep(replace(schema, columns=()))
    assert shelf.find(schema.database, schema.table, schema.version) == schema
    assert shelf.find(schema.database, schema.table, 1) is None


def test_without_a_shelf_a_row_has_its_columns_by_name(tmp_path: Path) -> None:
    [[event]] = both_paths.both("simple-json", [row("simple-json")], Context())
    assert event.row_schema is not None
    assert [(c.name, c.type) for c in event.row_schema.columns] == [("id", None), ("name", None)]
    with pytest.raises(DecodeError):
        decoder("simple-json").read(*row("simple-json"), context(tmp_path))


_KEPT = """{"database": "d", "table": "t", "version": 1, "columns": [
    {"name": "id", "type": "bigint", "key": true}, {"name": "e", "type": "enum", "key": false, "elements": ["a", "it's"]}]}"""
