"""What a storage sink's schema files and file numbers say to decode and order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from tests.land.archive import HOUR, make_feed
from tests.land.sink_folder import DAY, START, checkpoint, put, sink
from tidelake.config.feed import Feed
from tidelake.config.lake_paths import decoded_key, sink_key
from tidelake.decode import sink_schemas
from tidelake.decode.known import columns_of
from tidelake.decode.record import DecodeRecord
from tidelake.decode.sink_schemas import sink_statements, version_schemas
from tidelake.errors import OrderError
from tidelake.history.event import RowSchema
from tidelake.io.storage import open_store
from tidelake.lake.catalog import LakeTable
from tidelake.land.hour import land_hour
from tidelake.order.progress import WindowProgress, progress
from tidelake.tso import end_ts, format_hour


def schema(feed: Feed, version: int, query: str = "", table: str = "orders", columns: tuple[str, ...] = ("id",)) -> None:
    said: dict[str, Any] = {"Schema": "shop", "Table": table, "TableVersion": version, "Query": query}
    said["TableColumns"] = [{"ColumnName": c, "ColumnType": "INT"} for c in columns]
    folder = f"shop/{table}/meta" if table else "shop/meta"
    open_store(feed.source.uri).write(f"{folder}/schema_{version}_0000000001.json", json.dumps(said).encode())


def test_a_line_s_columns_are_those_of_its_table_version(tmp_path: Path) -> None:
    feed = sink(tmp_path, "csv")
    schema(feed, 441)
    schema(feed, 500, columns=("id", "more"))
    known = version_schemas(feed, [f"{DAY}/CDC01.csv", "shop/orders/500/2026-01-06/CDC01.csv"])
    columns = columns_of(known)
    assert columns is not None
    found = [columns("shop", f"orders@{version}") for version in (441, 500)]
    assert [[c.name for c in cs or ()] for cs in found] == [["id"], ["id", "more"]]
    assert [c.type for c in RowSchema.from_json(known[0][2]).columns] == ["int"]
    assert version_schemas(sink(tmp_path), [f"{DAY}/CDC01.json"]) == []
    with pytest.raises(OrderError, match=r"NO_TABLE_SCHEMA: .*no schema file has the columns of version 7 of shop\.orders"):
        version_schemas(feed, ["shop/orders/7/2026-01-06/CDC01.csv"])


def test_statements_are_those_of_the_schema_files_in_the_window(tmp_path: Path) -> None:
    feed = sink(tmp_path)
    schema(feed, 441)
    schema(feed, 500, "ALTER TABLE `orders` ADD COLUMN `more` INT")
    schema(feed, 400, "CREATE DATABASE `shop`", table="")
    schema(feed, 600, "DROP TABLE `shop`.`orders`")
    said = [(s.commit_ts, s.database, s.query.split("`")[0]) for s in sink_statements(feed, 400, 500)]
    assert said == [(400, "shop", "CREATE DATABASE "), (500, "shop", "ALTER TABLE ")]
    assert [s.commit_ts for s in sink_statements(feed, 401, 599)] == [500]


def test_live_topics_have_no_schema_files(tmp_path: Path) -> None:
    assert sink_statements(make_feed(tmp_path, source={"kind": "kafka", "uri": "nowhere:9092"}), 400, 500) == []


def test_what_landing_saw_needs_no_archive_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = sink(tmp_path, "csv")
    schema(feed, 441, "CREATE TABLE `orders` (`id` INT)")
    schema(feed, 400, "CREATE DATABASE `shop`", table="")
    open_store(feed.source.uri).write(f"{DAY}/CDC{1:020d}.csv", f'"I","orders","shop",{START},1\n'.encode())
    checkpoint(feed, end_ts(HOUR))
    land_hour(feed, HOUR)
    opened: list[str] = []
    monkeypatch.setattr(sink_schemas, "open_store", lambda uri: (opened.append(uri), open_store(uri))[1])
    assert [(database, table) for database, table, _ in version_schemas(feed, [f"{DAY}/CDC{1:020d}.csv"])] == [("shop", "orders@441")]
    assert [s.commit_ts for s in sink_statements(feed, 0, end_ts(HOUR))] == [400, 441]
    assert set(opened) == {feed.lake.uri}
    kept = open_store(f"{feed.lake.uri}/schemas/small/sink")
    assert [info.key for info in kept.objects()] == ["shop/meta/schema_400_0000000001.json", "shop/orders/meta/schema_441_0000000001.json"]


def test_of_hours_that_were_landed_before_schemas_were_kept_the_archive_is_asked(tmp_path: Path) -> None:
    feed = sink(tmp_path, "csv")
    schema(feed, 441, "CREATE TABLE `orders` (`id` INT)")
    lake = open_store(feed.lake.uri)
    lake.write(sink_key(feed.name, format_hour(HOUR)), b'{"folders":{"shop.orders/441/0/2026-01-05/":1},"ahead":{}}')
    assert [s.commit_ts for s in sink_statements(feed, 0, end_ts(HOUR))] == [441]
    open_store(feed.source.uri).delete("shop/orders/meta/schema_441_0000000001.json")
    assert [table for _, table, _ in version_schemas(feed, [f"{DAY}/CDC01.csv"])] == ["orders@441"]


def resolved(feed: Feed) -> WindowProgress:
    hour = format_hour(HOUR)
    counts: dict[str, Any] = {"counts": {}, "max_commit_ts": None, "max_timestamp_ms": None, "watermarks": {}}
    record = DecodeRecord(hour=hour, generation=1, decoder="", snapshot_id=1, **counts)
    store = open_store(feed.lake.uri)
    store.write(decoded_key(feed.name, hour), record.model_dump_json().encode())
    return progress(feed, store, cast(LakeTable, None), None, hour)


def test_a_landed_hour_is_resolved_to_its_end(tmp_path: Path) -> None:
    feed = sink(tmp_path)
    put(feed, 1, START)
    put(feed, 2, START + 1)
    checkpoint(feed, end_ts(HOUR) + 99)
    land_hour(feed, HOUR)
    done = resolved(feed)
    assert (done.resolved_ts, list(done.prefixes["shop.orders"].values())) == (end_ts(HOUR), [(1, 2)])


def test_a_folder_whose_first_files_are_missing_is_a_gap(tmp_path: Path) -> None:
    feed = sink(tmp_path)
    put(feed, 3, START)
    checkpoint(feed, end_ts(HOUR))
    land_hour(feed, HOUR)
    with pytest.raises(OrderError, match=r"^GAP shop\.orders\[\d+\]: files 1 to 2 of a folder are not landed"):
        resolved(feed)
