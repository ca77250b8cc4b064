"""Numbers and times as people read them."""

from __future__ import annotations

import pytest

from tests.validate.facts import RESOLVED
from tidelake.io import texts
from tidelake.tso import wrap


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.04, "0.0 s"), (3.407, "3.4 s"), (59.94, "59.9 s"), (60, "1 min 0 s"), (125.4, "2 min 5 s"), (3780, "1 h 3 min")],
)
def test_durations(seconds: float, said: str) -> None:
    assert texts.duration(seconds) == said


@pytest.mark.parametrize(
    ("n", "said"), [(0, "0 B"), (1023, "1,023 B"), (1024, "1.0 KiB"), (1536 * 1024, "1.5 MiB"), (1 << 50, "1,024.0 TiB")]
)
def test_sizes(n: int, said: str) -> None:
    assert texts.size(n) == said


@pytest.mark.parametrize(("n", "said"), [(0, "±0"), (1200, "+1,200"), (-3, "−3")])
def test_differences_have_a_sign(n: int, said: str) -> None:
    assert texts.signed(n) == said


def test_a_tso_stands_beside_its_time() -> None:
    assert texts.moment(RESOLVED) == f"2026-01-05 10:59:56.593Z (TSO {RESOLVED})"


def test_a_wrapped_tso_is_printed_unsigned() -> None:
    assert texts.moment(wrap((1 << 64) - 1)).endswith(f"(TSO {(1 << 64) - 1})")


def test_a_resolved_ts_after_the_hour_is_said_so() -> None:
    assert texts.lag(-2.0) == "2.0 s after the end of the hour"


def test_the_last_hour_of_a_day_ends_at_midnight() -> None:
    assert texts.hour_name("2026-01-05T23") == "2026-01-05, 23:00–00:00 UTC"


def test_backticks_become_code_and_nothing_else_becomes_markup() -> None:
    assert texts.prose("run `a <b>` & wait") == "run <code>a &lt;b&gt;</code> &amp; wait"
