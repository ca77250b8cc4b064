"""Two whole feeds on AWS Glue, as moto plays it; names that Glue does not keep; a rename that ended halfway."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from tests.catalogs.walk import two_feeds, walk_on
from tests.conftest import FreshUri
from tests.lake import lakes
from tidelake.errors import OwnershipError, StorageError
from tidelake.io import storage
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.catalogs.glue import fitted_comment
from tidelake.lake.namespaces import refuse_taken
from tidelake.publish.steps import _rename
from tidelake.spark.lake_settings import lake_settings


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The endpoint of a Glue without databases."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {"AWS_ENDPOINT_URL_GLUE": f"http://{host}:{port}", "AWS_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    storage.reset()
    yield f"http://{host}:{port}"
    server.stop()
    storage.reset()


@pytest.fixture
def catalog(glue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LakeCatalog:
    """The catalog of feed shop, whose tables are in a folder."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    storage.reset()
    return LakeCatalog(lake_settings(lakes.feed(tmp_path, lake={"uri": str(tmp_path / "lake"), "catalog": "glue://us-east-1"})))


@pytest.mark.long
@pytest.mark.usefixtures("spark_app")
def test_two_feeds_go_through_all_stages_on_glue(s3: FreshUri, glue: str, tmp_path: Path) -> None:
    with walk_on(s3("glue"), tmp_path, "glue://us-east-1", environment={"AWS_ENDPOINT_URL_GLUE": glue}) as walk:
        two_feeds(walk)


@pytest.mark.parametrize("table", ["Sales", "my-orders"])
def test_a_table_whose_name_glue_does_not_keep_is_refused_before_anything_is_staged(
    catalog: LakeCatalog, tmp_path: Path, table: str
) -> None:
    feed = lakes.feed(tmp_path)
    refuse_taken(catalog, feed, lakes.names("orders"))
    with pytest.raises(OwnershipError) as error:
        refuse_taken(catalog, feed, lakes.names("orders", table))
    assert str(error.value).startswith(f"GLUE_NAME: table d.{table} would be d.{table} in the lake; {table!r} is no name of AWS Glue")


def test_a_rename_that_ended_halfway_is_finished(catalog: LakeCatalog) -> None:
    made = lakes.table(catalog, "d.t", [(1, "a")])
    catalog.catalog.register_table("d.u", made.metadata)
    _rename(catalog, "d.t", "d.u")
    assert (catalog.find("d.t"), catalog.load("d.u").uuid) == (None, made.uuid)
    assert lakes.contents(catalog, "d.u") == [{"id": 1, "v": "a", "_commit_ts": 1}]


def test_a_commit_on_a_table_that_another_client_changed_is_refused(catalog: LakeCatalog) -> None:
    made = lakes.table(catalog, "d.t", [(1, "a")])
    head = lakes.stage(catalog, made, "run_1_1", [(2, "b")])
    catalog.advance(catalog.load("d.t"), made.main, head, "run_1_1")
    assert len(lakes.contents(catalog, "d.t")) == 2
    with pytest.raises(StorageError, match="TABLE_MOVED"):
        catalog.advance(catalog.load("d.t"), made.main, head, "run_1_1")


def test_a_comment_fits_glue_in_bytes_and_in_one_line() -> None:
    assert fitted_comment("3: enum('é','b\n')") == "3: enum('é','b ')"
    cut = fitted_comment("4: " + "é" * 200)
    assert (len(cut.encode()), cut[-1]) == (255, "é")
