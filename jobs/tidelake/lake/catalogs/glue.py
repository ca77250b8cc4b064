"""pyiceberg's catalog for AWS Glue, within Glue's limits: a column's comment has at most 255 bytes, in one line.

Iceberg's own metadata keeps the whole documentation of a column. Glue's comment is what the console shows.

Source: https://docs.aws.amazon.com/glue/latest/webapi/API_Column.html
"""

from __future__ import annotations

import re
from typing import Any

from pyiceberg.catalog.glue import GlueCatalog

_COMMENT = 255  # bytes


class FittedGlueCatalog(GlueCatalog):
    """A catalog whose requests fit Glue."""

    def _create_glue_table(self, database_name: str, table_name: str, table_input: Any) -> None:
        super()._create_glue_table(database_name, table_name, _fitted(table_input))

    def _update_glue_table(self, database_name: str, table_name: str, table_input: Any, version_id: str) -> None:
        super()._update_glue_table(database_name, table_name, _fitted(table_input), version_id)


def _fitted(table: dict[str, Any]) -> dict[str, Any]:
    storage = table.get("StorageDescriptor", {})
    columns = [c | {"Comment": fitted_comment(c["Comment"])} if "Comment" in c else c for c in storage.get("Columns", ())]
    return table | {"StorageDescriptor": storage | {"Columns": columns}}


def fitted_comment(text: str) -> str:
    """Return a comment that Glue takes: control characters become spaces, the end is cut."""
    return re.sub(r"[\x00-\x1f\x7f]", " ", text).encode()[:_COMMENT].decode(errors="ignore")
