"""The rule `closed_by = "resolved"`: messages behind an hour are read until every partition's resolved ts is beyond it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.archives.objects import Message
from tests.land.archive import HOUR, archive, codes, contents, cover, lake, make_feed, manifest, put
from tests.land.resolved import END, MUST, NOTES, SECOND, resolved, rows, waits
from tests.protocols import both_paths
from tidelake import protocols
from tidelake.config.feed import Feed, load_feed
from tidelake.errors import ConfigError
from tidelake.io.storage import Store
from tidelake.land import land_hour
from tidelake.land.seen import SeenMessages, read_on
from tidelake.protocols import decode
from tidelake.tso import show


def feed_of(tmp_path: Path, partitions: int = 1, **settings: Any) -> Feed:
    source = {"uri": f"{tmp_path}/archive", "layout": "aiven-jsonl", "closed_by": "resolved"} | settings.pop("source", {})
    return make_feed(tmp_path, protocol=settings.pop("protocol", "open"), partitions=partitions, source=source, **settings)


def downloads(monkeypatch: pytest.MonkeyPatch, feed: Feed) -> list[str]:
    """The archive's objects that are read from now on."""
    read: list[str] = []
    store = type(archive(feed))
    download = Store.download
    monkeypatch.setattr(store, "download", lambda self, key, path: read.append(key) or download(self, key, path))
    return read


def test_the_resolved_ts_of_every_partition_must_pass_the_hours_last_tso(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, partitions=3)
    for number in range(3):
        put(feed, number, rows(0, 9))
    put(feed, 0, [*rows(10, 12), resolved(13, END)], hours=1)
    put(feed, 1, [resolved(10, END - SECOND), resolved(11, END + 1), resolved(12, END + SECOND)], hours=1)
    assert waits(feed) == [
        f"shop[0]: its resolved ts is {show(END)}, at offset 13; {MUST}",
        "shop[2]: there is no object of a later hour",
    ]
    put(feed, 0, [resolved(14, END + 1)], hours=2)
    put(feed, 2, [*rows(10, 14)], hours=3)
    assert waits(feed) == [f"shop[2]: there is no resolved ts after the hour up to offset 14; {MUST}"]
    put(feed, 2, [resolved(15, END + SECOND)], hours=24)
    assert waits(feed) == []
    assert land_hour(feed, HOUR).findings == ()


def test_a_resolved_ts_counts_only_where_nothing_is_missing_before_it(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, rows(0, 9))
    put(feed, 0, [*rows(12, 13), resolved(14, END + SECOND)], hours=1)
    assert waits(feed) == []  # what the hour itself has is not known before it is landed
    report = land_hour(feed, HOUR)
    stands = f"its resolved ts is {show(END + SECOND)}, at offset 14, and before it no object has 10–11"
    assert codes(report.findings) == [("HOUR_NOT_CLOSED", "warning")]
    assert report.findings[0].detail == f"the hour may not be complete: {stands}"
    assert waits(feed) == [f"shop[0]: {stands}"]
    put(feed, 0, rows(11, 11), hours=4)
    assert waits(feed) == [f"shop[0]: {stands.replace('10–11', '10')}"]
    put(feed, 0, rows(10, 10), hours=3)
    assert (waits(feed), land_hour(feed, HOUR).findings) == ([], ())


def test_a_hole_in_the_hour_itself_keeps_it_open(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, policy={"on_gap": "warn"})
    put(feed, 0, [*rows(0, 3), *rows(6, 9)])
    put(feed, 0, [resolved(10, END + 1)], hours=1)
    report = land_hour(feed, HOUR)
    assert codes(report.findings) == [("GAP", "warning"), ("HOUR_NOT_CLOSED", "warning")]
    assert report.findings[1].detail.endswith("offset 10, and before it no object has 4–5")


def test_no_more_is_read_than_up_to_the_message_beyond_the_hour_and_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, rows(0, 9))
    first = put(feed, 0, [resolved(10, END - 9)], hours=1)
    second = put(feed, 0, [resolved(11, END - 3)], hours=1)
    read = downloads(monkeypatch, feed)
    assert waits(feed) == [f"shop[0]: its resolved ts is {show(END - 3)}, at offset 11; {MUST}"]
    assert read == [first, second]
    assert waits(feed) == [f"shop[0]: its resolved ts is {show(END - 3)}, at offset 11; {MUST}"]
    assert read == [first, second]
    third = put(feed, 0, [resolved(12, END + 3)], hours=1)
    put(feed, 0, [resolved(13, END + 9)], hours=1)
    put(feed, 0, [resolved(14, END + 9)], hours=2)
    assert (waits(feed), read) == ([], [first, second, third])
    (landed,) = [info.key for info in archive(feed).objects() if "hr=10" in info.key]
    assert (land_hour(feed, HOUR).new, read) == (True, [first, second, third, landed])
    assert (land_hour(feed, HOUR).new, read) == (False, [first, second, third, landed])
    archive(feed).write(first, archive(feed).read(first))  # as large as before, another ETag
    assert (waits(feed), read[4:]) == ([], [first])


