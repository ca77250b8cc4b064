"""The marker of this folder's tests, and the servers of a file: each file kills its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.io.kafka_broker import KafkaBroker
from tests.io.mariadb_server import MariaDB
from tests.io.mysql_server import MySQL
from tests.io.sql_server import SqlServer

HOURS = 3600
SERVERS: dict[str, Callable[[], SqlServer]] = {
    "mariadb": lambda: MariaDB(binlog=True),
    "mysql": MySQL,
    "mysql-gtid": lambda: MySQL(gtid=True),
}


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[SqlServer]:
    """A real server with a row binlog, which a test names by `indirect`; skips where it cannot be had."""
    pytest.importorskip("pymysql", reason="needs PyMySQL, of the extra `mysql`")
    with SERVERS[request.param]() as server:
        yield server


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A real Kafka broker."""
    with KafkaBroker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them run in `make test-upstream` only, and may have to fetch the producers first."""
    for item in items:
        if item.path.parent.name == "upstream":
            item.add_marker(pytest.mark.upstream)
            item.add_marker(pytest.mark.long)
            item.add_marker(pytest.mark.timeout(2 * HOURS))
