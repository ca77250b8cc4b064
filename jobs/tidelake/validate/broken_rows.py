"""Reads rows that break a rule which every table gets. Only after such a rule failed, without Spark, and no more rows than are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidelake.config.evidence import MOST_ROWS
from tidelake.config.lake_paths import events_table
from tidelake.history.incarnations import Incarnation
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut import Advance, Cut, Staged, TableCounts
from tidelake.lake.scans import After, Where
from tidelake.lake.tables import holders
from tidelake.tso import MOST
from tidelake.validate.quality.evidence import COMMIT_TS, OFFSET, PARTITION, PLACE, TOPIC, UnexpectedRows, unexpected_rows
from tidelake.validate.written import WrittenCounts

_AT = ("topic", "partition", "offset", "ordinal")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRows:
    """Rows of one table. None where no such row was counted.

    Attributes:
        null_keys: With NULL in the key.
        outside: With a commit ts outside the window.
        damaged: Of events that do not match their checksum.
    """

    null_keys: UnexpectedRows | None = None
    outside: UnexpectedRows | None = None
    damaged: UnexpectedRows | None = None


def broken_rows(catalog: LakeCatalog, staged: Staged, found: Mapping[str, WrittenCounts]) -> dict[str, BrokenRows]:
    """Return rows that break a rule, by incarnation, for tables in which `found` counts any."""
    out = dict[str, BrokenRows]()
    for i, counted in found.items():
        null_keys, outside = bool(counted["null_keys"]), bool(outside_window(counted, staged))
        damaged = bool(staged.counts[i].checksums.get("mismatch"))
        if not (null_keys or outside or damaged):
            continue
        rows = _Rows.of(catalog, staged, i)
        out[i] = BrokenRows(
            null_keys=rows.null_keys() if null_keys else None,
            outside=rows.outside() if outside else None,
            damaged=rows.damaged(catalog.load(events_table(staged.cut.feed))) if damaged else None,
        )
    return out


def outside_window(counted: WrittenCounts, staged: Staged) -> list[int]:
    """Return the first and last commit ts, if they are outside the window."""
    cut = staged.cut
    return [ts for ts in (counted.get("first_ts"), counted.get("last_ts")) if ts and not cut.applied_ts < ts <= cut.resolved_ts]


def index_columns(table: LakeTable, i: Incarnation) -> list[str]:
    """Return the changelog's columns that name a row: those of the key, and its event."""
    have = holders(table.columns())
    return [*(have[k][0].name for k in i.key), *PLACE]


def invalid_rows(c: TableCounts, column: str) -> UnexpectedRows | None:
    """Return rows of which this column does not fit its type. Columns have the source's names, values are as they were sent."""
    found = c.invalid_value_examples.get(column, ())
    rows = [
        v.key | {column: v.cell} | dict(zip(PLACE, (v.commit_ts, v.topic, v.partition, v.offset, v.ordinal), strict=True)) for v in found
    ]
    return unexpected_rows([*found[0].key, *PLACE], [column], rows) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Reads rows of one table's window. index: columns that name a row."""

    table: LakeTable
    incarnation: Incarnation
    advance: Advance
    cut: Cut
    index: list[str]

    @classmethod
    def of(cls, catalog: LakeCatalog, staged: Staged, incarnation: str) -> _Rows:
        advance, i = staged.changelogs[incarnation], staged.cut.catalog.incarnations[incarnation]
        table = catalog.load(advance.identifier)
        return cls(table=table, incarnation=i, advance=advance, cut=staged.cut, index=index_columns(table, i))

    def null_keys(self) -> UnexpectedRows | None:
        key = self.index[: -len(PLACE)]
        return unexpected_rows(self.index, key, self._changes([{name: None} for name in key]))

    def outside(self) -> UnexpectedRows | None:
        ends = After(-MOST, self.cut.applied_ts), After(self.cut.resolved_ts, MOST)
        return unexpected_rows(self.index, [COMMIT_TS], self._changes([{COMMIT_TS: end} for end in ends]))

    def damaged(self, events: LakeTable) -> UnexpectedRows | None:
        """Only the events say which they are, only the changes have the key. A repeat of another event is no change."""
        few = (events.scan(where, _AT, self.cut.events_snapshot_id, MOST_ROWS) for where in self._mismatches())
        at = {tuple(r.values()) for found in few for r in found.read_all().to_pylist()}
        where = {name: sorted({a[n] for a in at}) for n, name in enumerate((TOPIC, PARTITION, OFFSET))}
        read = self._changes([where], None) if at else []
        return unexpected_rows(self.index, [], [r for r in read if tuple(r[c] for c in PLACE[1:]) in at])

    def _mismatches(self) -> Iterator[Where]:
        """A filter of the events for each name that the table had. Messages may write a name in small letters."""
        for n in self.incarnation.names:
            last = self.cut.resolved_ts if n.until_ts is None else min(n.until_ts, self.cut.resolved_ts)
            inside = {"kind": "row", "checksum": "mismatch", "commit_ts": After(max(n.after_ts, self.cut.applied_ts), last)}
            yield inside | {"database": [n.database, n.database.lower()], "table": [n.table, n.table.lower()]}

    def _changes(self, filters: Sequence[Where], limit: int | None = MOST_ROWS) -> list[Mapping[str, Any]]:
        read = [self.table.added(self.advance.base, self.advance.to, self.index, where, limit) for where in filters]
        rows = [r for t in read for r in t.to_pylist()]
        return list({tuple(map(repr, r.values())): r for r in rows}.values())  # an update's two rows, a row with several NULL: once
