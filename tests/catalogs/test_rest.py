"""Two whole feeds on a REST catalog that asks for a token."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.catalogs.rest_server import CREDENTIAL, RestCatalog
from tests.catalogs.walk import two_feeds, walk_on
from tests.conftest import FreshUri
from tests.lake import lakes
from tidelake.demo.embedded_s3 import EmbeddedS3
from tidelake.errors import StorageError
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.opened import Lake
from tidelake.spark.lake_settings import lake_settings

REST = '[lake.rest]\ncredential = "${REST_CREDENTIAL}"\n'


@pytest.fixture(scope="module")
def server(s3_server: EmbeddedS3) -> Iterator[RestCatalog]:
    """The server."""
    with RestCatalog(f"s3://{s3_server.bucket}/rest", s3_server.environment) as server:
        yield server


def test_a_refused_login_is_told_without_the_login(server: RestCatalog, s3: FreshUri, tmp_path: Path) -> None:
    feed = lakes.feed(tmp_path, lake={"uri": s3("refused"), "catalog": server.uri, "rest": {"credential": "reader:wrong-pass"}})
    with pytest.raises(StorageError) as error, Lake.of(feed):
        pass
    assert str(error.value).startswith(f"CATALOG: the catalog {server.uri}: ")
    assert ("[lake.rest]" in error.value.remedy, "wrong-pass" in str(error.value)) == (True, False)


def test_a_table_moved_by_another_client_is_told(server: RestCatalog, s3: FreshUri, tmp_path: Path) -> None:
    feed = lakes.feed(tmp_path, lake={"uri": s3("moved"), "catalog": server.uri, "rest": {"credential": CREDENTIAL}})
    catalog = LakeCatalog(lake_settings(feed))
    made, other = lakes.table(catalog, "moved.t", [(1, "a")]), lakes.table(catalog, "moved.u")
    head = lakes.stage(catalog, made, "run_1_1", [(2, "b")])
    stale = catalog.load("moved.t")
    catalog.advance(stale, made.main, head, "run_1_1")
    told = dict[str, str]()
    for what, act in {
        "a commit on an old base": partial(catalog.advance, stale, made.main, head, "run_1_1"),
        "a name that is taken": partial(catalog.rename, "moved.t", "moved.u"),
        "a namespace that is gone": partial(catalog.rename, "moved.t", "gone.t"),
    }.items():
        with pytest.raises(StorageError) as error:
            act()
        told[what] = error.value.code
    assert told == {
        "a commit on an old base": "TABLE_MOVED",
        "a name that is taken": "TABLE_EXISTS",
        "a namespace that is gone": "TABLE_MOVED",
    }
    catalog.rename("moved.t", "moved.v")
    assert catalog.load("moved.v").uuid == made.uuid != other.uuid
    assert len(lakes.contents(catalog, "moved.v")) == 2


@pytest.mark.long
@pytest.mark.usefixtures("spark_app")
def test_two_feeds_go_through_all_stages_on_a_rest_catalog(server: RestCatalog, s3: FreshUri, tmp_path: Path) -> None:
    with walk_on(s3("rest"), tmp_path, server.uri, REST, {"REST_CREDENTIAL": CREDENTIAL}) as walk:
        two_feeds(walk)
    assert server.refused == 0
