"""Cuts without Spark and without stages: a row more in one table and in its changelog, published as any run publishes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.lake import lakes
from tidelake.ddl.changes import ColumnDef, TableDef
from tidelake.incarnations import Catalog, create
from tidelake.lake.cut import Advance, Cut, Intent, TableCut
from tidelake.lake.cuts import newest_cut
from tidelake.lake.opened import Lake
from tidelake.lake.publish import carry_out, declare
from tidelake.tso import last_of
from tidelake.values import MysqlType

START = datetime(2026, 1, 1, tzinfo=UTC)


def ts(hours: float) -> int:
    """A TSO so many hours after the start."""
    return last_of(START + timedelta(hours=hours))


def known() -> Catalog:
    """The tables d.k and d.idle, with columns id and v."""
    columns = (
        ColumnDef(name="id", type=MysqlType.parse("bigint"), nullable=False),
        ColumnDef(name="v", type=MysqlType.parse("varchar(10)")),
    )
    names = Catalog()
    for table in ("k", "idle"):
        names = create(names, "d", table, TableDef(columns=columns, primary_key=("id",)), -1)
    return names


def publish(lake: Lake, previous: Cut | None, hours: float) -> Cut:
    """A cut at this hour: a row more in d.k, its id the cut's number; d.idle is as it was first."""
    seq = previous.seq + 1 if previous else 1
    if previous is None:
        for identifier in ("d.k", "d_changelog.k", "d.idle"):
            lakes.table(lake.catalog, identifier, [(0, "first")])
    advances = [_staged(lake, identifier, seq) for identifier in ("d.k", "d_changelog.k")]
    rows = previous.snapshots["d.k@-1"].rows + 1 if previous else 2
    k, changes = (TableCut(identifier=a.identifier, uuid=a.uuid, snapshot_id=a.to, rows=rows) for a in advances)
    idle = lake.catalog.load("d.idle")
    cut = Cut(
        feed="shop",
        seq=seq,
        hour=f"{START + timedelta(hours=hours):%Y-%m-%dT%H}",
        applied_ts=previous.resolved_ts if previous else 0,
        resolved_ts=ts(hours),
        run=f"run_{seq}_1",
        version="0",
        catalog=known(),
        snapshots={"d.k@-1": k, "d.idle@-1": TableCut(identifier="d.idle", uuid=idle.uuid, snapshot_id=idle.main, rows=1)},
        changelogs={"d.k@-1": changes},
        past=dict(previous.past) if previous else {},
    )
    intent = Intent(cut=cut, advances=advances, certificate={"feed": "shop", "cut": seq, "hour": cut.hour})
    declare(lake.store, intent)
    return carry_out(lake.catalog, lake.store, intent)


def newest(lake: Lake) -> Cut:
    """The newest cut; there must be one."""
    found = newest_cut(lake.catalog, lake.store, "shop")
    assert found is not None
    return found


def _staged(lake: Lake, identifier: str, seq: int) -> Advance:
    table = lake.catalog.load(identifier)
    branch = f"run_{seq}_1"
    head = lakes.stage(lake.catalog, table, branch, [(seq, "more")])
    return Advance(identifier=identifier, uuid=table.uuid, base=table.main, to=head, branch=branch, incarnation="d.k@-1")
