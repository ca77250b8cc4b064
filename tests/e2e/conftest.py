"""One small workload for many tests: made once, copied where a test spoils it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import bazaar
from tidelake.io import storage


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bazaar.Bazaar:
    """Two hours of the bazaar in Open Protocol, without repeats."""
    return bazaar.make(tmp_path_factory.mktemp("bazaar") / "open", ["open"])


@pytest.fixture
def shop(archive: bazaar.Bazaar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[bazaar.Bazaar]:
    """A copy of it with its variables in the environment."""
    made = bazaar.copy(archive, tmp_path / "bazaar")
    for name, value in made.variables.items():
        monkeypatch.setenv(name, value)
    storage.reset()
    yield made
    storage.reset()
