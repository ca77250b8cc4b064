"""Lakes to make pages of, written without Spark: feeds with a cut, stored reports, a quarantine and a ledger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.validate.facts import check, published
from tidelake.config.feed import Feed, load_feed
from tidelake.config.lake_paths import decoded_key, manifest_key, mismatches_key, quality_key
from tidelake.config.table_name import parse
from tidelake.history.ddl.changes import ColumnDef, TableDef
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.incarnations import Catalog, create
from tidelake.history.window import LedgerEntry
from tidelake.io.storage import Store, open_store
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import Cut, Reason, TableCut
from tidelake.lake.cuts import record
from tidelake.lake.events import ensure_events
from tidelake.lake.identity import establish
from tidelake.lake.tables import create_changelog, create_snapshot
from tidelake.spark.lake_settings import lake_settings
from tidelake.tso import format_hour, from_ms, parse_hour
from tidelake.validate.quality.facts import DdlFacts, FindingFacts, HourFacts, RejectedFacts, TableFacts

TEN, ELEVEN = "2026-01-05T10", "2026-01-05T11"
ADD_NOTE = "ALTER TABLE orders ADD note varchar(200)"
ORDERS, LINES = "shopdb.orders", "shopdb.lines"
FEED = """
protocol = "open"
topics = ["t"]
partitions = 1
[source]
uri = "{folder}/archive"
layout = "aiven-jsonl"
[lake]
uri = "{folder}/lakes/{name}"
[columns."shopdb.orders".note]
mask = "null"
"""
_COLUMNS = (("id", "bigint", False), ("total", "decimal(12,2)", True), ("note", "varchar(200)", True))


def declared(folder: Path, name: str = "shop") -> Feed:
    """A feed's folder below `folder`/schemas. It has no lake."""
    where = folder / "schemas" / name
    where.mkdir(parents=True)
    (where / "feed.toml").write_text(FEED.format(folder=folder, name=name))
    return load_feed(folder / "schemas", name)


def resolved_at(hour: str) -> int:
    """A resolved ts 3.407 s before the end of an hour."""
    return from_ms(int((parse_hour(hour) + timedelta(hours=1)).timestamp() * 1000) - 3407)


def lake_of(
    feed: Feed, hour: str = ELEVEN, tables: Sequence[str] = (ORDERS, LINES), *, real: bool = True, seq: int = 2, **changes: Any
) -> Cut:
    """A lake with one cut. real: with tables in the catalog, else with names alone; changes: members of the cut."""
    catalog, store, known = LakeCatalog(lake_settings(feed)), open_store(feed.lake.uri), Catalog()
    Path(feed.lake.uri).mkdir(parents=True, exist_ok=True)
    establish(feed, store, lake_settings(feed), catalog)
    columns = tuple(ColumnDef(name=n, type=MysqlType.parse(t), nullable=null) for n, t, null in _COLUMNS)
    for name in tables:
        known = create(known, *parse(name), TableDef(columns=columns, primary_key=("id",)), -1)
    members = {"applied_ts": resolved_at(TEN), "resolved_ts": resolved_at(hour), "run": "a", "version": "0", "first_hour": TEN} | changes
    cut = Cut(feed=feed.name, seq=seq, hour=hour, catalog=known, **members)
    for number, i in enumerate(known.incarnations.values()):
        if real:
            snapshot = create_snapshot(catalog, feed, i, f"shopdb.{parse(i.name).table}", 1)
            changelog = create_changelog(catalog, feed, i, f"shopdb_changelog.{parse(i.name).table}", i.columns, 1)
            cut.snapshots[i.id] = TableCut(identifier=snapshot.identifier, uuid=snapshot.uuid, snapshot_id=snapshot.main, rows=50_967)
            cut.changelogs[i.id] = TableCut(identifier=changelog.identifier, uuid=changelog.uuid, snapshot_id=changelog.main)
        else:
            cut.snapshots[i.id] = TableCut(identifier=f"shopdb.t{number}", uuid=str(number), snapshot_id=number, rows=number)
    ensure_events(catalog, feed)
    record(catalog, store, cut)
    return cut


