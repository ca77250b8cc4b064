"""Landed objects are compared with what the manifest records of them, whenever they are read, and put back from the archive."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.archives.objects import Message
from tests.cli import feeds
from tests.cli.calls import call
from tests.conftest import FreshUri
from tests.io.kafka_broker import KafkaBroker
from tests.land.archive import HOUR, TOPIC, archive, at, codes, contents, lake, make_feed, manifest, messages, put
from tests.land.live import live_feed, produce
from tests.land.live import messages as live_messages
from tests.protocols.claim_messages import row
from tidelake.config.feed import Feed
from tidelake.decode.landed_hour import decode_job
from tidelake.decode.landed_source import LandedReader
from tidelake.errors import Coordinates, OrderError
from tidelake.land import land_hour
from tidelake.land.comparison import compare_hour
from tidelake.land.store import landed
from tidelake.land.store.manifest import Landed
from tidelake.order.schema_mismatches import raw_message
from tidelake.spark.worker_secrets import NONE

FLIPS = 60
SPOIL: dict[str, Callable[[bytes], bytes | None]] = {
    "deleted": lambda _: None,
    "cut short": lambda content: content[:-100],
    "changed": lambda content: content[:40] + bytes([content[40] ^ 4]) + content[41:],
}


def landed_feed(root: Path | str) -> tuple[Feed, Landed]:
    """A feed with a landed hour of rows that decode, and the first of its two objects."""
    feed = make_feed(root, protocol="open")
    rows = [row(number) for number in range(20)]
    put(feed, 0, [Message(n, value, key, 1_767_607_200_000 + n) for n, (key, value) in enumerate(rows)])
    put(feed, 1, messages(0, 9))
    land_hour(feed, HOUR)
    return feed, manifest(feed).objects[0]


def spoil(feed: Feed, one: Landed, how: str) -> None:
    content = SPOIL[how](lake(feed).read(one.key))
    if content is None:
        lake(feed).delete(one.key)
    else:
        lake(feed).write(one.key, content)


def decoded(feed: Feed, one: Landed) -> int:
    """How many events a worker makes of a landed object."""
    return sum(len(batch) for batch in LandedReader(decode_job(feed, [one])).rows([one.key], NONE))


def test_no_flipped_bit_of_a_landed_object_is_decoded(tmp_path: Path) -> None:
    feed, one = landed_feed(tmp_path)
    content, chosen, refused = lake(feed).read(one.key), random.Random(18), 0
    assert decoded(feed, one) == 21  # a schema and its rows
    for bit in (chosen.randrange(len(content) * 8) for _ in range(FLIPS)):
        wrong = bytearray(content)
        wrong[bit >> 3] ^= 1 << (bit & 7)
        lake(feed).write(one.key, bytes(wrong))
        with pytest.raises(OrderError, match="LANDED_DAMAGED"):
            decoded(feed, one)
        refused += 1
    assert refused == FLIPS


@pytest.mark.parametrize("how", SPOIL)
def test_what_is_refused_is_named_with_both_sums_and_the_command_that_heals_it(how: str, tmp_path: Path) -> None:
    feed, one = landed_feed(tmp_path)
    spoil(feed, one, how)
    with pytest.raises(OrderError) as caught:
        landed.read_landed(lake(feed), feed.name, one)
    found = "it does not exist" if how == "deleted" else "its sha256 is "
    assert str(caught.value).startswith(f"LANDED_DAMAGED shop[0]: {tmp_path}/lake/{one.key} differs from the landed object: {found}")
    assert str(caught.value).endswith(
        f", the manifest records {one.sha256}; run `tidelake land --feed small --hour 2026-01-05T10`, which restores it from the source"
    )
    assert caught.value.exit_code == 3


def test_what_was_damaged_on_its_way_is_read_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed, one = landed_feed(tmp_path)
    whole = lake(feed).read(one.key)
    answers = [whole[:-1], whole]
    monkeypatch.setattr(type(lake(feed)), "read_if_present", lambda *_: answers.pop(0))
    assert landed.read_landed(lake(feed), feed.name, one) == whole


@pytest.mark.parametrize("how", SPOIL)
def test_landing_again_puts_back_what_was_spoiled_and_says_so(how: str, tmp_path: Path) -> None:
    feed, one = landed_feed(tmp_path)
    before = contents(lake(feed))
    spoil(feed, one, how)
    report = land_hour(feed, HOUR)
    assert (report.new, report.generation, report.objects_written, report.objects_kept) == (False, 1, 1, 1)
    assert [(f.code, f.severity, f.detail) for f in report.findings] == [
        ("LANDED_DAMAGED", "warning", f"landed objects were missing or had other bytes, and are landed again: {one.key}")
    ]
    assert contents(lake(feed)) == before
    assert decoded(feed, one) == 21
    assert land_hour(feed, HOUR).findings == ()


def test_a_changed_object_is_put_back_on_s3(s3: FreshUri) -> None:
    feed, one = landed_feed(s3("landed"))
    before = contents(lake(feed))
    spoil(feed, one, "changed")
    assert codes(land_hour(feed, HOUR).findings) == [("LANDED_DAMAGED", "warning")]
    assert contents(lake(feed)) == before


def test_a_manifest_with_another_sum_than_its_object_s_makes_a_generation_that_is_right(tmp_path: Path) -> None:
    feed, one = landed_feed(tmp_path)
    key = next(info.key for info in lake(feed).objects("manifests/"))
    other = one.sha256[:-1] + ("0" if one.sha256[-1] != "0" else "1")
    lake(feed).write(key, lake(feed).read(key).replace(one.sha256.encode(), other.encode()))
    report = land_hour(feed, HOUR)
    assert (report.new, report.generation, codes(report.findings)) == (True, 2, [("LANDED_DAMAGED", "warning")])
    assert decoded(feed, manifest(feed).objects[0]) == 21
    assert (land_hour(feed, HOUR).new, land_hour(feed, HOUR).findings) == (False, ())


def test_what_the_archive_has_no_more_is_lost_in_words_and_the_rest_is_kept(tmp_path: Path) -> None:
    feed, one = landed_feed(tmp_path)
    spoil(feed, one, "changed")
    for info in list(archive(feed).objects()):
        archive(feed).delete(info.key)
    before = contents(lake(feed))
    with pytest.raises(OrderError) as caught:
        land_hour(feed, HOUR)
    assert (caught.value.code, caught.value.exit_code) == ("LANDED_LOST", 3)
    assert caught.value.message == (
        f"hour 2026-01-05T10: 1 of 2 landed objects are missing or have other bytes, the first is {one.key}; "
        "the source no longer has offsets 0–19 of shop[0]"
    )
    assert contents(lake(feed)) == before


def test_a_dry_run_says_what_is_gone_and_reads_nothing(tmp_path: Path) -> None:
    feed, one = landed_feed(tmp_path)
    spoil(feed, one, "deleted")
    assert [(f.code, f.detail) for f in compare_hour(feed, HOUR).findings] == [
        ("LANDED_DAMAGED", f"landed objects are missing or have another size: {one.key}")
    ]
    assert lake(feed).head(one.key) is None


def test_raw_bytes_of_the_quarantine_are_not_those_of_a_damaged_object(tmp_path: Path) -> None:
    feed, one = landed_feed(tmp_path)
    spoil(feed, one, "changed")
    with pytest.raises(OrderError, match="LANDED_DAMAGED"):
        raw_message(lake(feed), feed.name, "2026-01-05T10", Coordinates(one.topic, one.partition, one.first))


def test_the_command_line_heals_an_hour(tmp_path: Path) -> None:
    text = f'protocol = "craft"\ntopics = ["{TOPIC}"]\npartitions = 1\n[source]\nuri = "{tmp_path}/archive"\nlayout = "aiven-jsonl"\n'
    feeds.write(tmp_path / "schemas", feed=f'{text}closed_by = "quiet"\nquiet_minutes = 0\n[lake]\nuri = "{tmp_path}/lake"\n')
    feed = make_feed(tmp_path, name="shop", partitions=1)
    put(feed, 0, messages(0, 9))
    land = ("land", "--feed", "shop", "--hour", "2026-01-05T10", "--schemas", tmp_path / "schemas")
    assert call(*land).code == 0
    (one,) = manifest(feed).objects
    spoil(feed, one, "changed")
    done = call(*land)
    assert (done.code, "warning: LANDED_DAMAGED: landed objects were missing or had other bytes" in done.out) == (0, True)
    assert call(*land).out == "landed 2026-01-05T10: 10 messages of 1 source, unchanged\n"


def test_an_hour_of_live_topics_is_read_again_where_its_objects_are_gone(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    feed = live_feed(tmp_path, kafka, topic)
    produce(kafka, topic, 0, live_messages(0, 10))
    land_hour(feed, at(0))
    before, (one,) = contents(lake(feed)), manifest(feed).objects
    spoil(feed, one, "changed")
    produce(kafka, topic, 0, live_messages(10, 5))
    report = land_hour(feed, at(0))
    assert (report.new, report.objects_written, codes(report.findings)) == (False, 1, [("LANDED_DAMAGED", "warning")])
    assert contents(lake(feed)) == before
