"""The shop workload's five archives land hour by hour as exactly the messages that were produced."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.archives.objects import Message
from tests.conftest import FreshUri
from tests.data_files import data_bytes, data_path
from tests.land.archive import contents, lake, landed
from tidelake.config.feed import Feed
from tidelake.land import land_hour
from tidelake.land.store.coverage import coverage
from tidelake.land.store.manifest import all_newest
from tidelake.tso import parse_hour

HOURS = [f"2026-01-05T{hour}" for hour in range(10, 15)]
FEEDS: dict[str, dict[str, Any]] = {
    "open": {"layout": "aiven-jsonl", "topic": "shop.open"},
    "craft": {"layout": "aiven-parquet", "topic": "shop.craft"},
    "canal-json": {"layout": "confluent-json", "topic": "shop.canal"},
    "canal-json-cc": {"layout": "aiven-csv", "topic": "shop.canal-cc"},
    "avro": {"layout": "aiven-avro", "topic": "/shop_shopdb_.*/"},
}
Produced = dict[tuple[str, int], list[Message]]


def shop(name: str, lake_uri: str) -> Feed:
    avro: dict[str, Any] = {"watermark": {"from": "checkpoints", "uri": "x"}, "avro": {"schemas": "x"}} if name == "avro" else {}
    settings = FEEDS[name]
    return Feed.model_validate(
        {
            "name": name,
            "folder": Path("schemas") / name,
            "protocol": name.removesuffix("-cc"),
            "topics": (settings["topic"],),
            "partitions": 2 if name == "avro" else 3,
            "source": {"uri": str(data_path(f"workloads/shop/archives/{name}")), "layout": settings["layout"]},
            "lake": {"uri": lake_uri},
            **avro,
        }
    )


@cache
def produced(name: str) -> Produced:
    """The messages as they were produced, reduced to what the archive's layout can carry."""
    out: Produced = {}
    for r in map(json.loads, data_bytes(f"workloads/shop/messages_{name}.jsonl.xz").splitlines()):
        key, value = (None if r[member] is None else bytes.fromhex(r[member]) for member in ("key", "value"))
        message = Message(r["offset"], value, key, r["ts_ms"], [] if name == "open" else None)
        if name == "canal-json":
            message = message._replace(key=None, timestamp_ms=None)
        if name == "canal-json-cc":
            message = message._replace(key=key or None)
        out.setdefault((r["topic"], r["partition"]), []).append(message)
    return out


@pytest.mark.parametrize("name", FEEDS)
def test_every_message_lands_once_and_in_order(name: str, tmp_path: Path) -> None:
    feed = shop(name, str(tmp_path / "lake"))
    found: Produced = {}
    for hour in HOURS:
        report = land_hour(feed, parse_hour(hour))
        assert report.new
        assert all(f.severity != "critical" for f in report.findings)
        manifest = all_newest(lake(feed), name)[hour]
        of_hour = landed(feed, manifest, tmp_path)
        assert report.messages == sum(map(len, of_hour.values()))
        assert report.bytes == sum(len(m.value or b"") + len(m.key or b"") for some in of_hour.values() for m in some)
        for place, messages in of_hour.items():
            found.setdefault(place, []).extend(messages)
    assert found == produced(name)
    complete = coverage(all_newest(lake(feed), name).values())
    flat = {(topic, number): covered for topic, numbers in complete.prefixes.items() for number, covered in numbers.items()}
    assert flat == {place: (0, len(messages) - 1) for place, messages in produced(name).items()}
    assert not complete.holes
    before = contents(lake(feed))
    assert not any(land_hour(feed, parse_hour(hour)).new for hour in HOURS)
    assert contents(lake(feed)) == before


@pytest.mark.parametrize("name", ["open", "avro"])
def test_a_lake_on_s3_holds_the_same_bytes_as_one_in_a_folder(name: str, s3: FreshUri, tmp_path: Path) -> None:
    local, remote = shop(name, str(tmp_path / "lake")), shop(name, s3("shop"))
    for feed in (local, remote):
        land_hour(feed, parse_hour(HOURS[0]))
    assert contents(lake(remote)) == contents(lake(local))


def test_the_hours_hold_as_many_messages_as_the_workload_says(tmp_path: Path) -> None:
    for name in FEEDS:
        truth = json.loads(data_bytes(f"workloads/shop/truth_{name}.json.xz"))["hours"]
        feed, total = shop(name, str(tmp_path / name)), 0
        for hour in truth:
            total += land_hour(feed, parse_hour(hour["hour"][:13])).messages
            assert (name, hour["hour"], total) == (name, hour["hour"], hour["messages"])
