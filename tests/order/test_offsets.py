"""Feeds without commit ts, ordered by offsets: every cut, and every place between, is what plain Python makes of the messages in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.archives.objects import Message
from tests.lake.histories import TOPIC, rows_of
from tests.land import archive
from tests.logged import log_calls
from tests.order.offset_feeds import A, B, C, Truth, ddl, drop, opened, put, sent
from tidelake.run import run_hour
from tidelake.tso import begin_ts, end_ts, format_hour

pytestmark = pytest.mark.usefixtures("small_hours")

TWO, MOVED, SEVEN = {"id": "2", "v": "b"}, {"id": "2", "v": "c"}, {"id": "7", "v": "s"}
WIDE = {"id": "3", "v": "x", "n": "5"}
FIRST = [
    [put("k", A), put("k", B, A), put("k", C, B), put("k", {"id": "6", "v": "gone"})],
    [put("k", {"id": "5", "v": "gone"}), ddl("k", "TRUNCATE TABLE k"), put("k", C), put("k", SEVEN)],
    [put("k", MOVED, C), drop("k", MOVED), put("k", A), drop("k", A), put("k", TWO)],
    [put("k", B), put("k", {"id": "4", "v": "b"}, B), put("k", A), put("k", {"id": "5", "v": "a"}, A)],
]
SECOND = [
    [put("k", {"id": "8", "v": "t"}), ddl("k", "ALTER TABLE k ADD COLUMN n INT NULL DEFAULT 4"), put("k", WIDE)],
    [drop("k", WIDE), put("k", WIDE), drop("k", WIDE), put("k", WIDE | {"n": None})],
    [put("k", {"id": "9", "v": "u", "n": "1"}, SEVEN | {"n": "4"})],
]
BARE = [
    [[put("m", {"v": "x"}), put("m", {"v": "x"}), put("m", {"v": "y"})], [drop("m", {"v": "x"})]],
    [[put("m", {"v": "x"}, {"v": "y"})], [put("m", {"v": "x"})]],
]
_LONG = [pytest.param(p, marks=pytest.mark.long) for p in ("canal-json", "maxwell", "debezium")]


@pytest.mark.parametrize("protocol", ["canal", *_LONG])
def test_every_hour_from_the_archive_on_is_the_truth_and_so_is_every_earlier_one(tmp_path: Path, protocol: str) -> None:
    truth, cuts, offsets = Truth(), [], {0: 1 << 40, 1: 0}
    with opened(tmp_path, protocol) as (feed, lake):
        for number, shares in enumerate(zip((FIRST, SECOND), BARE, strict=True)):
            for partition, share in enumerate(shares):
                messages = [Message(offsets[partition] + i, v, k) for i, (k, v) in enumerate(sent(protocol, share))]
                archive.put(feed.feed, partition, messages, hours=number, topic=TOPIC)
                offsets[partition] += len(messages)
            for step in (s for share in shares for message in share for s in message):
                truth.apply(step)
            begun: list[str] = []
            hour = format_hour(archive.at(number))
            with log_calls(lambda stage, what, hour=hour, begun=begun: begun.append(stage) if what == hour else None):
                compacted = run_hour(lake, archive.at(number)).compacted
            assert begun == ["land", "decode", "order", "validate", "compact"]
            assert compacted is not None
            assert compacted.cut is not None
            cut = compacted.cut
            assert (cut.resolved_ts, cut.incomplete) == (end_ts(archive.at(number)), False)
            cuts.append((cut.resolved_ts, truth.of("k"), truth.of("m")))
        for ts, keyed, bare in cuts:
            assert (rows_of(lake, "d.k", ts), rows_of(lake, "d.m", ts)) == (keyed, bare)
        assert begin_ts(archive.at(1)) - 1 == cuts[0][0], "hours join"
