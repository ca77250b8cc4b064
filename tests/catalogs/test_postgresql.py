"""Two whole feeds on a JDBC catalog in PostgreSQL, with the tables on S3."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalogs.postgresql_server import PostgreSQL
from tests.catalogs.walk import two_feeds, walk_on
from tests.conftest import FreshUri


@pytest.mark.long
@pytest.mark.usefixtures("spark_app")
def test_two_feeds_go_through_all_stages_on_postgresql(s3: FreshUri, tmp_path: Path) -> None:
    with PostgreSQL() as server, walk_on(s3("postgresql"), tmp_path, server.catalog) as walk:
        two_feeds(walk)
