"""What makes tables be merged on read."""

from __future__ import annotations

import pytest

from tidelake.compact import merge


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are merged, too."""
    monkeypatch.setattr(merge, "LARGE", 0)
    monkeypatch.setattr(merge, "_WORTH_A_WORD", 0)
    monkeypatch.setattr(merge, "SHARE", 0.5)
