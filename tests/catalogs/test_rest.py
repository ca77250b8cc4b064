"""A whole feed on a REST catalog that asks for a token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.catalogs.rest_server import CREDENTIAL, RestCatalog
from tests.catalogs.walk import all_stages, walk_on
from tests.conftest import FreshUri
from tidelake.demo.embedded_s3 import EmbeddedS3

REST = '[lake.rest]\ncredential = "${REST_CREDENTIAL}"\n'


@pytest.fixture(scope="module")
def server(s3_server: EmbeddedS3) -> Iterator[RestCatalog]:
    """The server."""
    with RestCatalog(f"s3://{s3_server.bucket}/rest", s3_server.environment) as server:
        yield server


@pytest.mark.usefixtures("spark_app")
def test_a_feed_goes_through_all_stages_on_a_rest_catalog(server: RestCatalog, s3: FreshUri, tmp_path: Path) -> None:
    with walk_on(s3("rest"), tmp_path, server.uri, REST, {"REST_CREDENTIAL": CREDENTIAL}) as walk:
        all_stages(walk)
    assert server.refused == 0
