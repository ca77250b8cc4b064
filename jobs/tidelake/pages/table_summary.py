"""Summary of a table for its page: its columns, where its rows come from, its statements, and how to query it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tidelake.config.lake_paths import CATALOG, events_table
from tidelake.history.incarnations import Column, Incarnation
from tidelake.lake.catalog import LakeColumn
from tidelake.lake.cut import Cut, TableCut
from tidelake.lake.decisions import Rejected
from tidelake.lake.tables import mask_of
from tidelake.pages.feed_source import FeedSource
from tidelake.query.origins import origin


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRow:
    """A column. source, lake: types; mask: of feed.toml, empty for none; key: whether it belongs to the key."""

    name: str
    source: str
    lake: str
    mask: str
    key: bool
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """Text to copy. language: what runs it."""

    language: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSummary:
    """A table at the newest cut.

    Attributes:
        name: `db.table`.
        cut: The newest cut.
        snapshot: Its snapshot table; None for a table without a key.
        changelog: Its changelog; None if no change of it was written yet.
        columns: Its columns.
        origin: Where their types come from: messages, tables.sql or a statement.
        lineage: Where its rows come from: pairs of a word and a name.
        statements: Its entries in the DDL ledger, the newest first.
        quarantine: Undecided messages that name it.
        snippets: How to query it.
    """

    name: str
    cut: Cut
    snapshot: TableCut | None
    changelog: TableCut | None
    columns: Sequence[ColumnRow]
    origin: str
    lineage: Sequence[tuple[str, str]]
    statements: Sequence[dict[str, Any]]
    quarantine: Sequence[Rejected]
    snippets: Sequence[Snippet]


def table_summary(source: FeedSource, i: Incarnation, cut: Cut) -> TableSummary:
    """Return the summary of a table of the newest cut. Reads the table's metadata for its columns."""
    snapshot, changelog = cut.snapshots.get(i.id), cut.changelogs.get(i.id)
    return TableSummary(
        name=i.name,
        cut=cut,
        snapshot=snapshot,
        changelog=changelog,
        columns=_columns(source, i, snapshot or changelog),
        origin=origin(i),
        lineage=_lineage(source, i, snapshot, changelog),
        statements=[s for s in reversed(source.statements) if s["incarnation"] == i.id],
        quarantine=[r for r in source.quarantine if r.table == i.name or (r.table is None and i.name in r.error)],
        snippets=list(_snippets(source, i, cut, snapshot, changelog)),
    )


def _columns(source: FeedSource, i: Incarnation, stored: TableCut | None) -> list[ColumnRow]:
    """Every column of the source with its column of the lake, then those of the lake that the source does not have."""
    table = source.lake.catalog.find_own(stored.identifier, source.feed.name) if stored else None
    lake = table.columns() if table is not None else []
    held = {c.source_id: c for c in lake if c.source_id is not None and not c.retired}
    of_source = [_column(source, i, c, held.get(c.id)) for c in i.columns]
    return of_source + [_own(c) for c in lake if c.source_id is None or c.retired]


def _column(source: FeedSource, i: Incarnation, c: Column, held: LakeColumn | None) -> ColumnRow:
    renamed = f"in the lake: {held.name}" if held is not None and held.name != c.name else ""
    former = f"before: {', '.join(c.former)}" if c.former else ""
    return ColumnRow(
        name=c.name,
        source=c.type.sql + ("" if c.nullable else " NOT NULL"),
        lake=held.type if held is not None else "",
        mask=mask_of(source.feed, i, c) or "",
        key=c.id in i.key,
        note="; ".join(filter(None, (renamed, former))),
    )


def _own(c: LakeColumn) -> ColumnRow:
    note = "values from before a change of type" if c.retired else "added by Tidelake"
    return ColumnRow(name=c.name, source="", lake=c.type, mask="", key=False, note=note)


def _lineage(source: FeedSource, i: Incarnation, snapshot: TableCut | None, changelog: TableCut | None) -> list[tuple[str, str]]:
    feed = source.feed
    steps = [
        ("Source", f"{i.name}, table of the upstream database"),
        ("Topics", f"{', '.join(feed.topics)} ({feed.protocol})"),
        ("Archive", feed.source.layout or "live topics"),
        ("Events", events_table(feed.name)),
        ("Changelog", changelog.identifier if changelog else ""),
        ("Snapshot", snapshot.identifier if snapshot else ""),
    ]
    return [(word, name) for word, name in steps if name]


def _snippets(source: FeedSource, i: Incarnation, cut: Cut, snapshot: TableCut | None, changelog: TableCut | None) -> Iterator[Snippet]:
    if snapshot is not None:
        moment = f"-- cut {cut.seq}: the same moment in every table of the feed\n{_select(snapshot)} VERSION AS OF {snapshot.snapshot_id};"
        yield Snippet(language="Spark: the table", code=f"{moment}\n-- the newest published rows\n{_select(snapshot)};")
    if changelog is not None:
        window = f"WHERE _commit_ts > {cut.applied_ts} AND _commit_ts <= {cut.resolved_ts} ORDER BY _change_seq;"
        yield Snippet(language="Spark: its changes in the newest cut", code=f"{_select(changelog)}\n{window}")
    if (read := snapshot or changelog) is not None:
        opened = f'from pyiceberg.catalog import load_catalog\n\ntable = load_catalog("{CATALOG}").load_table({read.identifier!r})\n'
        scan = f"table.scan(snapshot_id={read.snapshot_id})"
        yield Snippet(language="pyiceberg", code=f"{opened}rows = {scan}.to_arrow()")
        yield Snippet(language="DuckDB, by pyiceberg", code=f"""{opened}{scan}.to_duckdb("t").sql("FROM t LIMIT 10").show()""")
    if snapshot is not None:
        command = f"tidelake asof --feed {source.feed.name} --table {shlex.quote(i.name)} --ts {cut.resolved_ts}"
        yield Snippet(language="Command line", code=command)


def _select(table: TableCut) -> str:
    """Return a query in Spark, of the table `lake`.`shopdb`.`orders`."""
    name = ".".join(f"`{part}`" for part in (CATALOG, *table.identifier.split(".")))
    return f"SELECT * FROM {name}"  # noqa: S608  # text for people
