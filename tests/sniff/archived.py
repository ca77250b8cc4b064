"""Archives of every layout in a store: two partitions, two hours, objects where the connector puts them; and what sniff finds in one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from inspect import signature
from pathlib import Path

from tests.archives.objects import WRITERS, Message, gzipped
from tests.sniff.messages import encoded
from tidelake.config.feed import Feed, load_feed
from tidelake.demo.messages.encode_canal_json import CanalJsonEncoder
from tidelake.demo.messages.encode_open import OpenEncoder
from tidelake.io.storage import Store
from tidelake.protocols import Context
from tidelake.sniff.archive import Archive, Section, look
from tidelake.sniff.starter import Starter
from tidelake.tso import parse_hour

HOUR = parse_hour("2026-01-05T10")
TOPIC = "shop.orders"
_AIVEN = "{topic}/dt={at:%Y-%m-%d}/hr={at:%H}/{topic}+{partition}+{first:020d}.{extension}"
_PLACES = {
    "confluent": "{topic}/year={at:%Y}/month={at:%m}/day={at:%d}/hour={at:%H}/{topic}+{partition}+{first:010d}.{extension}",
    "lenses": "{at:%Y}/{at:%m}/{at:%d}/{at:%H}/{topic}/{partition}/{last:012d}_1_2.{extension}",
    "canonical": "{topic}/hour={at:%Y-%m-%dT%H}/partition={partition}/{first:020d}-{last:020d}-0af3.{extension}",
    "secor": "{topic}/dt={at:%Y-%m-%d}/hr={at:%H}/1_{partition}_{first:020d}.{extension}",
}


def records(layout: str, partition: int, hour: int) -> list[Message]:
    """Five messages of a partition and hour (HOUR + hour): three rows, a statement, a resolved ts."""
    encoder = OpenEncoder() if layout == "confluent-bin-open" else CanalJsonEncoder()
    start = int(HOUR.timestamp() * 1000) + hour * 3_600_000
    return [Message(5 * hour + i, value, key, start + i) for i, (key, value) in enumerate(encoded(encoder))]


def put(store: Store, layout: str, messages: Sequence[Message], partition: int, hour: int, topic: str = TOPIC, place: str = "") -> str:
    """Write an object as the layout's connector would, with keys beside it where Open Protocol needs them. Returns its key."""
    writer, extension = WRITERS[layout]
    content = writer(messages, topic=topic) if "topic" in signature(writer).parameters else writer(messages)  # type: ignore[call-arg]
    if extension in ("jsonl", "csv", "json"):
        content, extension = gzipped(content), f"{extension}.gz"
    place = place or _PLACES.get(layout.partition("-")[0], _AIVEN)
    first, last = messages[0].offset, messages[-1].offset
    key = place.format(topic=topic, at=HOUR + timedelta(hours=hour), partition=partition, first=first, last=last, extension=extension)
    store.write(key, content)
    if layout == "confluent-bin-open":
        store.write(key.replace(".bin", ".keys.bin"), b"".join((m.key or b"") + b"\n" for m in messages))
    return key


def partitions(layout: str) -> tuple[int, ...]:
    """The partitions: two, one where the records say theirs, as the writers know the first one only."""
    return (0,) if "topic" in signature(WRITERS[layout][0]).parameters else (0, 1)


def fill(store: Store, layout: str, topic: str = TOPIC, place: str = "") -> None:
    """Two hours of each partition."""
    for hour in (0, 1):
        for partition in partitions(layout):
            put(store, layout, records(layout, partition, hour), partition, hour, topic, place)


def looked(folder: Path | str, **limits: int) -> Archive:
    return look(str(folder), Context(), **limits)


def only(archive: Archive) -> Section:
    (section,) = archive.sections
    return section


def load(folder: Path, start: Starter, archive: Archive) -> Feed:
    """The feed as its reader loads it from what was printed, its lake below the folder."""
    target = folder / "schemas" / start.name / "feed.toml"
    target.parent.mkdir(parents=True)
    target.write_text(start.text)
    return load_feed(folder / "schemas", start.name, start.environment | {"TIDELAKE_LAKE": str(folder / "lake")})
