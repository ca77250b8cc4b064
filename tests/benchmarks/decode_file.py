"""Measure one decoder on one file, on one thread; prints one JSON object. A child of the decoders' section.

The yardstick Y, CPU seconds of `json.loads` per value of the canal-json file, is taken before and after every pass, and
a pass is measured in the mean of the two: what slows the machine for a while slows both.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from statistics import mean, median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.benchmarks.measure import peak, reset_peak
from tests.benchmarks.messages import BATCH_MESSAGES, YARDSTICK, Messages, load, with_value
from tidelake.protocols import decode

ROWS = 200_000
BAD: dict[str, Callable[[bytes], bytes]] = {
    "cut in half": lambda value: value[: len(value) // 2],
    "last byte missing": lambda value: value[:-1],
    "first byte 0xFF": lambda value: b"\xff" + value[1:],
}


def main(name: str, protocol: str, passes: int) -> dict[str, Any]:
    """All that is known of the decoder on this file."""
    pa.set_cpu_count(1)
    messages, yardstick = load(name, protocol), load(YARDSTICK, "canal-json")
    texts = [v for v in yardstick.values.to_pylist() if v is not None]
    first = _first_batch(messages)
    rows, _ = _pass(messages, 1)
    times = max(1, round(ROWS / rows))
    reset_peak()
    _pass(messages, times)  # the process's memory grows to its size: pages of a new heap cost more than decoding into them
    found, y = list[tuple[float, float]](), _yardstick(texts)
    for _ in range(passes):
        decoded, spent = _pass(messages, times)
        assert decoded == rows * times, f"{decoded} rows of {rows * times}"
        ns = spent / decoded * 1e9
        before, y = y, _yardstick(texts)
        found.append((ns, mean((before, y))))
    held = peak()
    return {
        "rows": rows * times,
        "messages": len(messages) * times,
        "bytes_per_row": messages.bytes / rows,
        "ns": [ns for ns, _ in found],
        "y_ns": [y for _, y in found],
        "peak": held,
        "first": first,
        "bad": _bad_message(messages, passes),
    }


def _pass(messages: Messages, times: int) -> tuple[int, float]:
    """Row events of all batches and CPU seconds, in a context that knows no schema yet. Making the batches does not count."""
    context, rows, spent = messages.context(), 0, 0.0
    for batch in messages.batches(times):
        started = time.process_time()
        events = decode(messages.protocol, batch, context)
        spent += time.process_time() - started
        kinds = _kinds(events)
        assert "rejected" not in kinds, kinds
        rows += kinds["row"]
    return rows, spent


def _first_batch(messages: Messages) -> dict[str, float]:
    """Seconds of the first batch of the process: the decoder's import, its compiled code read from disk or compiled, the decoding."""
    started, cpu = time.monotonic(), time.process_time()
    decode(messages.protocol, next(messages.batches(1)), messages.context())
    return {"seconds": time.monotonic() - started, "cpu": time.process_time() - cpu}


def _bad_message(messages: Messages, passes: int) -> dict[str, float]:
    """CPU time of a batch with one bad message in its middle, in that of the same batch without, by what is wrong with it.

    Also checks that the bad one alone is rejected and that every other message gives the rows that it gave before.
    """
    clean = next(messages.batches(max(1, -(-BATCH_MESSAGES // len(messages)))))
    at = next(i for i in range(len(clean) // 2, len(clean)) if clean.column("value")[i].is_valid)
    value = clean.column("value")[at].as_py()
    spoilt = {what: with_value(clean, at, spoil(value)) for what, spoil in BAD.items()}
    offset = clean.column("offset")[at].as_py()
    taken: dict[str, list[float]] = {what: [] for what in spoilt}
    for _ in range(passes):
        base, expected = _timed(messages, clean)
        for what, batch in spoilt.items():
            cpu, events = _timed(messages, batch)
            _check_only(events, expected, offset)
            taken[what].append(cpu / base)
    return {what: median(ratios) for what, ratios in taken.items()}


def _timed(messages: Messages, batch: pa.RecordBatch) -> tuple[float, pa.RecordBatch]:
    context = messages.context()
    started = time.process_time()
    events = decode(messages.protocol, batch, context)
    return time.process_time() - started, events


def _check_only(events: pa.RecordBatch, expected: pa.RecordBatch, offset: int) -> None:
    refused = events.filter(pc.equal(events.column("kind"), "rejected")).column("offset").to_pylist()
    assert refused == [offset], refused
    others = (e.filter(pc.not_equal(e.column("offset"), offset)) for e in (events, expected))
    assert next(others).equals(next(others)), "another message's events changed"


def _kinds(events: pa.RecordBatch) -> dict[str, int]:
    return {c["values"]: c["counts"] for c in pc.value_counts(events.column("kind")).to_pylist()}


def _yardstick(texts: Sequence[bytes]) -> float:
    """CPU ns per value."""
    started = time.process_time()
    for text in texts:
        json.loads(text)
    return (time.process_time() - started) / len(texts) * 1e9


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
