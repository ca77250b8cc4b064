"""pyiceberg's client of each kind of catalog."""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.catalog import Catalog, load_catalog

from tidelake.config.lake_paths import CATALOG
from tidelake.io.storage import aws_client
from tidelake.lake.catalogs.avro import keep_schemas
from tidelake.lake.catalogs.sql import SharedSqlCatalog


def catalog_client(properties: Mapping[str, str]) -> Catalog:
    """Return a client. properties: those of pyiceberg, with `type`."""
    keep_schemas()
    match properties["type"]:
        case "sql":
            return SharedSqlCatalog(CATALOG, **properties)
        case "glue":
            from tidelake.lake.catalogs.glue import FittedGlueCatalog  # it loads boto3

            return FittedGlueCatalog(CATALOG, aws_client("glue", properties.get("glue.region", "")), **properties)
        case _:
            return load_catalog(CATALOG, **properties)
