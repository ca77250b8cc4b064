"""Debezium's connectors on a real MariaDB and a real MySQL: at every quiet point the lake equals the source, whatever was killed."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.io.kafka_broker import KafkaBroker
from tests.io.sql_server import SqlServer
from tests.upstream.debezium import TYPES, debezium
from tests.upstream.landed import LandedFeed
from tests.upstream.topic import Hours
from tests.upstream.workload import Workload

SEED = int(os.environ.get("TIDELAKE_UPSTREAM_SEED", "1"))


CONVERTERS: dict[str, dict[str, Any]] = {"kafka": {"schemas": True}, "archive": {"schemas": False, "decimal_handling_mode": "string"}}


@pytest.mark.parametrize(
    ("server", "way"), [("mariadb", "kafka"), ("mariadb", "archive"), ("mysql", "kafka"), ("mysql-gtid", "archive")], indirect=["server"]
)
def test_every_hour_equals_the_source_whatever_was_killed(way: str, server: SqlServer, broker: KafkaBroker, tmp_path: Path) -> None:
    work = Workload(server, Random(f"{SEED}{way}"), TYPES, plain=True)
    feed_sql = work.begin()
    work.transact(20)  # what the snapshot reads
    hours = Hours(broker, f"debezium-{server.kind}-{way}")
    broker.create(f"{hours.sent}-history", 1)
    with debezium(server, broker, hours.sent, tmp_path / "connect", **CONVERTERS[way]) as producer:
        feed = LandedFeed(hours, tmp_path, way, "debezium", feed_sql)
        hours.quiet(producer, work.mark())  # may be a row of the snapshot, and tables after it are still to be read
        hours.quiet(producer, work.mark())
        assert hours.close() > 0
        feed.run(0)
        feed.equal(work)

        work.plain = False
        work.transact(30)
        work.alter(10)
        work.transact(30)
        hours.quiet(producer, work.mark())
        hours.close()
        feed.run(1, killed=Random(SEED))
        feed.equal(work)

        work.transact(20)
        producer.kill()
        work.transact(20)
        work.alter(3)
        producer.start()
        work.transact(20)
        broker.kill()
        work.transact(20)
        broker.start()
        work.transact(20)
        hours.quiet(producer, work.mark())
        hours.close()
        feed.run(2, killed=Random(SEED + 1))
        feed.equal(work)
