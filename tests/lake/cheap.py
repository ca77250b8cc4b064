"""Cuts without Spark and without stages: a row more in one table and in its changelog, published as any run publishes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

from tests.lake import lakes
from tidelake.history.ddl.changes import ColumnDef, TableDef
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.incarnations import Catalog, create
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Advance, Cut, Intent, Reason, Staged, TableCounts, TableCut
from tidelake.lake.cuts import newest_cut
from tidelake.lake.opened import Lake
from tidelake.lake.tables import CHANGELOG_COLUMNS
from tidelake.publish.certificate import proof_of
from tidelake.publish.certify import certify
from tidelake.publish.steps import carry_out, declare
from tidelake.tso import at, last_of
from tidelake.validate.quality.verdict import Check, Verdict

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


def publish(
    lake: Lake,
    previous: Cut | None,
    hours: float,
    by: str = "day",
    lacks: Sequence[Reason] = (),
    checks: Sequence[Check] = (),
    **known_of: object,
) -> Cut:
    """A cut at this hour: a row more in d.k, its id the cut's number, of half an hour before; d.idle is as it was first.

    by: how a new changelog is partitioned; lacks: why the cut is incomplete; checks: results of expectations; known_of: other members of
    the cut.
    """
    seq = previous.seq + 1 if previous else 1
    if previous is None:
        for identifier in ("d.k", "d.idle"):
            lakes.table(lake.catalog, identifier)
            _append(lake, identifier, [(0, "first")], ts(hours - 0.5) - 1)
    if lake.catalog.find("d_changelog.k") is None:
        lake.catalog.claim_namespace("d_changelog", "shop")
        columns, how = [*lakes.COLUMNS[:2], *CHANGELOG_COLUMNS], {"tidelake.feed": "shop"}
        lake.catalog.create("d_changelog.k", columns, partition=[("_commit_at", by)], sort=["_commit_ts"], properties=how)
        if previous is None:
            _append(lake, "d_changelog.k", [(0, "first")], ts(hours - 0.5) - 1)
    advances = [_staged(lake, identifier, seq, ts(hours - 0.5)) for identifier in ("d.k", "d_changelog.k")]
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
        files=dict(previous.files) if previous else {},
        metadata=dict(previous.metadata) if previous else {},
        incomplete=bool(lacks),
        incomplete_because=list(lacks),
    )
    cut = cut.model_copy(update=known_of)
    events = 1 if previous else 2
    staged = Staged(cut=cut, counts={"d.k@-1": TableCounts(events=events, inserts=events, changes=events)}, window_events=events)
    verdict = Verdict(feed="shop", hour=cut.hour, seq=seq, run=cut.run, checks=list(checks))
    intent = Intent(cut=cut, advances=advances, certificate=proof_of(staged, verdict, {}, previous, cut, {}))
    certify(lake, intent, "hour")
    declare(lake.store, intent)
    return carry_out(lake.catalog, lake.store, intent)


def newest(lake: Lake) -> Cut:
    """The newest cut; there must be one."""
    found = newest_cut(lake.catalog, lake.store, "shop")
    assert found is not None
    return found


def _staged(lake: Lake, identifier: str, seq: int, commit_ts: int) -> Advance:
    table = lake.catalog.load(identifier)
    branch = f"run_{seq}_1"
    lake.catalog.set_branch(table, branch, table.main)
    _append(lake, identifier, [(seq, "more")], commit_ts, branch)
    head = lake.catalog.load(identifier).branch(branch)
    return Advance(identifier=identifier, uuid=table.uuid, base=table.main, to=head, branch=branch, incarnation="d.k@-1")


def _append(lake: Lake, identifier: str, rows: Sequence[tuple[int, str]], commit_ts: int, branch: str = "main") -> None:
    table = lake.catalog.load(identifier)
    table.table.append(_inserts(table, rows, commit_ts), branch=branch)


def _inserts(table: LakeTable, rows: Sequence[tuple[int, str]], commit_ts: int) -> pa.Table:
    """Rows of (id, v) as a table or a changelog has them."""
    known = {"_change_type": "INSERT", "_change_seq": Decimal(commit_ts), "_commit_ts": commit_ts, "_commit_at": at(commit_ts)}
    known |= {"_origin": "event", "_topic": "t", "_kafka_partition": 0, "_offset": 1, "_ordinal": 0}
    schema = table.table.schema().as_arrow()
    return pa.Table.from_pylist([known | {"id": i, "v": v} for i, v in rows], schema=schema)
