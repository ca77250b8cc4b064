"""Messages per second through put, get and ack of the event store, with one producer and one consumer thread.

python -m tests.benchmarks.event_store: prints the median and the best of several runs; exit code 1 where the median is below what
landing needs (MUST). The store holds slices of 10,000 messages, so what it costs is per slice.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass
from threading import Thread

from tidelake.land.store.event_store import EventStore
from tidelake.land.store.item import ItemPosition

MUST = 20_000_000  # messages/s
MESSAGES = 10_000  # a slice
SLICE_BYTES = 2 << 20
BUDGET = 64 << 20


@dataclass(frozen=True, slots=True)
class Slice:
    """What the lander puts: a slice of messages that knows its sums."""

    position: ItemPosition
    nbytes: int = SLICE_BYTES
    events: int = MESSAGES
    rows: int = MESSAGES
    timestamp_ms: int = 1
    is_boundary: bool = False
    is_ddl: bool = False


def main() -> int:
    """0 if the store is fast enough."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.event_store", description=__doc__)
    parser.add_argument("--slices", type=int, default=20_000, help="slices of 10,000 messages a run (default 20,000)")
    parser.add_argument("--runs", type=int, default=5)
    flags = parser.parse_args()
    rates = [rate(flags.slices) for _ in range(flags.runs)]
    best, median = max(rates), statistics.median(rates)
    sys.stdout.write(
        f"event store: {median:,.0f} messages/s in the median of {flags.runs} runs, {best:,.0f} at best "
        f"({1e6 * MESSAGES / median:.1f} µs a slice; must be {MUST:,} messages/s)\n"
    )
    return int(median < MUST)


def rate(slices: int) -> float:
    """Messages/s of one run; every message is put, taken and confirmed once, or it raises AssertionError."""
    store: EventStore[Slice] = EventStore(slots=1024, budget=BUDGET)
    store.start()
    items = [Slice(ItemPosition(timestamp_ms=1, journal="shop[0]", offset=i * MESSAGES)) for i in range(slices)]

    def produce() -> None:
        for item in items:
            store.put([item])
        store.close()

    producer = Thread(target=produce, name="producer")
    started = time.perf_counter()
    producer.start()
    while batch := store.get(1):
        store.ack(batch.handle)
    seconds = time.perf_counter() - started
    producer.join()
    acked = store.metrics().ack.events
    assert acked == slices * MESSAGES, acked
    return acked / seconds


if __name__ == "__main__":
    sys.exit(main())
