"""A fresh feed and its lake for windows of a few rows; what the lake and the certificate say of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.lake.histories import Feeder, feeder, row_schema
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.cuts import newest_cut
from tidelake.lake.opened import Lake

KV = row_schema("id bigint", "v varchar")
TEXT = row_schema("v varchar", key=())
SQL = "CREATE TABLE d.k (id BIGINT PRIMARY KEY, v VARCHAR(20)); CREATE TABLE d.m (v VARCHAR(20));"


@contextmanager
def opened(folder: Path, sql: str = SQL, partitions: int = 1, **changes: Any) -> Iterator[tuple[Feeder, Lake]]:
    """A fresh feed and its lake."""
    made = feeder(folder, sql, partitions, **changes)
    (folder / "lake").mkdir(exist_ok=True)
    with Lake.of(made.feed) as lake:
        yield made, lake


def table(*rows: tuple[str | None, ...], names: tuple[str, ...] = ("id", "v")) -> Counter[tuple[tuple[str, Any], ...]]:
    """Rows as `rows_of` gives them."""
    return Counter(tuple(zip(names, r, strict=True)) for r in rows)


def judged(lake: Lake) -> tuple[dict[str, Any], bool]:
    """What the newest certificate says of late rows, and whether its cut is incomplete."""
    cut = newest_cut(lake.catalog, lake.store, lake.feed.name)
    assert cut is not None
    said = read_certificate(lake.store, lake.feed.name, cut.seq)
    return said["late"], cut.incomplete
