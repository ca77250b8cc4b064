"""The demo feeds under schemas/ fit what the generator makes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.checkout import CHECKOUT
from tidelake.config.feed import Feed, load_feed
from tidelake.demo.archive import LAYOUTS
from tidelake.demo.history import History
from tidelake.demo.messages.encode_avro import AvroEncoder
from tidelake.demo.messages.model import SourceColumn, SourceTable, Transaction
from tidelake.demo.sinks import SINKS
from tidelake.demo.upstream import canonical
from tidelake.history.contract import Expectation, read_expectations, read_recorded_ddl, read_tables
from tidelake.history.ddl.column_types import MysqlType

SCHEMAS = CHECKOUT / "schemas"
ENVIRONMENT = {"TIDELAKE_ARCHIVE": "s3://archive", "TIDELAKE_LAKE": "s3://lake", "TIDELAKE_CATALOG": "jdbc:sqlite:/data/catalog.db"}
PROTOCOLS = {"bazaar-open": "open", "bazaar-craft": "craft", "bazaar-canal": "canal-json", "bazaar-avro": "avro"}
LAYOUT_NAMES = {"open": "aiven-jsonl", "craft": "aiven-parquet", "canal-json": "confluent-json", "avro": "aiven-avro"}
FEEDS = pytest.mark.parametrize("name", PROTOCOLS)


def loaded(name: str) -> Feed:
    return load_feed(SCHEMAS, name, ENVIRONMENT)


@FEEDS
def test_a_demo_feed_loads_and_names_what_the_generator_writes(name: str) -> None:
    feed, sink = loaded(name), SINKS[PROTOCOLS[name]]
    assert (feed.protocol, feed.source.uri) == (sink.protocol, f"s3://archive/{sink.protocol}")
    assert feed.source.layout == LAYOUT_NAMES[sink.protocol]
    assert LAYOUTS[sink.protocol].extension.startswith(feed.source.layout.split("-")[1])
    assert feed.namespace_of("bazaar") == f"{name.replace('-', '_')}_bazaar"
    topics = sink.topics or [f"cdc_bazaar_{t.name}" for t in History().definitions() if t.key]
    for topic in topics:
        assert feed.topic_pattern.fullmatch(topic) if feed.topic_pattern else topic in feed.topics
        assert feed.partitions_of(topic) == sink.partitions


@FEEDS
def test_only_the_columns_with_zero_dates_are_kept_as_text(name: str) -> None:
    feed = loaded(name)
    columns = [(t.name, c.name) for t in History().definitions() for c in t.columns]
    as_text = {(t, c) for t, c in columns if feed.rules_of([f"bazaar.{t}"], [c]).zero_date == "string"}
    assert as_text == {("sellers", "last_seen"), ("merchants", "last_seen")}


@FEEDS
def test_tables_sql_says_the_generator_s_tables(name: str) -> None:
    wanted = [t for t in History().definitions()[:6] if SINKS[PROTOCOLS[name]].wants(t)]
    found = read_tables(SCHEMAS / name)
    assert [(t.database, t.table) for t in found] == [(t.database, t.name) for t in wanted]
    for contract, table in zip(found, wanted, strict=True):
        columns = contract.definition.columns
        assert [(c.name, _type(c.type), c.nullable) for c in columns] == [(c.name, _type(_parsed(c)), _nullable(c)) for c in table.columns]
        assert contract.definition.primary_key == table.primary
        unique = {c for index in contract.definition.unique for c in index.columns}
        assert unique == {c.name for c in table.columns if c.flag & 0x10}


def test_the_avro_feed_s_recorded_statements_and_schemas_are_those_of_the_demo() -> None:
    folder, history = SCHEMAS / "bazaar-avro", History()
    statements = [s.ddl for s in history.statements()]
    assert (folder / "ddl.jsonl").read_text() == "".join(d.json + "\n" for d in statements)
    assert [(d.commit_ts, d.query) for d in read_recorded_ddl(folder)] == [(d.commit_ts, d.query) for d in statements]
    schemas = AvroEncoder(t for t in history.definitions() if t.key).schemas
    assert json.loads((folder / "avro_schemas.json").read_text()) == {str(k): v for k, v in schemas.items()}
    assert len(schemas) == 18


def test_the_demo_feeds_share_their_expectations() -> None:
    rules = {name: [(e.table, e.type, e.arguments, e.severity) for e in read_expectations(SCHEMAS / name)] for name in PROTOCOLS}
    assert rules["bazaar-open"] == rules["bazaar-craft"] == rules["bazaar-canal"] == rules["bazaar-avro"]
    assert {table for table, *_ in rules["bazaar-open"]} == {"bazaar.bids", "bazaar.listings", "bazaar.parcels"}
    assert [severity for *_, severity in rules["bazaar-open"]].count("critical") == 7


def test_all_expectations_hold_for_every_row_of_the_demo() -> None:
    rules = read_expectations(SCHEMAS / "bazaar-open")
    checked = 0
    for table, cells in images(History(rows_per_hour=2000)):
        for rule in rules:
            if rule.table == f"bazaar.{table.name}":
                checked += 1
                assert holds(rule, cells[rule.arguments["column"]]), (rule, cells)
    assert checked > 15_000


def images(history: History) -> Iterator[tuple[SourceTable, dict[str, Any]]]:
    """Every row before and after every change."""
    for commit in history.commits():
        for r in commit.rows if isinstance(commit, Transaction) else []:
            for row in filter(None, (r.before, r.after)):
                yield r.table, {c.name: canonical(c, v) for c, v in zip(r.table.columns, row, strict=True)}


def holds(rule: Expectation, cell: str | None) -> bool:
    """Great Expectations' meaning of the few rules that the demo uses: NULL breaks only not_be_null."""
    a = rule.arguments
    if cell is None:
        return rule.type != "expect_column_values_to_not_be_null"
    match rule.type:
        case "expect_column_values_to_not_be_null":
            return True
        case "expect_column_values_to_be_between":
            return a.get("min_value", float("-inf")) <= float(cell) <= a.get("max_value", float("inf"))
        case "expect_column_values_to_be_in_set":
            return cell in a["value_set"]
        case "expect_column_value_lengths_to_be_between":
            return bool(a["min_value"] <= len(cell) <= a["max_value"])
        case "expect_column_values_to_match_regex":
            return re.search(a["regex"], cell) is not None
        case unknown:
            raise AssertionError(unknown)


def _parsed(column: SourceColumn) -> MysqlType:
    return MysqlType.parse(column.type)


def _type(mysql: MysqlType) -> tuple[object, ...]:
    """A type without display widths; no fraction digits are 0."""
    integer = mysql.word.endswith("int") and mysql.word != "tinyint"
    return mysql.word, mysql.unsigned, None if integer else mysql.length or 0, mysql.scale or 0, mysql.elements


def _nullable(column: SourceColumn) -> bool:
    return bool(column.flag & 0x40)
