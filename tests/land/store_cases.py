"""Plays scenarios of Canal's store (tests/data/vectors/canal_store_cases.json.xz, and our own in the same form) against the event store.

A call of a scenario is a thread. After each step the store must come to the expected state; a call that must wait is one that the store
counts as waiting. Nothing here measures time: a call that used up its timeout is one that waited and got less than it wanted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from tidelake.errors import EventStoreError
from tidelake.land.store.event_store import EventStore
from tidelake.land.store.item import ItemBatch, ItemPosition

OWN = Path(__file__).with_name("store_cases.json")
PATIENCE = 2_000  # polls of 10 ms until a state that does not come is a failure
MOMENT = 0.05  # seconds in which a call that should go on waiting must not end

_DDL = frozenset("ALTER CREATE ERASE RENAME TRUNCATE CINDEX DINDEX".split())
_KINDS = {"RUNNING": "LIFECYCLE", "NOT_RUNNING": "LIFECYCLE", "NO_MATCH": "STORE_NO_MATCH", "FAILED": "INTERRUPTED"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a scenario. Canal's store knows transactions by the event's type; a BEGIN with a GTID is no boundary (1.7)."""

    id: str
    type: str = "ROWDATA"
    gtid: str | None = None
    nbytes: int
    rows: int
    position: ItemPosition
    events: int = 1

    @property
    def timestamp_ms(self) -> int:
        return self.position.timestamp_ms

    @property
    def is_ddl(self) -> bool:
        return self.type in _DDL

    @property
    def is_boundary(self) -> bool:
        return self.type == "TRANSACTIONEND" or (self.type == "TRANSACTIONBEGIN" and not self.gtid)


