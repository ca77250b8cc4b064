"""The changes of a table from its changelog, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from tidelake.config.table_name import written
from tidelake.errors import ConfigError, StorageError
from tidelake.history.ddl.column_types import MysqlType
from tidelake.history.incarnations import Incarnation, Name
from tidelake.lake.catalog import LakeColumn
from tidelake.lake.cut import Cut
from tidelake.lake.cuts import KEEP_CHANGES, changelog_retained_after, newest_cut
from tidelake.lake.opened import Lake
from tidelake.lake.scans import After
from tidelake.lake.tables import PARTIAL
from tidelake.query.asof import lives, placed_now
from tidelake.query.render import Rendered
from tidelake.tso import show
from tidelake.wire.masks import read_documented

META = ("_change_type", "_commit_ts", "_origin", "_topic", "_kafka_partition", "_offset", "_ordinal")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRows:
    """Changes of one table for the time it had a name.

    Attributes:
        columns: The change's own columns, then the source's.
        rows: The changes with `_change_seq`, not sorted.
    """

    columns: list[Rendered]
    rows: pa.RecordBatchReader


def changes_of(lake: Lake, table: str, after_ts: int, until_ts: int | None) -> Iterator[ChangeRows]:
    """Yield the published changes in (after_ts, until_ts] of every table that had the name then, table by table.

    Args:
        lake: The feed's lake.
        table: Name, db.table.
        after_ts: TSO, exclusive; 0 means all changes that are kept.
        until_ts: TSO, inclusive; None means the newest cut.

    Raises:
        ConfigError: UNKNOWN_TABLE; the message has the times at which the name existed.
        StorageError: NOT_RETAINED: maintenance removed some of the changes.
    """
    cut = newest_cut(lake.catalog, lake.store, lake.feed.name)
    if cut is None:
        raise ConfigError(f"feed {lake.feed.name} has published nothing yet", code="UNKNOWN_TABLE")
    names = ((i, n) for i in cut.catalog.incarnations.values() for n in i.lasting_names)
    found = [(i, n) for i, n in names if written(n.database, n.table).lower() == table.lower()]
    if not found:
        raise ConfigError(f"no table {table!r}: {lives(cut.catalog, table)}", code="UNKNOWN_TABLE")
    gone = changelog_retained_after(lake.catalog, lake.feed.name)
    if 0 < after_ts < gone or (until_ts is not None and until_ts <= gone):
        raise StorageError(
            f"feed {lake.feed.name}: changes up to {show(gone)} are not all kept",
            code="NOT_RETAINED",
            remedy=f"ask for those after TSO {gone}; {KEEP_CHANGES}",
        )
    for incarnation, name in sorted(found, key=lambda x: x[1].after_ts):
        yield from _of_life(lake, cut, incarnation, name, max(after_ts, gone), until_ts)


def _of_life(lake: Lake, cut: Cut, i: Incarnation, name: Name, after_ts: int, until_ts: int | None) -> Iterator[ChangeRows]:
    if i.id not in cut.changelogs:
        return
    ends = [ts for ts in (until_ts, name.until_ts) if ts is not None]
    begin = i.changes_after if name.after_ts == i.from_ts else name.after_ts
    span = After(max(after_ts, begin), min(ends, default=cut.resolved_ts))
    if span.low >= span.high:
        return
    at = placed_now(cut, cut.changelogs[i.id])
    changelog = lake.catalog.load(at.identifier)
    source = [c for c in changelog.columns(at.snapshot_id) if c.source_id is not None]
    marks = [c.name for c in changelog.columns(at.snapshot_id) if c.source_id is None and c.name == PARTIAL.name]
    meta = [*META, *marks]
    names = [*meta, *(c.name for c in source)]
    columns = [*(Rendered(name=m, type=None) for m in meta), *(Rendered(name=c.name, type=_type(c)) for c in source)]
    yield ChangeRows(columns=columns, rows=changelog.scan({"_commit_ts": span}, [*names, "_change_seq"], at.snapshot_id))


def _type(c: LakeColumn) -> MysqlType:
    """Return the source type from the column's documentation."""
    return MysqlType.parse(read_documented(c.doc or "")[0].partition(":")[2])
