"""Feeds without commit ts, ordered by offsets: every cut, and every place between, is what plain Python makes of the messages in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.lake import lakes
from tests.lake.histories import publish, rows_of
from tests.lake.offset_feeds import SQL, OffsetFeeder, Step, Truth, ddl, drop, encoded, put
from tidelake.feed import Watermark
from tidelake.lake.opened import Lake
from tidelake.tso import end_ts, parse_hour

pytestmark = pytest.mark.usefixtures("spark_app")

A, B, C = {"id": "1", "v": "a"}, {"id": "1", "v": "b"}, {"id": "1", "v": "c"}
TWO, MOVED = {"id": "2", "v": "b"}, {"id": "2", "v": "c"}
WIDE = {"id": "3", "v": "x", "n": "5"}
FIRST = [
    [put("k", A), put("k", B, A), put("k", C, B), put("k", {"id": "7", "v": "s"})],
    [put("k", MOVED, C), drop("k", MOVED), put("k", A), drop("k", A), put("k", TWO)],
]
SECOND = [
    [put("k", {"id": "8", "v": "t"}), ddl("k", "ALTER TABLE k ADD COLUMN n INT NULL DEFAULT 4"), put("k", WIDE)],
    [drop("k", WIDE), put("k", WIDE), drop("k", WIDE), put("k", WIDE | {"n": None})],
    [put("k", {"id": "9", "v": "u", "n": "1"}, {"id": "7", "v": "s", "n": "4"})],
]
THIRD = [[put("k", A | {"n": "1"}), ddl("k", "TRUNCATE TABLE k"), put("k", B | {"n": "2"}), put("k", C | {"n": "3"}, B | {"n": "2"})]]
BARE = [[put("m", {"v": "x"}), put("m", {"v": "x"}), put("m", {"v": "y"})], [drop("m", {"v": "x"})], [put("m", {"v": "x"}, {"v": "y"})]]


@contextmanager
def opened(folder: Path, protocol: str, partitions: int = 2, **watermark: Any) -> Iterator[tuple[OffsetFeeder, Lake]]:
    """A fresh feed ordered by offsets and its lake."""
    rule = Watermark.model_validate({"from": "offsets"} | watermark)
    feed = lakes.feed(folder, protocol=protocol, partitions=partitions, watermark=rule)
    made = OffsetFeeder(folder=folder, feed=feed, tables_sql=SQL)
    (folder / "lake").mkdir(exist_ok=True)
    with Lake.of(made.feed) as lake:
        yield made, lake


def sent(protocol: str, messages: Sequence[Sequence[Step]]) -> list[Any]:
    """The messages as the protocol says them."""
    return [m for steps in messages for m in encoded(protocol, steps)]


@pytest.mark.parametrize(
    "protocol", ["canal", pytest.param("canal-json", marks=pytest.mark.long), pytest.param("maxwell", marks=pytest.mark.long)]
)
def test_every_cut_and_every_earlier_one_is_the_truth(tmp_path: Path, protocol: str) -> None:
    truth, cuts = Truth(), []
    with opened(tmp_path, protocol) as (feed, lake):
        for share, bare in zip((FIRST, SECOND, THIRD), ([x] for x in BARE), strict=True):
            hour = feed.put(lake, {0: sent(protocol, share), 1: sent(protocol, bare)})
            for step in (s for message in [*share, *bare] for s in message):
                truth.apply(step)
            cut = publish(lake, hour)
            assert cut is not None
            assert (cut.resolved_ts, cut.incomplete) == (end_ts(parse_hour(hour)), False)
            cuts.append((cut.resolved_ts, truth.of("k"), truth.of("m")))
            assert (rows_of(lake, "d.k"), rows_of(lake, "d.m")) == cuts[-1][1:]
        for ts, keyed, bare_rows in cuts:
            assert (rows_of(lake, "d.k", ts), rows_of(lake, "d.m", ts)) == (keyed, bare_rows)
