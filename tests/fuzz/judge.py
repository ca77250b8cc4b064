"""The promises that hold for every message, whatever its bytes (SECURITY.md).

* Events, or one `rejected` with a code of errors.DECODE_CODES; never another exception.
* The same by both paths: `decode` of the batch, and the general reader alone.
* At most 1 s per MB, and 4 bytes of memory per byte beside 64 MB.

Many messages are measured together, and one by one only where that is too much. The size of a compressed message is that of what it holds.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from tests.fuzz.corpus import Group, size
from tests.fuzz.peak import Peak, settle
from tests.fuzz.tally import MB, Cost, Fault, Tally
from tests.protocols.both_paths import Message, batch, read
from tidelake.errors import Coordinates
from tidelake.history.event import Event, EventRows, schema_rows
from tidelake.protocols import Context, decode

SECONDS = 0.05  # beside 1 s per MB: a garbage collection weighs as much on a small message
PER_BYTE, MEMORY = 4, 64 * MB  # bytes of memory for each byte of a message, and beside that
_EACH = 0.001  # seconds, of each message in a batch: what the calls cost


def judge(group: Group, context: Context, messages: Sequence[Message], tally: Tally) -> None:
    """Try small messages, all in one batch."""
    tally.messages += len(messages)
    if group.protocol.startswith("simple-"):  # a batch's schemas are for all of its rows
        for message in messages:
            _caught(lambda m=message: read(group.protocol, m, context))
    peak = Peak()
    good: list[Message] = []
    found: list[list[Event]] = []
    for message in messages:
        start = time.thread_time()  # not the clock: the machine may be busy
        events, raised = _caught(lambda m=message: read(group.protocol, m, context))
        seconds = time.thread_time() - start
        if events is None:
            tally.faults.append(Fault.of(group, message, f"the general reader raised {raised}"))
            continue
        good.append(message)
        found.append(events)
        tally.timed(seconds, size(message), f"a {group.protocol} message")
        if seconds > _allowed(size(message)):
            _again(group, message, tally)
    _count(found, tally)
    _compare(group, context, good, found, tally)
    if peak.grown() > PER_BYTE * sum(map(size, messages)) + MEMORY:
        alone = Tally()  # they are counted already
        for message in messages:
            judge_alone(group, message, size(message), "a small message", alone)
        tally.faults += alone.faults


def _compare(group: Group, context: Context, messages: list[Message], found: list[list[Event]], tally: Tally) -> None:
    """By the columns, what the general reader found."""
    start = time.process_time()
    got, raised = _caught(lambda: decode(group.protocol, batch(messages), context))
    seconds = time.process_time() - start
    if got is None:
        tally.faults += [_in_company(group, messages, f"decode raised {raised}")]
        return
    want, raised = _caught(lambda: rows_of(found))
    if want is None or not got.equals(want):
        tally.faults += _differing(group, messages, found, got) or [_in_company(group, messages, f"no batch holds the events: {raised}")]
    if seconds > sum(map(size, messages)) / MB + SECONDS + _EACH * len(messages):
        for message in messages:
            _again(group, message, tally)


def rows_of(found: Sequence[list[Event]]) -> pa.RecordBatch:
    """The EVENT batch that these events of successive messages make."""
    rows = EventRows()
    for i, events in enumerate(found):
        rows.add(Coordinates("t", 0, i), 1, events)
    return pa.concat_batches([rows.batch(), schema_rows(rows.row_schemas.values())])


def _differing(group: Group, messages: list[Message], found: list[list[Event]], got: pa.RecordBatch) -> list[Fault]:
    """The messages whose events differ between the paths."""
    by_columns: list[list[dict[str, Any]]] = [[] for _ in messages]
    for row in got.to_pylist():
        if row["kind"] != "row_schema":
            by_columns[row["offset"]].append(row)
    faults = []
    for i, (message, events) in enumerate(zip(messages, found, strict=True)):
        want, raised = _caught(lambda e=events, i=i: [r | {"offset": i} for r in rows_of([e]).to_pylist() if r["kind"] != "row_schema"])
        if want != by_columns[i]:
            faults.append(Fault.of(group, message, f"paths disagree: read {raised or want}, decode {by_columns[i]}"[:3_000]))
    return faults


def _in_company(group: Group, messages: list[Message], what: str) -> Fault:
    """The fault of the first message that has it alone; else of the last of the batch."""
    for message in messages:
        _, raised = _caught(lambda m=message: decode(group.protocol, batch([m]), group.context()))
        if raised:
            return Fault.of(group, message, what)
    return Fault.of(group, messages[-1], f"only in the company of {len(messages) - 1} others: {what}")


def _again(group: Group, message: Message, tally: Tally) -> None:
    """Time it alone: the machine may have been busy."""
    for path in _paths(group, message).values():
        seconds = min(_seconds(path) for _ in range(2))
        if seconds > _allowed(size(message)):
            tally.faults.append(Fault.of(group, message, f"took {seconds:.2f} s for {size(message):,} bytes"))


def judge_alone(group: Group, message: Message, weight: int, what: str, tally: Tally) -> None:
    """Try one message by itself, time and memory measured. weight: its size once decompressed."""
    tally.messages += 1
    found: dict[str, Any] = {}
    for name, path in _paths(group, message).items():
        settle()
        peak, start = Peak(), time.process_time()
        found[name], raised = _caught(path)
        seconds, grown = time.process_time() - start, peak.grown()
        where = f"{name} of {what} ({group.protocol})"
        tally.timed(seconds, weight, where)
        if weight >= MB:
            tally.note("fattest", Cost(grown / weight, weight, where))
        faults = [f"{where} raised {raised}"] if raised else []
        if seconds > _allowed(weight):
            faults.append(f"{where} took {seconds:.2f} s for {weight:,} bytes")
        if grown > PER_BYTE * weight + MEMORY:
            faults.append(f"{where} took {grown:,} bytes of memory for {weight:,}")
        tally.faults += [Fault.of(group, message, fault) for fault in faults]
    if found.get("read") is not None and found["decode"] is not None:
        _count([found["read"]], tally)
        if not found["decode"].equals(rows_of([found["read"]])):
            tally.faults.append(Fault.of(group, message, f"paths disagree on {what}"))
    elif found["decode"] is not None:
        code = found["decode"].column("error_code")[0].as_py()
        tally.rejected[code] += 1
        if code != "TOO_LARGE":
            tally.faults.append(Fault.of(group, message, f"{what} above the cap gives {code}"))


def _paths(group: Group, message: Message) -> dict[str, Callable[[], Any]]:
    """Both ways to decode it, contexts of their own. The cap is `decode`'s to hold: above it the general reader is not asked."""
    context, table = group.context(), batch([message])
    paths: dict[str, Callable[[], Any]] = {"decode": lambda: decode(group.protocol, table, context)}
    if size(message) <= context.max_bytes:
        alone = group.context()
        paths["read"] = lambda: read(group.protocol, message, alone)
    return paths


def _count(found: Sequence[list[Event]], tally: Tally) -> None:
    for events in found:
        if events and events[0].kind == "rejected":
            tally.rejected[events[0].error_code or ""] += 1
        else:
            tally.events += len(events)


def _allowed(weight: int) -> float:
    return weight / MB + SECONDS


def _seconds(path: Callable[[], Any]) -> float:
    start = time.process_time()
    path()
    return time.process_time() - start


def _caught(call: Callable[[], Any]) -> tuple[Any, str]:
    """Its result and "", or None and what it raised: whatever that is, it is what we look for."""
    try:
        return call(), ""
    except Exception as e:  # noqa: BLE001
        place = traceback.extract_tb(e.__traceback__)[-1]
        return None, f"{type(e).__name__}: {str(e)[:500]} ({place.filename.rpartition('/')[2]}:{place.lineno})"
