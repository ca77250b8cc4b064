"""The lake that most tests of the audit read, and change and put back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.audit.certified import add_cuts
from tests.lake import lakes
from tidelake.lake.opened import Lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake of CUTS certified cuts."""
    with Lake.of(lakes.feed(tmp_path_factory.mktemp("audit"))) as opened:
        add_cuts(opened)
        yield opened
