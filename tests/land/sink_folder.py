"""A folder of the storage sink, and a feed that lands it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.land.archive import HOUR, make_feed
from tidelake.config.feed import Feed
from tidelake.io.storage import open_store
from tidelake.tso import from_ms

DAY = "shop/orders/441/2026-01-05"
START = from_ms(int(HOUR.timestamp() * 1000))


def sink(root: Path, protocol: str = "canal-json", **source: Any) -> Feed:
    option = "enable_tidb_extension" if protocol == "canal-json" else "include_commit_ts"
    settings = {"partitions": 1, "topics": ("/shop[.].*/",), "watermark": {"from": "metadata"}, "options": {option: True}}
    return make_feed(root, protocol=protocol, source={"uri": f"{root}/archive", "layout": "storage-sink", **source}, **settings)


def put(feed: Feed, number: int, *commit_ts: int, folder: str = DAY) -> None:
    """A file of Canal-JSON lines."""
    lines = b"".join(b'{"data":[{"a":"\\"commitTs\\":1"}],"_tidb":{"commitTs":%d}}\r\n' % ts for ts in commit_ts)
    open_store(feed.source.uri).write(f"{folder}/CDC{number:020d}.json", lines)


def checkpoint(feed: Feed, ts: int) -> None:
    open_store(feed.source.uri).write("metadata", b'{"checkpoint-ts":%d}' % ts)
