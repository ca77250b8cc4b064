"""What other engines read of a feed's own tables and changelogs, after hours with statements: every row as pyiceberg reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.catalogs import engines
from tests.catalogs.rest_server import CREDENTIAL, RestCatalog
from tests.catalogs.test_rest import REST
from tests.catalogs.trino_server import Trino, by_rest
from tests.catalogs.walk import FEED, walk_on
from tidelake.demo.embedded_s3 import EmbeddedS3
from tidelake.lake.cuts import newest_cut

pytestmark = pytest.mark.long


@dataclass(frozen=True)
class Published:
    """A published table. asked: what an engine is told of it."""

    rows: pa.Table
    asked: dict[str, Any]


@pytest.fixture(scope="module")
def server(s3_server: EmbeddedS3) -> Iterator[RestCatalog]:
    """The catalog of the feed."""
    with RestCatalog(f"s3://{s3_server.bucket}/feed-readers/warehouse", s3_server.environment) as server:
        yield server


@pytest.fixture(scope="module")
def published(s3_server: EmbeddedS3, server: RestCatalog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Published]]:
    """The tables and changelogs of the newest cut of two hours, by name; the tables are the truth."""
    uri, found = f"s3://{s3_server.bucket}/feed-readers", dict[str, Published]()
    environment = s3_server.environment | {"REST_CREDENTIAL": CREDENTIAL}
    with walk_on(uri, tmp_path_factory.mktemp("feed"), server.uri, REST, environment) as walk:
        walk.done("run", "--hour", walk.hours[0], "--hours", 2)
        assert walk.differences(1) == {}
        with walk.lake() as lake:
            cut = newest_cut(lake.catalog, lake.store, FEED)
            assert cut is not None
            for at in (*cut.snapshots.values(), *cut.changelogs.values()):
                table = lake.catalog.load(at.identifier)
                asked = {"metadata": table.metadata, "location": table.table.location(), "snapshot_id": at.snapshot_id}
                found[at.identifier] = Published(table.scan(snapshot_id=at.snapshot_id).read_all(), asked)
        changelogs = [name for name in found if name.split(".")[0].endswith("_changelog")]
        assert (len(found), len(changelogs)) == (13, 6)
        assert [name for name, table in found.items() if not table.rows.num_rows] == []
        yield found


@pytest.mark.usefixtures("spark_app")
@pytest.mark.parametrize("engine", ["duckdb", "polars", "daft", "chdb"])
def test_an_engine_reads_a_feed_s_tables_and_changelogs(
    published: dict[str, Published], s3_server: EmbeddedS3, engine: str, tmp_path: Path
) -> None:
    s3 = s3_server.environment
    login = {
        "endpoint": s3["AWS_ENDPOINT_URL_S3"],
        "region": s3["AWS_REGION"],
        "key": s3["AWS_ACCESS_KEY_ID"],
        "secret": s3["AWS_SECRET_ACCESS_KEY"],
    }
    for name, table in published.items():
        found = engines.read(engine, table.asked, login, tmp_path).select(table.rows.column_names).cast(table.rows.schema)
        assert bag(found) == bag(table.rows), name


@pytest.mark.usefixtures("spark_app")
def test_trino_reads_a_feed_s_tables_and_changelogs(
    published: dict[str, Published], server: RestCatalog, s3_server: EmbeddedS3, tmp_path: Path
) -> None:
    with Trino(tmp_path / "trino", by_rest(server), s3_server.environment) as trino:
        for name, table in published.items():
            found = trino.rows(f"SELECT * FROM lake.{name} FOR VERSION AS OF {table.asked['snapshot_id']}")
            assert [*found[0]] == table.rows.column_names, name
            assert bag(pa.Table.from_pylist(found, table.rows.schema)) == bag(table.rows), name


def bag(table: pa.Table) -> Counter[str]:
    """Its rows, with their multiplicity."""
    return Counter(map(repr, table.to_pylist()))