class Call(Thread):
    """A put or get in a thread of its own: its result, or the error that it ended with."""

    def __init__(self, do: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._do = do
        self.result: Any = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.result = self._do()
        except (EventStoreError, ValueError) as e:
            self.error = e

    def value(self) -> Any:
        self.join(PATIENCE / 100)
        assert not self.is_alive(), "the call still waits"
        if self.error:
            raise self.error
        return self.result


def own_cases() -> list[dict[str, Any]]:
    """Our scenarios; `instead_of` names the quirk of Canal's that we do not share, `why` says the reason."""
    cases: list[dict[str, Any]] = json.loads(OWN.read_text())["scenarios"]
    return cases


def play(case: Mapping[str, Any]) -> None:
    """Play one scenario; raises AssertionError with the step that went another way."""
    scene = _Scene(case)
    for number, step in enumerate(case["steps"]):
        try:
            scene.step(step)
        except AssertionError as e:
            raise AssertionError(f"{case['id']}, step {number} {json.dumps(step)[:300]}: {e}") from e
        finally:
            scene.after(number == len(case["steps"]) - 1)


class _Scene:
    """The store of one scenario and what the scenario saved. It is made at `start`: a size that is wrong is refused there."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self._config = case["config"]
        self._events = case.get("events", {})
        self._store = self._made() if self._valid() else None
        self._calls: dict[str, Call] = {}
        self._saved: dict[str, Any] = {}
        self._lone_ddl_bytes = 0
        self._waits = 0

    def step(self, step: Mapping[str, Any]) -> None:
        arguments, expect = step.get("args") or {}, step["expect"]
        self._waits = self._all_waits()
        if step["op"] in ("put", "get") and "call" in step:
            self._start_call(step["call"], step["op"], arguments, expect)
            if expect.get("blocked"):
                return self._check_state(expect)
            step = {"op": "join", "args": {"call": step["call"]}, "expect": expect, **{k: step[k] for k in ("save",) if k in step}}
            arguments = step["args"]
        wrong = None
        try:
            result = getattr(self, "_" + step["op"])(**arguments)
        except (EventStoreError, ValueError) as e:
            result, wrong = None, e
        self._check_error(expect, wrong)
        if wrong is None:
            self._check_result(step, result)
        self._check_state(expect)

    def after(self, last: bool) -> None:
        """Free the threads that still wait at the end of a scenario."""
        if last and self._store and any(call.is_alive() for call in self._calls.values()):
            self._store.fail(InterruptedError())
            for call in self._calls.values():
                call.join()

    def _valid(self) -> bool:
        size = self._config["bufferSize"]
        return bool(size > 0 and size & (size - 1) == 0)

    def _made(self) -> EventStore[Event]:
        size, unit = self._config["bufferSize"], self._config["bufferMemUnit"]
        budget = size * unit if self._in_memory_mode else None
        return EventStore(slots=size, budget=budget, isolate_ddl=self._config["ddlIsolation"])

    @property
    def _in_memory_mode(self) -> bool:
        return bool(self._config["batchMode"] == "MEMSIZE")

    @property
    def _its(self) -> EventStore[Event]:
        assert self._store is not None
        return self._store

    def _all_waits(self) -> int:
        metrics = self._store.metrics() if self._store else None
        return metrics.put.waits + metrics.get.waits if metrics else 0

    def _event(self, id: str) -> Event:
        says = self._events.get(id) or {"journal": "binlog.1", "offset": int(id[1:]), "ts_ms": 1000 + int(id[1:])}
        kind = says.get("type") or {"r": "ROWDATA", "d": "ALTER", "t": "TRANSACTIONEND"}[id[0]]
        position = ItemPosition(timestamp_ms=says["ts_ms"], journal=says["journal"], offset=says["offset"])
        return Event(id=id, type=kind, gtid=says.get("gtid"), nbytes=says.get("length", 100), rows=says.get("rows", 0), position=position)

    def _position(self, says: Mapping[str, Any] | None) -> Any:
        if says is None:
            return None
        if "event" in says:
            return self._event(says["event"]).position
        if "saved" in says:
            saved = self._saved[says["saved"]]
            return {"start": saved.first, "end": saved.last, "ack": saved.resume}[says["field"]] if "field" in says else saved
        journal = (says["journal"] or "").strip() or None  # Canal's blank name of a binlog file is our None
        return ItemPosition(timestamp_ms=says["ts_ms"], journal=journal, offset=says["offset"])

    def _size(self, size: int) -> int:
        return size * self._config["bufferMemUnit"] if self._in_memory_mode else size

    # the operations of a scenario

    def _start(self) -> None:
        store = self._store or self._made()
        store.start()

    def _stop(self) -> None:
        self._its.stop()
        self._lone_ddl_bytes = 0

    def _close(self) -> None:
        self._its.close()

    def _fail(self) -> None:
        self._its.fail(InterruptedError())

    def _put(self, events: list[str], timeout_ms: int | None = None) -> bool | None:
        stored = self._its.put([self._event(e) for e in events], None if timeout_ms is None else timeout_ms / 1000)
        return None if timeout_ms is None else stored  # Canal's put without a timeout returns nothing

    def _tryPut(self, events: list[str]) -> bool:
        return self._its.try_put([self._event(e) for e in events])

    def _get(self, batchSize: int, timeout_ms: int | None = None, start: Any = None) -> ItemBatch[Event]:
        return self._its.get(self._size(batchSize), None if timeout_ms is None else timeout_ms / 1000)

    def _tryGet(self, batchSize: int, start: Any = None) -> ItemBatch[Event]:
        return self._its.try_get(self._size(batchSize))

    def _ack(self, position: Any = None, seqId: int = -1, batch: str | None = None) -> None:
        if batch is not None:
            return self._its.ack(self._saved[batch].handle)
        return self._its.ack_position(self._position(position), seqId if seqId >= 0 else None)

    def _rollback(self) -> None:
        self._its.rollback()
        self._lone_ddl_bytes = 0

    def _getFirst(self) -> ItemPosition | None:
        return self._its.first_position()

    def _getLatest(self) -> ItemPosition | None:
        return self._its.latest_position()

    def _metrics(self) -> dict[str, Any]:
        metrics = asdict(self._its.metrics())
        return {"rows": {k: v["rows"] for k, v in metrics.items()}, "execTs": {k: v["timestamp_ms"] for k, v in metrics.items()}}

    def _slots(self) -> list[str | None]:
        return [item and item.id for item in self._its.held()]

    def _batch(self, name: str) -> ItemBatch[Event]:
        batch: ItemBatch[Event] = self._saved[name]
        return batch

    def _start_call(self, name: str, op: str, arguments: Mapping[str, Any], expect: Mapping[str, Any]) -> None:
        call = self._calls[name] = Call(lambda: getattr(self, "_" + op)(**arguments))
        before = self._waiting(op)
        call.start()
        if expect.get("blocked"):
            self._until(lambda: self._waiting(op) > before or not call.is_alive())
            assert self._waiting(op) > before, f"the call does not wait: {call.result} {call.error}"

    def _stillBlocked(self, call: str) -> None:
        self._calls[call].join(MOMENT)
        assert self._calls[call].is_alive(), "the call ended"

    def _join(self, call: str) -> Any:
        return self._calls.pop(call).value()

    def _interrupt(self, call: str) -> Any:
        self._its.fail(InterruptedError())
        return self._join(call)

    # what a step expects

    def _check_error(self, expect: Mapping[str, Any], wrong: Exception | None) -> None:
        code = wrong.code if isinstance(wrong, EventStoreError) else "ILLEGAL_ARGUMENT"
        assert expect.get("raises") in ([None] if wrong is None else [code, _KINDS.get(code, code)]), repr(wrong)

    def _check_result(self, step: Mapping[str, Any], result: Any) -> None:
        expect = step["expect"]
        if isinstance(result, ItemBatch):
            self._saved[step.get("save", "b")] = result
            self._check_batch(expect, result)
        elif "save" in step:
            self._saved[step["save"]] = result
        for key in ("rows", "execTs"):
            assert key not in expect or result[key] == expect[key], result
        if "returns" in expect:
            assert result is expect["returns"], result
        if "slots" in expect:  # Canal keeps an emptied event in the last confirmed slot, we keep its position beside the ring
            assert result == [slot and (slot[0] if slot[1] == "payload" else None) for slot in expect["slots"]], result
        if "position" in expect:
            wanted = self._position(expect["position"])
            assert result == wanted, result
            assert wanted is None or result.included is expect["position"]["included"], result
        if expect.get("timedOut"):
            assert self._all_waits() + (step["op"] == "join") > self._waits, "the call did not wait"

    def _check_batch(self, expect: Mapping[str, Any], batch: ItemBatch[Event]) -> None:
        ids = [e.id for e in batch.items]
        assert ids == expect.get("events", ids), ids
        assert len(ids) == expect.get("count", len(ids)), ids
        if "range" in expect:
            found = {"start": batch.first, "end": batch.last, "ack": batch.resume}
            assert found == {k: v and self._event(v).position for k, v in expect["range"].items() if k != "endSeq"}, found
            assert batch.last_sequence == expect["range"]["endSeq"], batch.last_sequence
        if "ended" in expect:
            assert batch.ended is expect["ended"]
        if self._config["ddlIsolation"] and self._in_memory_mode and len(batch.items) == 1 and batch.items[0].is_ddl:
            self._lone_ddl_bytes += batch.nbytes

    def _check_state(self, expect: Mapping[str, Any]) -> None:
        wanted = expect.get("state")
        if wanted is None or self._store is None:
            return
        self._until(lambda: self._state(wanted) == wanted)
        assert self._state(wanted) == wanted, self._state(wanted)

    def _state(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """Canal does not count the bytes of a DDL that it hands out alone as taken (1.6, F09); we do, and take them off here."""
        state = self._its.state()
        found = {name: getattr(state, name) for name in ("put", "get", "ack")}
        found |= {"putMem": state.put_bytes, "getMem": state.get_bytes - self._lone_ddl_bytes, "ackMem": state.ack_bytes}
        return {name: found[name] for name in wanted}

    def _waiting(self, op: str) -> int:
        return int(getattr(self._its.state(), f"waiting_{op}s"))

    def _until(self, there: Callable[[], bool]) -> None:
        """Let the threads go on until it is so, or none is left that could change it."""
        for _ in range(PATIENCE):
            living = [call for call in self._calls.values() if call.is_alive()]
            if there() or not living:
                return
            living[0].join(0.01)
