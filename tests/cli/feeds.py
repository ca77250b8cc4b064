"""A folder of feeds for the command line: a right one, to be spoiled."""

from __future__ import annotations

from pathlib import Path

FEED = """protocol = "open"
topics = ["shop.open"]
partitions = 3

[source]
uri = "${TIDELAKE_ARCHIVE}/open"
layout = "aiven-jsonl"

[lake]
uri = "${TIDELAKE_LAKE}"
"""
TABLES = """CREATE DATABASE shop;

CREATE TABLE shop.orders (
  id BIGINT UNSIGNED PRIMARY KEY,
  note VARCHAR(20)
);
"""
RULES = """[[expect]]
type = "expect_column_values_to_not_be_null"
column = "note"
"""


def write(schemas: Path, name: str = "shop", *, feed: str = FEED, tables: str | None = TABLES, rules: str | None = RULES) -> Path:
    """A feed's folder."""
    folder = schemas / name
    (folder / "expectations").mkdir(parents=True)
    (folder / "feed.toml").write_text(feed)
    if tables is not None:
        (folder / "tables.sql").write_text(tables)
    if rules is not None:
        (folder / "expectations" / "shop.orders.toml").write_text(rules)
    return folder
