"""Archives of messages without commit ts: the feed to start from is ordered by offsets, and says what that cannot promise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.archives.objects import WRITERS, Message
from tests.order.offset_feeds import encoded, put
from tests.sniff.archived import load, looked, only
from tidelake.sniff.advice import feed_lines
from tidelake.sniff.promises import UNSURE, blockers, promises
from tidelake.sniff.starter import starter

KEY = "shop/dt=2026-01-05/hr=10/shop+0+00000000000000000000.jsonl"


@pytest.mark.parametrize("protocol", ["canal", "canal-json", "maxwell"])
def test_a_feed_of_such_an_archive_is_ordered_by_offsets(tmp_path: Path, protocol: str) -> None:
    rows = [encoded(protocol, [put("k", {"id": str(n), "v": "a"})])[0] for n in range(3)]
    target = tmp_path / "archive" / KEY
    target.parent.mkdir(parents=True)
    target.write_bytes(WRITERS["aiven-jsonl"][0]([Message(i, value, key) for i, (key, value) in enumerate(rows)]))
    archive = looked(tmp_path / "archive")
    section = only(archive)
    assert section.guess is not None
    assert (section.guess.protocol, blockers(section)) == (protocol, [])
    (order,) = (p for p in promises(section) if p.what == "order")
    assert (order.state, order.says.partition(":")[0]) == (UNSURE, "3 rows without commit ts")
    assert bool(order.mend) == (protocol == "canal-json")
    start = starter(section, archive)
    assert "docs/offsets.md" in start.text
    assert [m.partition(":")[0] for m in start.missing] == ["tables.sql"]
    feed = load(tmp_path, start, archive)
    assert (feed.protocol, feed.by_offsets, feed.watermark.one_partition_per) == (protocol, True, "table")
    assert ('from = "offsets"  # the rows carry no commit ts: docs/offsets.md' in feed_lines(section.guess)) == (protocol != "canal-json")
