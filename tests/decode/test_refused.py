"""Hours of which most messages were refused say so first, and what else the messages are; without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.lake import lakes
from tests.lake.histories import partition_of
from tests.sniff.messages import ENCODERS, avro, encoded, simple
from tidelake.config.feed import Feed
from tidelake.config.lake_paths import decoded_key, manifest_key
from tidelake.config.options import SinkOptions
from tidelake.decode.record import DecodeRecord, record_of, refusals_named
from tidelake.decode.refused import RefusedMessages, most_refused
from tidelake.errors import OrderError
from tidelake.history.event import MESSAGE
from tidelake.lake.events import ensure_events
from tidelake.lake.opened import Lake
from tidelake.land.store.manifest import Manifest
from tidelake.order.progress import progress
from tidelake.protocols import Context, decode
from tidelake.query.status import feed_status
from tidelake.validate.quality.report import render
from tidelake.validate.report import hour_facts

HOUR = "2026-01-05T10"
Sent = list[tuple[bytes | None, bytes | None]]


def of(protocol: str, times: int = 4) -> Sent:
    return encoded(ENCODERS[protocol]()) * times


def decoded(lake: Lake, sent: Sent, options: SinkOptions | None = None) -> DecodeRecord:
    """An hour of these messages is landed, and decoded as the feed says."""
    feed = lake.feed
    rows = [{"topic": "t", "partition": 0, "offset": i, "timestamp_ms": 1, "key": k, "value": v} for i, (k, v) in enumerate(sent)]
    events = pa.Table.from_batches([decode(feed.protocol, pa.RecordBatch.from_pylist(rows, schema=MESSAGE), Context(options=feed.options))])
    made = ensure_events(lake.catalog, feed)
    lake.catalog.append(made.identifier, events.add_column(0, "hour", pa.array([HOUR] * len(events))), {"tidelake.hour": HOUR})
    manifest = Manifest(
        feed=feed.name,
        hour=HOUR,
        generation=1,
        protocol=feed.protocol,
        layout="aiven-jsonl",
        sources=(),
        objects=(),
        partitions={"t": {0: partition_of(0, len(sent) - 1)}},
        findings=(),
    )
    lake.store.write(manifest_key(feed.name, HOUR, 1), manifest.to_json())
    loaded = lake.catalog.load(made.identifier)
    record = record_of(loaded, manifest, HOUR, "test")
    record = record.model_copy(update={"refused": most_refused(feed, loaded, HOUR, len(sent), record.rejected)})
    lake.store.write(decoded_key(feed.name, HOUR), record.model_dump_json().encode())
    return record


def feed(folder: Path, **changes: Any) -> Feed:
    (folder / "lake").mkdir(exist_ok=True)
    return lakes.feed(folder, **changes)


def test_a_feed_of_another_protocol_says_so_where_it_blocks_and_in_status_and_report(tmp_path: Path) -> None:
    with Lake.of(feed(tmp_path, protocol="craft")) as lake:
        record = decoded(lake, of("open"))
        said = "20 of 20 messages refused as craft; 20 decode as open"
        assert record.quarantined == said
        with pytest.raises(OrderError) as raised:
            progress(lake.feed, lake.store, lake.catalog.load(ensure_events(lake.catalog, lake.feed).identifier), None, HOUR)
        assert str(raised.value) == (
            f'WRONG_PROTOCOL: {said}; if that is what the changefeed writes, set protocol = "open" in feed.toml and run the hour again; '
            "nothing is lost"
        )
        assert raised.value.exit_code == 3
        assert feed_status(lake)["waits_for"] == str(raised.value)
        assert f"<strong>{said}.</strong>" in render(hour_facts(lake, HOUR), [])


@pytest.mark.parametrize(
    ("declared", "sent", "said"),
    [
        ("open", of("craft"), "20 of 20 messages refused as open; 20 decode as craft"),
        ("open", of("canal-json"), "20 of 20 messages refused as open; 20 decode as canal-json with enable_tidb_extension = true"),
        ("canal-json", simple("simple-json") * 3, "6 of 6 messages refused as canal-json; 6 decode as simple-json"),
        ("craft", of("open", 2) + of("craft", 1), "10 of 15 messages refused as craft; 10 decode as open"),
        ("craft", avro()[0], "3 of 3 messages refused as craft; 3 look like avro, whose schemas are needed"),
        ("craft", [(b"?", b"hello")] * 3, "3 of 3 messages refused as craft; no other protocol fits them"),
    ],
)
def test_what_the_refused_messages_are_is_found(declared: str, sent: Sent, said: str, tmp_path: Path) -> None:
    with Lake.of(feed(tmp_path, protocol=declared)) as lake:
        assert decoded(lake, sent).quarantined == said


def test_an_option_that_is_missing_is_named(tmp_path: Path) -> None:
    with Lake.of(feed(tmp_path, protocol="simple-json")) as lake:
        found = decoded(lake, [(k, pa.compress(v or b"", "lz4", asbytes=True)) for k, v in simple("simple-json")])
    told = 'simple-json with large_message_handle_compression = "lz4"'
    assert found.quarantined == f"2 of 2 messages refused as simple-json; 2 decode as {told}"
    assert found.refused is not None
    assert found.refused.remedy.startswith(
        'if that is what the changefeed writes, set large_message_handle_compression = "lz4" under [options] in feed.toml'
    )


def test_a_few_refused_messages_are_counted_and_no_other_protocol_is_looked_for(tmp_path: Path) -> None:
    with Lake.of(feed(tmp_path)) as lake:
        found = decoded(lake, of("open") + of("craft", 1))
    assert found.refused is None
    assert found.quarantined.startswith("5 messages quarantined: 5 ")


def test_the_other_errors_of_an_hour_that_decodes_stay_as_they_are() -> None:
    with pytest.raises(OrderError, match=r"^NO_WATERMARK: x$"), refusals_named({}):
        raise OrderError("x", code="NO_WATERMARK")


def test_refused_messages_that_nothing_fits_are_counted_before_the_error() -> None:
    record = DecodeRecord.model_construct(refused=RefusedMessages(declared="craft", messages=3, refused=3))
    with pytest.raises(OrderError) as raised, refusals_named({HOUR: record}):
        raise OrderError("no resolved ts", code="NO_WATERMARK", remedy="wait")
    assert str(raised.value) == "NO_WATERMARK: 3 of 3 messages refused as craft; no other protocol fits them: no resolved ts; wait"
