"""The real Maxwell on a real MariaDB and a real MySQL: at every quiet point the lake equals the source, whatever was killed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.io.kafka_broker import KafkaBroker
from tests.io.sql_server import SqlServer
from tests.upstream.landed import LandedFeed
from tests.upstream.maxwell import connected, maxwell, types
from tests.upstream.story import play
from tests.upstream.topic import Hours
from tests.upstream.workload import Workload
from tidelake.config.options import SinkOptions
from tidelake.protocols import Context, decoder

SEED = 22
OPTIONS = "[options]\noutput_xoffset = true"


@pytest.mark.parametrize(
    ("server", "way"), [("mariadb", "kafka"), ("mariadb", "archive"), ("mysql", "kafka"), ("mysql-gtid", "archive")], indirect=["server"]
)
def test_the_lake_equals_the_source_at_every_quiet_point(server: SqlServer, broker: KafkaBroker, tmp_path: Path, way: str) -> None:
    random = Random(f"{SEED} {way}")
    work, hours = Workload(server, random, types(server), truncates=False), Hours(broker, f"maxwell-{server.kind}-{way}")
    feed = LandedFeed(hours, tmp_path, way, "maxwell", "", OPTIONS)
    with maxwell(server, broker, hours.sent, tmp_path / "maxwell") as producer:
        producer.until(lambda: connected(producer), "the binlog")
        play(work, hours, feed, producer, broker, random, named=True, least=60)
    _is_one_row_at_each_place(hours)


def _is_one_row_at_each_place(hours: Hours) -> None:
    """What came again has the name that it had before, and no two rows have one name."""
    found: dict[str, tuple[object, ...]] = {}
    sent = [e for m in hours.messages() for e in decoder("maxwell").read(m.key, m.value, Context(options=SinkOptions(output_xoffset=True)))]
    for e in (e for e in sent if e.kind == "row"):
        assert e.source is not None
        assert found.setdefault(e.source, (e.database, e.table, e.op, e.after, e.before)) == (e.database, e.table, e.op, e.after, e.before)
    assert len(found) > 400
