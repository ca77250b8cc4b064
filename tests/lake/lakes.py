"""Small lakes for tests: a feed on a local folder, tables with snapshots on branches, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from tidelake.config.feed import Feed
from tidelake.config.lake_config import LakeConfig
from tidelake.config.source import Source
from tidelake.history.ddl.changes import ColumnDef, TableDef
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.incarnations import Catalog, Column, Incarnation, Segment, create
from tidelake.lake.catalog import LakeCatalog, LakeColumn, LakeTable
from tidelake.spark.lake_settings import lake_settings

COLUMNS = (
    LakeColumn(name="id", type="bigint", doc="1: bigint"),
    LakeColumn(name="v", type="string", doc="2: varchar(10)"),
    LakeColumn(name="_commit_ts", type="bigint"),
)


def feed(folder: Path, name: str = "shop", **changes: object) -> Feed:
    """A feed whose lake is below the folder."""
    members: dict[str, object] = {
        "name": name,
        "folder": folder / "schemas" / name,
        "protocol": "open",
        "topics": ("t",),
        "partitions": 1,
        "source": Source(uri=str(folder / "archive"), layout="aiven-jsonl"),
        "lake": LakeConfig(uri=str(folder / "lake")),
    }
    return Feed.model_validate(members | changes)


def catalog(folder: Path) -> LakeCatalog:
    """The catalog of such a feed's lake."""
    (folder / "lake").mkdir(parents=True, exist_ok=True)
    return LakeCatalog(lake_settings(feed(folder)))


def table(lake: LakeCatalog, identifier: str, rows: Sequence[tuple[int, str]] = (), columns: Sequence[LakeColumn] = COLUMNS) -> LakeTable:
    """A table of feed shop with these rows at commit ts 1."""
    lake.claim_namespace(identifier.rpartition(".")[0], "shop")
    made = lake.create(identifier, columns, properties={"tidelake.feed": "shop"})
    if rows:
        lake.append(identifier, batch(made, rows))
    return lake.load(identifier)


def stage(lake: LakeCatalog, made: LakeTable, branch: str, rows: Sequence[tuple[int, str]]) -> int:
    """More rows on a branch that starts at main; the branch's snapshot."""
    lake.set_branch(made, branch, made.main)
    at = lake.load(made.identifier)
    at.table.append(batch(at, rows), branch=branch)
    return lake.load(made.identifier).branch(branch)


def batch(made: LakeTable, rows: Sequence[tuple[int, str]]) -> pa.Table:
    """Rows of (id, v) as the table wants them."""
    names = [c.name for c in made.columns()]
    data = {names[0]: [r[0] for r in rows], names[1]: [r[1] for r in rows], "_commit_ts": [1] * len(rows)}
    return pa.table(data).cast(made.table.schema().as_arrow())


def contents(lake: LakeCatalog, identifier: str, snapshot_id: int | None = None) -> list[dict[str, object]]:
    """All rows, sorted by the first column."""
    rows = lake.load(identifier).scan(snapshot_id=snapshot_id).read_all().to_pylist()
    return sorted(rows, key=lambda r: str(next(iter(r.values()))))


def names(*tables: str) -> Catalog:
    """A catalog with these tables of database d."""
    definition = TableDef(columns=(ColumnDef(name="id", type=MysqlType("bigint"), nullable=False),), primary_key=("id",))
    known = Catalog()
    for t in tables:
        known = create(known, "d", t, definition, -1)
    return known


def incarnation(**types: str) -> Incarnation:
    """Table d.t with these columns; the first is the key."""
    columns = tuple(ColumnDef(name=n, type=MysqlType.parse(t), nullable=False) for n, t in types.items())
    known = create(Catalog(), "d", "t", TableDef(columns=columns, primary_key=(columns[0].name,)), -1)
    return next(iter(known.incarnations.values()))


def with_columns(i: Incarnation, *columns: Column) -> Incarnation:
    """The incarnation with other columns now."""
    return replace(i, segments=(Segment(columns=columns, after_ts=5),))
