"""A small archive and a feed that lands it; what a lake holds afterwards."""

from __future__ import annotations

import gzip
import io
from collections.abc import Sequence
from datetime import datetime, timedelta
from inspect import signature
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.archives.objects import WRITERS, Message
from tidelake.archives.canonical import COVERS
from tidelake.config.feed import Feed
from tidelake.io.storage import Store, open_store
from tidelake.land.store.manifest import Finding, Manifest, newest
from tidelake.tso import parse_hour

HOUR = parse_hour("2026-01-05T10")
TOPIC = "shop"


def make_feed(root: Path | str, **settings: Any) -> Feed:
    """A feed whose archive and lake lie below root; two partitions, layout aiven-jsonl, unless settings say otherwise.

    Its hours are closed as soon as they are over.
    """
    settings = {
        "name": "small",
        "folder": Path("schemas/small"),
        "protocol": "craft",
        "topics": (TOPIC,),
        "partitions": 2,
        "source": {"uri": f"{root}/archive", "layout": "aiven-jsonl"},
        "lake": {"uri": f"{root}/lake"},
    } | settings
    settings["source"] = {"closed_by": "quiet", "quiet_minutes": 0} | settings["source"]
    return Feed(**settings)


def messages(first: int, last: int, text: str = "v") -> list[Message]:
    """Messages with the offsets first to last."""
    return [Message(i, f"{text}{i}".encode(), b"k%d" % i, 1_767_607_200_000 + i) for i in range(first, last + 1)]


def put(
    feed: Feed,
    partition: int,
    content: Sequence[Message],
    *,
    hours: int = 0,
    name: int | None = None,
    topic: str = TOPIC,
    zipped: bool = True,
) -> str:
    """Write one object of an hour (HOUR + hours) and return its key. name: the number in it, the first offset if not given."""
    writer, extension = WRITERS[feed.source.layout or ""]
    moment = HOUR + timedelta(hours=hours)
    number = content[0].offset if name is None else name
    key = f"{topic}/dt={moment:%Y-%m-%d}/hr={moment:%H}/{topic}+{partition}+{number:020d}.{extension}"
    if feed.source.layout == "canonical":
        key = f"{topic}/hour={moment:%Y-%m-%dT%H}/partition={partition}/{number}-{content[-1].offset}-0af3.parquet"
    if feed.source.layout == "secor":
        key = f"{topic}/dt={moment:%Y-%m-%d}/hr={moment:%H}/1_{partition}_{number:020d}.seq"
    data = writer(content) if "topic" not in signature(writer).parameters else writer(content, topic=topic)  # type: ignore[call-arg]
    if zipped and extension in ("jsonl", "csv", "json"):
        key, data = f"{key}.gz", gzip.compress(data, mtime=0)
    archive(feed).write(key, data)
    return key


def at(hours: int) -> datetime:
    """HOUR + hours."""
    return HOUR + timedelta(hours=hours)


def archive(feed: Feed) -> Store:
    """The feed's archive."""
    return open_store(feed.source.uri)


def lake(feed: Feed) -> Store:
    """The feed's lake."""
    return open_store(feed.lake.uri)


def contents(store: Store) -> dict[str, bytes]:
    """Every object of a store."""
    return {info.key: store.read(info.key) for info in store.objects()}


def manifest(feed: Feed, hour: str = "2026-01-05T10") -> Manifest:
    """The newest manifest of an hour that was landed."""
    found = newest(lake(feed), feed.name, hour)
    assert found is not None
    return found


def landed(feed: Feed, found: Manifest, folder: Path) -> dict[tuple[str, int], list[Message]]:
    """The messages of a manifest's objects, in the order in which they lie there."""
    out: dict[tuple[str, int], list[Message]] = {}
    for item in found.objects:
        lake(feed).download(item.key, folder / "read")
        rows = pq.read_table(folder / "read").to_pylist()
        assert {(row["topic"], row["partition"]) for row in rows} == {(item.topic, item.partition)}
        for row in rows:
            headers = None if row["headers"] is None else [(h["key"], h["value"]) for h in row["headers"]]
            message = Message(row["offset"], row["value"], row["key"], row["timestamp_ms"], headers)
            out.setdefault((item.topic, item.partition), []).append(message)
    return out


def codes(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    """What was found and how serious it is."""
    return [(finding.code, finding.severity) for finding in findings]


def cover(feed: Feed, key: str, said: str) -> None:
    """Write into the footer of an object what it covers."""
    table = pq.read_table(io.BytesIO(archive(feed).read(key)))
    out = io.BytesIO()
    with pq.ParquetWriter(out, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({COVERS: said})
    archive(feed).write(key, out.getvalue())
