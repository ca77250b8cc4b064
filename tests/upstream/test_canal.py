"""Alibaba's Canal on a real MariaDB: at every quiet point the lake equals the source, also after each of the programs was killed."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.io.kafka_broker import KafkaBroker
from tests.io.mariadb_server import MariaDB
from tests.upstream.canal import TYPES, canal, connected
from tests.upstream.landed import LandedFeed
from tests.upstream.process import Process
from tests.upstream.topic import Hours
from tests.upstream.workload import Workload

SEED = int(os.environ.get("TIDELAKE_UPSTREAM_SEED", "1"))


@pytest.mark.parametrize(
    ("protocol", "way"), [("canal-json", "kafka"), ("canal", "archive"), ("canal", "kafka"), ("canal-json", "archive")]
)
def test_the_lake_equals_the_source_at_every_quiet_point(
    server: MariaDB, broker: KafkaBroker, tmp_path: Path, protocol: str, way: str
) -> None:
    server.execute("SET GLOBAL max_binlog_size = 1073741824")  # killed near a rotation, Canal 1.1.7 can store a place that no file has
    random = Random(f"{SEED} {protocol} {way}")
    work, hours = Workload(server, random, types=TYPES), Hours(broker, f"{protocol}-{way}")
    feed = LandedFeed(hours, tmp_path, way, protocol, "")
    with canal(server, broker, hours.sent, tmp_path / "canal", flat=protocol == "canal-json") as producer:
        producer.until(lambda: connected(producer), "the binlog")
        work.begin()
        _hour(work, hours, producer)
        feed.run(0)
        feed.equal(server.url)
        _hour(work, hours, producer)
        feed.run(1, killed=random)
        feed.equal(server.url)
        for _ in range(2):
            work.transact(15)
            producer.kill()
            work.transact(5)
            producer.start()
        _hour(work, hours, producer)
        feed.run(2)
        feed.equal(server.url, *work.keyed)
        work.transact(10)
        broker.kill()
        work.transact(10)
        broker.start()
        _hour(work, hours, producer)
        feed.run(3)
        feed.equal(server.url, *work.keyed)


def _hour(work: Workload, hours: Hours, producer: Process) -> None:
    """Changes and statements until the producer has sent them all, as an hour of the topic."""
    work.transact(25)
    work.alter(4)
    work.transact(25)
    hours.quiet(producer, work.mark())
    assert hours.close() > 0
