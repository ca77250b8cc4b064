"""Branches of tables, on which runs stage rows, and their names in Spark SQL."""

from __future__ import annotations

from tidelake.config.lake_paths import CATALOG, MAIN, cut_of_branch
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.spark.sql_text import quote


def sql_name(identifier: str, branch: str = MAIN) -> str:
    """Return the Spark SQL name of a table or of its branch."""
    parts = [CATALOG, *identifier.split("."), *([] if branch == MAIN else [f"branch_{branch}"])]
    return ".".join(quote(p) for p in parts)


def begin_branch(catalog: LakeCatalog, table: LakeTable, branch: str, base: int) -> None:
    """Create a fresh branch at a snapshot; drop branches of earlier attempts."""
    catalog.drop_branches(table, [b for b in table.branches if cut_of_branch(b) is not None])
    catalog.set_branch(catalog.load(table.identifier), branch, base)
