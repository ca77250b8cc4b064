"""A progress bar names what is at work."""

from __future__ import annotations

import io
import logging

import pytest

from tidelake.cli import common
from tidelake.cli.terminal import Terminal

LAND, DECODE = logging.getLogger("tidelake.land"), logging.getLogger("tidelake.decode")


def drawn(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that two stages leave on a terminal, or elsewhere."""
    text = io.StringIO()
    monkeypatch.setattr(common, "errors", Terminal(file=text, force_terminal=terminal, width=80, color_system=None))
    with common.working("run 2026-01-05T10") as bar:
        assert (bar is not None) == terminal
        if bar is not None:
            LAND.info("2026-01-05T10", extra={"begins": "land"})
            bar(3, 4)
            bar._progress.refresh()
            DECODE.info("2026-01-05T10", extra={"begins": "decode"})
            bar._progress.refresh()
    return [line.strip() for part in text.getvalue().split("\r") for line in part.splitlines() if "2026" in line]


def test_the_stage_at_work_is_named_and_its_predecessor_s_percentage_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn(True, monkeypatch)
    landing = [line for line in lines if "land 2026-01-05T10" in line]
    decoding = [line for line in lines if "decode 2026-01-05T10" in line]
    assert any("75%" in line for line in landing)
    assert decoding
    assert not any("%" in line for line in decoding)


def test_nothing_is_drawn_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(False, monkeypatch) == []
