"""What decoders know of a feed's tables where the messages do not say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli import feeds
from tidelake.config.feed import Feed, load_feed
from tidelake.config.options import SinkOptions
from tidelake.decode.known import known_tables
from tidelake.decode.landed_hour import decode_job
from tidelake.decode.landed_source import DecodeJob, context_of
from tidelake.decode.record import decoder_id
from tidelake.history.event import SchemaColumn

TABLE = """
CREATE TABLE db.T (id BIGINT UNSIGNED PRIMARY KEY, d DECIMAL(10,2), at DATETIME(3), raw VARBINARY(9), e ENUM('a','b'),
  twice INT AS (id * 2) VIRTUAL);
"""


def feed(schemas: Path, protocol: str, tables: str = TABLE) -> Feed:
    feeds.write(schemas, feed=feeds.FEED.replace('"open"', f'"{protocol}"', 1), tables=tables, rules=None)
    return load_feed(schemas, "shop", expand=False)


def test_tables_sql_says_the_columns_of_untyped_protocols(tmp_path: Path) -> None:
    known = known_tables(feed(tmp_path, "csv"))
    job = DecodeJob(lake_uri="x", feed="shop", objects=[], protocol="csv", options=SinkOptions(), tables=known, time_zone="Asia/Tokyo")
    context = context_of(DecodeJob.model_validate_json(job.model_dump_json()))
    assert context.time_zone == "Asia/Tokyo"
    assert context.columns_of("DB", "t") == (
        SchemaColumn("id", "bigint unsigned", key=True),
        SchemaColumn("d", "decimal", full_type="decimal(10,2)"),
        SchemaColumn("at", "datetime", full_type="datetime(3)"),
        SchemaColumn("raw", "varbinary"),
        SchemaColumn("e", "enum"),
    )
    assert context.columns_of("db", "u") is None


@pytest.mark.parametrize(("protocol", "same"), [("debezium", False), ("open", True)])
def test_they_are_part_of_what_a_decoder_is_where_it_needs_them(tmp_path: Path, protocol: str, same: bool) -> None:
    other = feed(tmp_path / "other", protocol, TABLE.replace("VARBINARY", "VARCHAR"))
    assert (decoder_id(feed(tmp_path, protocol)) == decoder_id(other)) is same


CHECKED = """protocol = "avro"
topics = ["t"]
partitions = 1
[options]
enable_row_checksum = true
[source]
uri = "/a"
layout = "aiven-jsonl"
[watermark]
from = "checkpoints"
uri = "/c"
[avro]
schemas = "x"
[lake]
uri = "/l"
"""


def test_avro_with_checksums_knows_its_tables_and_its_zone(tmp_path: Path) -> None:
    feeds.write(tmp_path, feed=CHECKED, tables=TABLE, rules=None)
    (tmp_path / "shop" / "x").write_text('{"1": "{}"}')
    checked = load_feed(tmp_path, "shop")
    job = decode_job(checked, [])
    context = context_of(DecodeJob.model_validate_json(job.model_dump_json()))
    assert len(context.columns_of("db", "t") or ()) == 5  # the virtual one is never sent, and not summed
    assert (context.time_zone, context.refuse_mismatches) == ("UTC", False)
    feeds.write(tmp_path / "plain", feed=CHECKED.replace("true", "false"), tables=TABLE, rules=None)
    assert known_tables(load_feed(tmp_path / "plain", "shop")) == []


def test_the_policy_for_checksums_is_part_of_what_a_decoder_is(tmp_path: Path) -> None:
    feeds.write(tmp_path, feed=CHECKED, tables=TABLE, rules=None)
    feeds.write(tmp_path / "strict", feed=CHECKED + '[policy]\nchecksum = "quarantine"\n', tables=TABLE, rules=None)
    warn, strict = load_feed(tmp_path, "shop"), load_feed(tmp_path / "strict", "shop")
    for feed in (warn, strict):
        (feed.folder / "x").write_text('{"1": "{}"}')
    assert decoder_id(warn) != decoder_id(strict)
    assert [decode_job(f, []).refuse_mismatches for f in (warn, strict)] == [False, True]