def report(feed: Feed, hour: str, **changes: Any) -> HourFacts:
    """Store the quality document of an hour of a feed, which is landed and decoded."""
    tables = {ORDERS: orders(50_967), LINES: TableFacts(events=20, inserts=20, changes=20, rows_before=0, rows_after=20)}
    facts = published(
        **({"feed": feed.name, "hour": hour, "tables": tables, "checks": checks(), "resolved_ts": resolved_at(hour)} | changes)
    )
    store = open_store(feed.lake.uri)
    landed(store, feed.name, hour)
    store.write(decoded_key(feed.name, hour), b"{}")
    store.write(quality_key(feed.name, hour), facts.model_dump_json(indent=1).encode())
    return facts


def orders(rows: int) -> TableFacts:
    """A window of shopdb.orders that ends with this number of rows."""
    return TableFacts(events=1300, inserts=1000, updates=250, deletes=33, changes=1533, rows_before=rows - 967, rows_after=rows)


def checks(success: bool = True) -> list[Any]:
    """A check of each table; success: of the one of shopdb.orders."""
    return [
        check(success, table=ORDERS, column="id", observed="no bad value among 1,283"),
        check(table=LINES, rule="rows fit", severity="warning"),
    ]


def landed(store: Store, feed: str, hour: str) -> None:
    """An hour is landed; pages only list its manifest."""
    store.write(manifest_key(feed, hour, 1), b"{}")


def set_aside(feed: Feed, table: str, rows: int, seq: int = 3) -> None:
    """A group of rows that fit no table and need a decision."""
    group = {
        "hour": ELEVEN,
        "topic": "t",
        "partition": 0,
        "offset": 17,
        "timestamp_ms": 1,
        "first_ts": 5,
        "rows": rows,
        "table": table,
        "error": f"the schema of {table} does not fit",
    }
    open_store(feed.lake.uri).write(mismatches_key(feed.name, seq), json.dumps([group]).encode())


def hours(first: str, count: int) -> list[str]:
    """Consecutive hours."""
    return [format_hour(parse_hour(first) + timedelta(hours=n)) for n in range(count)]


def shop(folder: Path, name: str = "shop") -> Feed:
    """A feed with two published hours, the newest of them incomplete, a statement, a failed check, and a blocked hour."""
    feed = declared(folder, name)
    reason = Reason(code="UNDECIDED", detail="3 messages were not decoded", cut=2, hour=ELEVEN)
    added = LedgerEntry(commit_ts=resolved_at(TEN) + 9, database="shopdb", query=ADD_NOTE, effect="applied", tables=(f"{ORDERS}@-1",))
    lake_of(feed, incomplete=True, incomplete_because=[reason], ledger=[added])
    report(feed, TEN, cut=1, tables={ORDERS: orders(50_000)}, checks=checks(False))
    because = "UNDECIDED: 3 messages were not decoded (cut 2, hour 2026-01-05T11)"
    statement = DdlFacts(commit_ts=added.commit_ts, query=ADD_NOTE, effect="applied")
    late = FindingFacts(code="LATE_FILE", severity="warning", where="t[0]", detail="1 file came late", remedy="nothing to do")
    report(feed, ELEVEN, cut=2, incomplete=True, incomplete_because=[because], ddl=[statement], findings=[late])
    wrong = [RejectedFacts(code="TRUNCATED", messages=2, examples=["t[0]@17: size table ends at byte 212"])]
    report(
        feed,
        "2026-01-05T12",
        status="blocked",
        cut=None,
        error="GAP t[0]: offsets 7 to 9 are not landed",
        rejected=wrong,
        tables={},
        checks=[],
    )
    set_aside(feed, ORDERS, 3)
    return feed
