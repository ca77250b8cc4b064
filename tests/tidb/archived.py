"""The archive of a changefeed that replicated a recorded history, and a feed that reads it.

The history took half a minute or more of the server's time. Kafka's timestamps are stretched, so that the archive has several hours.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tests.tidb.recorded import RecordedHistory
from tidelake.demo.archive import LAYOUTS, ArchiveWriter
from tidelake.demo.replicator import Replicator
from tidelake.demo.sinks import SINKS
from tidelake.io.storage import open_store
from tidelake.tso import format_hour

HOURS = 3
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
    replicator = Replicator(history, sink, crashes=(0.25,), seed=seed)
    writer = ArchiveWriter(open_store(str(folder)), "archive", layout)
    messages = list(replicator.messages())
    start, end = min(m.timestamp_ms for m in messages), max(m.timestamp_ms for m in messages) + 1
    first = history.start_ms - history.start_ms % _HOUR_MS  # a seed's hours begin at its TSO
    for message in messages:
        stretched = first + (message.timestamp_ms - start) * HOURS * _HOUR_MS // (end - start)
        writer.add(message._replace(timestamp_ms=stretched))
    writer.close()
    return [format_hour(datetime.fromtimestamp((first + n * _HOUR_MS) / 1000, UTC)) for n in range(HOURS)]


def feed_folder(folder: Path, protocol: str, lake: str) -> Path:
    """The folder of a feed `shop` that reads the archive. lake: name of the folder of its lake."""
    name, layout, options = _READ[protocol]
    sink, made = SINKS[protocol], folder / f"schemas-{lake}" / "shop"
    made.mkdir(parents=True)
    settings = {"protocol": name, "topic": sink.topic, "partitions": sink.partitions, "options": options, "layout": layout}
    (made / "feed.toml").write_text(_FEED.format(folder=folder, lake=lake, **settings))
    return made.parent
