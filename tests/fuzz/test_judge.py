"""Every broken promise is found: a decoder that breaks it, and what the judge says."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import pytest

from tests.fuzz.corpus import OWN, Group
from tests.fuzz.judge import judge, judge_alone
from tests.fuzz.peak import MEASURED
from tests.fuzz.tally import Tally
from tidelake.errors import DecodeError
from tidelake.history.event import Event
from tidelake.protocols import maxwell

GROUP = Group("maxwell", {}, OWN["maxwell"])
SMALL = (None, b"x")
Read = Callable[..., list[Event]]


def found(monkeypatch: pytest.MonkeyPatch, read: Read) -> list[str]:
    """What is wrong with a decoder that reads so."""
    monkeypatch.setattr(maxwell, "read", read)
    tally = Tally()
    judge(GROUP, GROUP.context(), [SMALL], tally)
    return [fault.what for fault in tally.faults]


def raising(error: Exception) -> Read:
    def read(*_: Any) -> list[Event]:
        raise error

    return read


def test_good_messages_keep_every_promise() -> None:
    tally = Tally()
    judge(GROUP, GROUP.context(), [*GROUP.messages, SMALL], tally)
    assert (tally.messages, tally.events, tally.rejected, tally.faults) == (11, 9, {"BAD_JSON": 1}, [])


def test_another_exception_than_a_decode_error_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    (what,) = found(monkeypatch, raising(ZeroDivisionError("so")))
    assert what.startswith("the general reader raised ZeroDivisionError: so (test_judge.py:")


def test_a_code_that_is_not_published_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    (what,) = found(monkeypatch, raising(DecodeError("so", code="ODD")))
    assert "AssertionError" in what


def test_paths_that_disagree_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count()
    (what,) = found(monkeypatch, lambda *_: [Event(kind="resolved", commit_ts=next(calls))])
    assert what.startswith("paths disagree: read [{")


def test_events_that_no_batch_can_hold_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    (what,) = found(monkeypatch, lambda *_: [Event(kind="ddl", ddl="\ud800")])
    assert what.startswith("decode raised UnicodeEncodeError")


def test_a_message_that_takes_too_long_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: Any) -> list[Event]:
        until = time.thread_time() + 0.08
        while time.thread_time() < until:
            pass
        return [Event(kind="resolved", commit_ts=1)]

    whats = found(monkeypatch, slow)
    assert whats
    assert all(what.startswith("took 0.") and what.endswith("s for 1 bytes") for what in whats)


@pytest.mark.skipif(not MEASURED, reason="memory is measured on Linux only")
def test_a_message_that_takes_too_much_memory_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def fat(size: int, *_: Any) -> list[Event]:
        return [Event(kind="resolved", commit_ts=len(b"\1" * size))]

    monkeypatch.setattr(maxwell, "read", partial(fat, 80_000_000))
    tally = Tally()
    judge_alone(GROUP, (None, b"x" * 1_000_000), 1_000_000, "a lie", tally)
    whats = [fault.what.partition(" took ")[0] for fault in tally.faults if fault.what.endswith("bytes of memory for 1,000,000")]
    assert whats == ["decode of a lie (maxwell)", "read of a lie (maxwell)"]
    assert 80 <= tally.fattest.rate < 90
    monkeypatch.setattr(maxwell, "read", partial(fat, 160_000_000))  # well above the 64 MB beside, whatever earlier tests give back
    tally = Tally()
    judge(GROUP, GROUP.context(), [SMALL], tally)
    assert sum(fault.what.endswith("bytes of memory for 1") for fault in tally.faults) == 2  # a small one, by both paths
    assert (tally.messages, tally.events) == (1, 1)  # which looks at it again


def test_a_fault_says_how_to_repeat_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maxwell, "read", raising(ValueError("so")))
    tally = Tally()
    judge(Group("maxwell", {"quote": ""}, []), GROUP.context(), [(b"\1", None)], tally)
    (fault,) = tally.faults
    assert (fault.protocol, fault.options, fault.line, fault.schemas) == ("maxwell", {"quote": ""}, '{"key": "01", "value": null}', {})
