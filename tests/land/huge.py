"""Lands the archive below a root on S3: `python -m tests.land.huge ROOT MB`. Prints how many messages, and the bytes it took at most."""

from __future__ import annotations

import sys

import psutil

from tests.benchmarks.measure import peak, reset_peak
from tests.land.archive import HOUR, make_feed
from tidelake.config.feed import Feed
from tidelake.land import land_hour


def feed_of(root: str, megabytes: int) -> Feed:
    """One partition, whose messages are in flight up to this many MB."""
    source = {"uri": f"{root}/archive", "layout": "aiven-jsonl", "in_flight": f"{megabytes} MB"}
    return make_feed(root, partitions=1, source=source)


if __name__ == "__main__":
    before = psutil.Process().memory_info().rss
    reset_peak()
    report = land_hour(feed_of(sys.argv[1], int(sys.argv[2])), HOUR)
    sys.stdout.write(f"{report.messages} {peak() - before}")
