"""Lakes for the command line: one that cannot be opened, one with a row in each table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from tests.lake import lakes
from tests.query.verify import everything
from tidelake.config.feed import Feed
from tidelake.history.ddl.changes import ColumnDef, TableDef
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.incarnations import Catalog, create
from tidelake.io.storage import open_store
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import Cut, TableCut
from tidelake.lake.cuts import record
from tidelake.lake.identity import establish
from tidelake.lake.tables import create_snapshot
from tidelake.spark.lake_settings import lake_settings
from tidelake.tso import from_ms

TS = from_ms(1_767_607_200_000)


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Opening a lake fails."""

    @contextmanager
    def opened(*_: object, **__: object) -> Iterator[None]:
        raise error
        yield

    for module in ("stages", "feeds", "tables", "diff", "verify", "quarantine"):
        monkeypatch.setattr(f"tidelake.cli.{module}.opened", opened)


def lake_of(folder: Path, names: list[tuple[str, str]]) -> Feed:
    """A lake with one cut, and a row in each table: its number."""
    feed = lakes.feed(folder)
    feed.folder.mkdir(parents=True)
    (feed.folder / "feed.toml").write_text(everything.FEED.format(folder=folder))
    catalog, store, known = LakeCatalog(lake_settings(feed)), open_store(feed.lake.uri), Catalog()
    establish(feed, store, lake_settings(feed), catalog)
    id_ = ColumnDef(name="id", type=MysqlType.parse("int"), nullable=False)
    for database, table in names:
        known = create(known, database, table, TableDef(columns=(id_,), primary_key=("id",)), -1)
    cut = Cut(feed="shop", seq=1, hour="2026-01-05T10", applied_ts=0, resolved_ts=TS, run="a", version="0", catalog=known)
    for number, i in enumerate(known.incarnations.values()):
        made = create_snapshot(catalog, feed, i, f"lake.t{number}", 1)
        made.table.append(pa.Table.from_pylist([{"id": number, "_commit_ts": 1}], schema=made.table.schema().as_arrow()))
        made = catalog.load(made.identifier)
        cut.snapshots[i.id] = TableCut(identifier=made.identifier, uuid=made.uuid, snapshot_id=made.main, rows=1)
    record(catalog, store, cut)
    return feed
