"""What tests of the archiver have in common."""

from __future__ import annotations

import pytest

from tidelake.land.archiver import follow


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long."""
    monkeypatch.setattr(follow, "DISCOVER_SECONDS", 0.0)
    monkeypatch.setattr(follow, "IDLE_SECONDS", 0.02)
    monkeypatch.setattr(follow, "BACK_OFF_SECONDS", 0.02)