def test_what_was_read_is_kept_apart_from_what_is_landed(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, rows(0, 9))
    assert (len(waits(feed)), contents(lake(feed))) == (1, {})
    put(feed, 0, [resolved(10, END - 9)], hours=1)
    waits(feed)
    assert list(contents(lake(feed))) == [NOTES]


def test_the_search_ends_where_a_hole_cannot_be_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects whose names begin behind the message beyond the hour hold nothing that lies before it."""
    feed = feed_of(tmp_path)
    read = downloads(monkeypatch, feed)
    needed = [put(feed, 0, rows(0, 9)), put(feed, 0, [resolved(12, END + 9)], hours=1)]
    put(feed, 0, rows(13, 20), hours=2)
    land_hour(feed, HOUR)
    needed.append(put(feed, 0, rows(10, 11), hours=2))
    assert (waits(feed), read) == ([], needed)


def test_batches_behind_the_one_that_is_beyond_the_hour_are_not_asked_for(tmp_path: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        for messages in ([*rows(5, 6), resolved(7, END)], [resolved(8, END + 1), resolved(9, END + 9)]):
            yield both_paths.batch([(m.key, m.value) for m in messages]).set_column(2, "offset", pa.array([m.offset for m in messages]))
        pytest.fail("read on")

    seen = SeenMessages(etag="e")
    assert read_on(seen, feed_of(tmp_path), batches(), END)
    assert seen == SeenMessages(etag="e", ranges=((5, 9),), resolved_ts=END + 1, offset=8)


def test_hours_behind_the_one_that_decides_are_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, [resolved(10, END + 9)], hours=2)
    listed: list[str] = []
    store = type(archive(feed))
    objects = store.objects
    monkeypatch.setattr(store, "objects", lambda self, prefix="": listed.append(prefix) or objects(self, prefix))
    assert waits(feed) == []
    assert [p for p in listed if "dt=" in p] == [f"shop/dt=2026-01-05/hr={h}/" for h in (10, 11, 12)]


def test_an_object_behind_the_hour_that_cannot_be_read_is_waited_for_and_the_hour_is_landed(tmp_path: Path) -> None:
    feed = feed_of(tmp_path)
    put(feed, 0, rows(0, 9))
    key = put(feed, 0, [resolved(10, END + 9)], hours=1)
    archive(feed).write(key, archive(feed).read(key)[:-9])
    report = land_hour(feed, HOUR)
    assert (report.messages, codes(report.findings)) == (10, [("HOUR_NOT_CLOSED", "warning")])
    assert f"its resolved ts after the hour is unknown: {key}" in report.findings[0].detail


def test_watermarks_of_avro_are_found_without_schemas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []
    monkeypatch.setattr(
        protocols, "decode", lambda protocol, batch, context: decoded.append(len(batch)) or decode(protocol, batch, context)
    )
    avro = {"protocol": "avro", "avro": {"schemas": "nowhere.json"}, "options": {"avro_enable_watermark": True}}
    feed = feed_of(tmp_path, **avro)
    put(feed, 0, [Message(0, b"\0\0\0\0\7row", b"\0\0\0\0\6key")])
    put(feed, 0, [Message(1, b"\0\0\0\0\7row", b"\0\0\0\0\6key"), Message(2, b"\2" + END.to_bytes(8, "big"), None)], hours=1)
    assert waits(feed) == [f"shop[0]: its resolved ts is {show(END)}, at offset 2; {MUST}"]
    put(feed, 0, [Message(3, b"\2" + (END + 1).to_bytes(8, "big"), None)], hours=1)
    assert (waits(feed), land_hour(feed, HOUR).findings, sum(decoded)) == ([], (), 2)


def test_what_the_log_never_held_is_not_missed(tmp_path: Path) -> None:
    """Objects of `tidelake archive` say which offsets they cover, those of transaction markers too."""
    feed = feed_of(tmp_path, source={"layout": "canonical"})
    cover(feed, put(feed, 0, rows(0, 9)), "0-10")
    cover(feed, put(feed, 0, rows(12, 13), hours=1), "11-14")
    cover(feed, put(feed, 0, [rows(16, 16)[0], resolved(18, END + 1)], hours=1), "15-19")
    assert land_hour(feed, HOUR).findings[0].code == "LEGAL_GAPS"
    assert "HOUR_NOT_CLOSED" not in manifest(feed).model_dump_json()


def test_the_rule_needs_a_resolved_ts_in_the_messages(tmp_path: Path) -> None:
    folder = tmp_path / "schemas" / "shop"
    folder.mkdir(parents=True)
    text = 'protocol = "open"\ntopics = ["shop"]\npartitions = 1\n[source]\nuri = "/a"\nlayout = "aiven-jsonl"\nclosed_by = "resolved"\n'
    text += '[lake]\nuri = "/b"\n[watermark]\n'
    (folder / "feed.toml").write_text(text + 'from = "messages"\n')
    feed = load_feed(tmp_path / "schemas", "shop", {})
    assert (feed.closed_by, feed.quiet_minutes) == ("resolved", 0)
    (folder / "feed.toml").write_text(text + 'from = "checkpoints"\nuri = "/c"\n')
    with pytest.raises(ConfigError, match=r'source\.closed_by: "resolved" needs the resolved ts in the messages: \[watermark\] from'):
        load_feed(tmp_path / "schemas", "shop", {})
