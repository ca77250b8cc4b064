"""Alibaba's Canal on a real MariaDB and a real MySQL: at every quiet point the lake equals the source, whatever was killed."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.io.kafka_broker import KafkaBroker
from tests.io.sql_server import SqlServer
from tests.upstream.canal import TYPES, canal, connected
from tests.upstream.landed import LandedFeed
from tests.upstream.story import play
from tests.upstream.topic import Hours
from tests.upstream.workload import Workload
from tidelake.io.storage import open_store
from tidelake.lake.cut_documents import read_certificate

SEED = int(os.environ.get("TIDELAKE_UPSTREAM_SEED", "1"))


@pytest.mark.parametrize(
    ("server", "protocol", "way"),
    [
        ("mariadb", "canal-json", "kafka"),
        ("mariadb", "canal", "archive"),
        ("mariadb", "canal", "kafka"),
        ("mariadb", "canal-json", "archive"),
        ("mysql", "canal-json", "kafka"),
        ("mysql", "canal", "archive"),
        ("mysql-gtid", "canal", "kafka"),
        ("mysql-gtid", "canal-json", "archive"),
    ],
    indirect=["server"],
)
def test_the_lake_equals_the_source_at_every_quiet_point(
    server: SqlServer, broker: KafkaBroker, tmp_path: Path, protocol: str, way: str
) -> None:
    server.execute("SET GLOBAL max_binlog_size = 1073741824")  # killed near a rotation, Canal 1.1.7 can store a place that no file has
    random = Random(f"{SEED} {protocol} {way}")
    work, hours = Workload(server, random, types=TYPES), Hours(broker, f"{protocol}-{server.kind}-{way}")
    feed = LandedFeed(hours, tmp_path, way, protocol, "")
    with canal(server, broker, hours.sent, tmp_path / "canal", flat=protocol == "canal-json") as producer:
        producer.until(lambda: connected(producer), "the binlog")
        play(work, hours, feed, producer, broker, random, named=protocol == "canal")
    store = open_store(str(tmp_path / "lake"))
    told = [[f["code"] for f in read_certificate(store, "shop", cut)["findings"]].count("CANAL_STARTED_AGAIN") for cut in range(1, 5)]
    assert told == [0, 0, int(protocol == "canal-json"), 0], "it was killed in the third hour"
