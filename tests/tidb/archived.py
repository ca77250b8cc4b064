"""The archive of a changefeed that replicated a recorded history, and a feed that reads it.

The history took a minute or two of the server's time. Kafka's timestamps are stretched, so that the archive has several hours.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tests.tidb.recorded import RecordedHistory
from tidelake.demo.archive import LAYOUTS, ArchiveWriter
from tidelake.demo.replicator import Replicator
from tidelake.demo.sinks import SINKS
from tidelake.io.storage import open_store

HOURS = 3
_FIRST = datetime(2026, 1, 5, 10, tzinfo=UTC)
_HOUR_MS = 3_600_000
_FEED = """protocol = "{protocol}"
topics = ["{topic}"]
partitions = {partitions}
{options}
[source]
uri = "{folder}/archive"
layout = "{layout}"
closed_by = "quiet"
quiet_minutes = 0
[lake]
uri = "{folder}/{lake}"
[policy]
clock_skew_minutes = 10000
"""
_READ = {  # by protocol: name in feed.toml, layout, options
    "open": ("open", "aiven-jsonl", "[options]\nmax_batch_size = 16"),
    "craft": ("craft", "aiven-parquet", ""),
    "canal-json-cc": ("canal-json", "aiven-csv", "[options]\nenable_tidb_extension = true\ncontent_compatible = true"),
}


def archive(folder: Path, protocol: str, history: RecordedHistory, seed: int) -> list[str]:
    """Write the archive; its hours."""
    sink, layout = SINKS[protocol], LAYOUTS[protocol]
    replicator = Replicator(history, sink, crashes=(0.4,), seed=seed)
    writer = ArchiveWriter(open_store(str(folder)), "archive", layout)
    messages = list(replicator.messages())
    start, end = messages[0].timestamp_ms, messages[-1].timestamp_ms + 1
    first = int(_FIRST.timestamp() * 1000)
    for message in messages:
        stretched = first + (message.timestamp_ms - start) * HOURS * _HOUR_MS // (end - start)
        writer.add(message._replace(timestamp_ms=stretched))
    writer.close()
    return [f"{_FIRST:%Y-%m-%d}T{_FIRST.hour + n}" for n in range(HOURS)]


def feed_folder(folder: Path, protocol: str, lake: str) -> Path:
    """The folder of a feed `shop` that reads the archive. lake: name of the folder of its lake."""
    name, layout, options = _READ[protocol]
    sink, made = SINKS[protocol], folder / f"schemas-{lake}" / "shop"
    made.mkdir(parents=True)
    settings = {"protocol": name, "topic": sink.topic, "partitions": sink.partitions, "options": options, "layout": layout}
    (made / "feed.toml").write_text(_FEED.format(folder=folder, lake=lake, **settings))
    return made.parent
