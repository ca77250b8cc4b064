"""Feeds for the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli import feeds


@pytest.fixture
def schemas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two feeds with an empty archive and no lake yet, in a working folder of their own."""
    for name in ("shop", "shop-two"):
        feeds.write(tmp_path / "schemas", name, feed=feeds.FEED.replace("[lake]", '[lake]\nnamespace = "{feed}_{database}"'))
    (tmp_path / "archive" / "open").mkdir(parents=True)
    monkeypatch.setenv("TIDELAKE_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.setenv("TIDELAKE_LAKE", str(tmp_path / "lake"))
    monkeypatch.delenv("TIDELAKE_SCHEMAS", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "schemas"
