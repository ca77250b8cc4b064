"""Profiles a published table and the changes of its last hours, and writes the expectations that they meet. Without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from tidelake.config.feed import Feed
from tidelake.config.table_name import file_stem
from tidelake.errors import ConfigError, StorageError
from tidelake.history.contract import read_recorded_ddl, read_tables
from tidelake.history.incarnations import Column, Incarnation
from tidelake.io.texts import plural
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Cut
from tidelake.lake.cuts import newest_cut
from tidelake.lake.opened import Lake
from tidelake.lake.scans import After
from tidelake.lake.tables import PARTIAL, holders, value_rules
from tidelake.tso import begin_ts, parse_hour
from tidelake.validate.quality.applicable import columns_of
from tidelake.validate.suggest.profile import ColumnProfile, TableProfile
from tidelake.validate.suggest.rules import LEAST_ROWS, Described, Suggested, suggested
from tidelake.validate.suggest.text import as_toml
from tidelake.wire.masks import read_documented

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestedFile:
    """Suggested expectations of a table. stem: the name of its file without extension; text: the file's TOML."""

    table: str
    stem: str
    rules: list[Suggested]
    text: str


def tables_of(lake: Lake, table: str | None) -> tuple[Cut, list[Incarnation]]:
    """Return the newest cut and its present tables, or the one with this name, ignoring case.

    Raises:
        StorageError: NOT_PUBLISHED.
        ConfigError: UNKNOWN_TABLE.
    """
    cut, feed = newest_cut(lake.catalog, lake.store, lake.feed.name), lake.feed.name
    if cut is None:
        said = f"feed {feed}: nothing is published yet, so there are no rows to look at"
        raise StorageError(said, code="NOT_PUBLISHED", remedy=f"`tidelake run --feed {feed}` publishes a cut")
    every = sorted(cut.catalog.alive(), key=lambda i: i.name)
    chosen = [i for i in every if table is None or i.name.lower() == table.lower()]
    if table is not None and not chosen:
        names = ", ".join(i.name for i in every[:20]) or "none"
        raise ConfigError(f"feed {feed} has no table {table}", code="UNKNOWN_TABLE", remedy=f"its tables: {names}")
    return cut, chosen


def suggest(lake: Lake, cut: Cut, i: Incarnation, hours: int, progress: Progress | None = None) -> SuggestedFile:
    """Return expectations that the published rows of a table and its changes of the last hours meet.

    Args:
        lake: The feed's opened lake.
        cut: The newest cut.
        i: The table.
        hours: Number of hours, up to that of the cut, whose changes are read.
        progress: Called with (done, in all), in rows of the snapshot.
    """
    snapshot, changelog = cut.snapshots.get(i.id), cut.changelogs.get(i.id)
    tables = {t.identifier: lake.catalog.load(t.identifier) for t in (snapshot, changelog) if t is not None}
    judged = tables[changelog.identifier] if changelog else tables[snapshot.identifier] if snapshot else None
    there = holders(judged.columns()) if judged else {}
    described = {c.id: _described(lake, i, c) for c in i.columns if c.id in there}
    masked = {n for t in tables.values() for n, mark in _masks(t).items() if mark}
    described = {n: d if d.mask or n not in masked else _masked(d) for n, d in described.items()}
    clear = {n for n, d in described.items() if d.mask is None}
    profile = TableProfile(columns={n: ColumnProfile() for n in clear}, key=i.key if clear.issuperset(i.key) else ())
    if snapshot is not None:
        _read_snapshot(tables[snapshot.identifier], snapshot.snapshot_id, snapshot.rows, profile, progress)
    if changelog is not None:
        first = begin_ts(parse_hour(cut.hour) - timedelta(hours=hours - 1))
        _read_changes(tables[changelog.identifier], changelog.snapshot_id, After(min(first, cut.applied_ts), cut.resolved_ts), profile)
    rules = _with_later(lake.feed, i.name, suggested(profile, described))
    text = as_toml(_heading(lake, cut, i, profile, hours), rules, _remarks(described, rules))
    return SuggestedFile(table=i.name, stem=file_stem(i.names[-1].database, i.names[-1].table), rules=rules, text=text)


def _with_later(feed: Feed, table: str, rules: list[Suggested]) -> list[Suggested]:
    """The rules, those about columns that tables.sql does not have with `later`: a statement added the column."""
    known = columns_of(read_tables(feed.folder), read_recorded_ddl(feed.folder), feed).get(table.lower())
    if known is None:
        return rules
    named = [[r.arguments["column"]] if "column" in r.arguments else r.arguments.get("column_list", []) for r in rules]
    added = [any(c.lower() not in known for c in columns) for columns in named]
    return [replace(r, arguments={**r.arguments, "later": True}) if late else r for r, late in zip(rules, added, strict=True)]


def _described(lake: Lake, i: Incarnation, c: Column) -> Described:
    """A column as the rules of the next window see it, by its present name."""
    elements = c.type.elements if c.type.word == "enum" else None
    mask = value_rules(lake.feed, i, c).mask
    return Described(name=c.lake_name, key=c.id in i.key, json=c.type.word == "json", elements=elements, mask=mask)


def _masked(d: Described) -> Described:
    return Described(name=d.name, key=d.key, mask="when its rows were written")


def _masks(table: LakeTable) -> Mapping[int, str | None]:
    """The masks that a table says of its columns, by column id. feed.toml may have changed since."""
    return {n: read_documented(c.doc or "")[1] for c in table.columns() if (n := c.source_id) is not None}


def _read_snapshot(table: LakeTable, snapshot_id: int, rows: int, profile: TableProfile, progress: Progress | None) -> None:
    names = _names(table, profile)
    if not names:
        return
    for batch in table.scan(None, list(names.values()), snapshot_id):
        profile.add_published(batch, names)
        if progress is not None:
            progress(profile.published, max(rows, profile.published))


def _read_changes(table: LakeTable, snapshot_id: int, window: After[int], profile: TableProfile) -> None:
    names = _names(table, profile)
    own = [c.name for c in table.columns() if c.name in ("_change_type", "_commit_ts", PARTIAL.name)]
    for batch in table.scan({"_commit_ts": window}, [*own, *names.values()], snapshot_id):
        profile.add_changes(batch, names)


def _names(table: LakeTable, profile: TableProfile) -> dict[int, str]:
    """The table's columns that are profiled, by column id."""
    have = holders(table.columns())
    return {n: have[n][0].name for n in profile.columns if n in have}


def _heading(lake: Lake, cut: Cut, i: Incarnation, p: TableProfile, hours: int) -> list[str]:
    return [
        f"Suggested by `tidelake expectations suggest` for {i.name} of feed {lake.feed.name}, from cut {cut.seq} (hour {cut.hour}): "
        f"{plural(p.published, 'row')},",
        f"and {plural(p.changed, 'new row')} in the changes of the last {plural(hours, 'hour')}.",
        "Edit before use: these rules describe what was seen, not what is right. Each only warns: without `severity` it blocks.",
    ]


def _remarks(described: Mapping[int, Described], rules: list[Suggested]) -> list[str]:
    masked = [f"{d.name}: masked ({d.mask}), nothing is suggested of its values" for d in described.values() if d.mask is not None]
    few = [f"nothing is suggested: a rule of values needs {LEAST_ROWS} rows, a rule of counts one change"] if not rules else []
    return [*masked, *few]
