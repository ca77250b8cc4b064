"""One TiDB for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.tidb.server import TiDB

HOURS = 3600


@pytest.fixture(scope="session")
def tidb() -> Iterator[TiDB]:
    """A real server, built and started when the first test wants it; skips without Go."""
    pytest.importorskip("pymysql", reason="needs PyMySQL, of the extra `mysql`")
    with TiDB() as server:
        yield server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them run in `make test-tidb` only, and may have to build TiDB first."""
    for item in items:
        if item.path.parent.name == "tidb":
            item.add_marker(pytest.mark.tidb)
            item.add_marker(pytest.mark.long)
            item.add_marker(pytest.mark.timeout(4 * HOURS))
