"""`tidelake ddl`: the statements of the cuts that lead to the newest one."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from tests.cli.calls import call
from tests.pages.lakes import ADD_NOTE, shop
from tidelake.config.lake_paths import ddl_table
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.ddl_ledger import entries
from tidelake.spark.lake_settings import lake_settings


def test_statements_of_a_cut_that_was_undone_are_not_shown(tmp_path: Path) -> None:
    catalog = LakeCatalog(lake_settings(shop(tmp_path)))
    (entry,) = entries(catalog, "shop")
    catalog.append(ddl_table(), pa.Table.from_pylist([entry | {"seq": 9, "statement": "ALTER TABLE orders ADD undone INT"}]))
    asked = call("ddl", "--feed", "shop", "--schemas", tmp_path / "schemas", "--json")
    assert [e["statement"] for e in json.loads(asked.out)] == [ADD_NOTE]
    assert "undone" not in call("ddl", "--feed", "shop", "--schemas", tmp_path / "schemas").out
