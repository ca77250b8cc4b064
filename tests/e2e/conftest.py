"""One small workload for many tests: made once, copied where a test spoils it."""

from __future__ import annotations

import shutil
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
    yield from _with_variables(bazaar.copy(archive, tmp_path / "bazaar"), monkeypatch)


@pytest.fixture(scope="session")
def first_hour(archive: bazaar.Bazaar, tmp_path_factory: pytest.TempPathFactory, spark_app: None) -> tuple[bazaar.Bazaar, Path]:
    """A copy whose first hour is published; where it is kept as it was then."""
    folder = tmp_path_factory.mktemp("published")
    made = bazaar.copy(archive, folder / "bazaar")
    with pytest.MonkeyPatch.context() as patch:
        for _ in _with_variables(made, patch):
            assert made.run_hours(1) == 0
    return made, Path(shutil.copytree(made.folder, folder / "kept"))


@pytest.fixture
def later_shop(first_hour: tuple[bazaar.Bazaar, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[bazaar.Bazaar]:
    """The shop after its first hour, at the place where that ran: tables know where they lie."""
    made, kept = first_hour
    shutil.rmtree(made.folder)
    shutil.copytree(kept, made.folder)
    yield from _with_variables(made, monkeypatch)


def _with_variables(made: bazaar.Bazaar, patch: pytest.MonkeyPatch) -> Iterator[bazaar.Bazaar]:
    for name, value in made.variables.items():
        patch.setenv(name, value)
    storage.reset()
    yield made
    storage.reset()
