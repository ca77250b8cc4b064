"""The rules of order, as an executable specification in plain Python: the oracle of the Spark stages (protocols.md 6.4, 11.14).

Small and slow on purpose. What Spark does to a window must equal `fold(base, ordered(deduplicated(changes)))` for every history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidelake.errors import Coordinates, OrderError
from tidelake.tso import show

Cells = tuple[object, ...]
CLASS = {"delete": 0, "update": 1, "insert": 2, "upsert": 2}  # of equal commit ts for one key, deletes come first (protocols.md 1.6)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """One row event. key: the handle's cells, None for a table without key. at: (topic, partition, offset, ordinal).

    stretch: how often the resolved ts of its partition had gone back before it; a later stretch repeats an earlier one.
    """

    table: str
    op: str
    commit_ts: int
    at: tuple[str, int, int, int]
    key: Cells | None = None
    before: Cells | None = None
    after: Cells | None = None
    stretch: int = 0


def resolved_ts(watermarks: Mapping[Coordinates, int | None]) -> int:
    """M: the minimum over all expected partitions of the largest resolved ts seen. Raises OrderError naming a partition without one."""
    silent = [str(at) for at, ts in watermarks.items() if ts is None]
    if silent or not watermarks:
        raise OrderError(f"no resolved ts was ever seen in {', '.join(silent) or 'any partition'}", code="NO_WATERMARK")
    return min(ts for ts in watermarks.values() if ts is not None)


def in_window(changes: Iterable[RowChange], applied_ts: int, resolved: int) -> list[RowChange]:
    """Rows after applied_ts, up to and including resolved. A row at applied_ts can only be a repeat."""
    return [c for c in changes if applied_ts < c.commit_ts <= resolved]


def deduplicated(changes: Iterable[RowChange]) -> list[RowChange]:
    """One of each change: of copies, the one with the lowest coordinates.

    With a key: same table, key, commit ts and class. Without: the n-th equal row event of a stretch is the n-th of any other stretch,
    so the multiplicity is the maximum over stretches.
    """
    seen: set[tuple[object, ...]] = set()
    nth: Counter[tuple[object, ...]] = Counter()
    out = []
    for c in sorted(changes, key=lambda c: c.at):
        identity: tuple[object, ...] = (c.table, c.key, c.commit_ts, CLASS[c.op])
        if c.key is None:
            content = (c.table, c.op, c.commit_ts, c.before, c.after)
            nth[(*content, c.at[0], c.at[1], c.stretch)] += 1
            identity = (*content, nth[(*content, c.at[0], c.at[1], c.stretch)])
        if identity not in seen:
            seen.add(identity)
            out.append(c)
    return out


def ordered(changes: Iterable[RowChange]) -> list[RowChange]:
    """By commit ts, then delete < update < insert, then arrival."""
    return sorted(changes, key=lambda c: (c.commit_ts, CLASS[c.op], c.at))


def fold(base: Mapping[Cells, Cells], changes: Iterable[RowChange], key_of: tuple[int, ...]) -> dict[Cells, Cells]:
    """A keyed table after ordered changes. key_of: positions of the key's cells in a row; an update may move a row to another key."""
    rows = dict(base)
    for c in changes:
        if c.before is not None and c.op != "insert":
            rows.pop(_key(c.before, key_of), None)
        if c.after is not None:
            rows[_key(c.after, key_of)] = c.after
    return rows


def fold_multiset(base: Counter[Cells], changes: Iterable[RowChange]) -> Counter[Cells]:
    """A table without key after ordered changes: equal rows count."""
    rows = Counter(base)
    for c in changes:
        if c.before is not None and c.op != "insert":
            rows[c.before] -= 1
        if c.after is not None:
            rows[c.after] += 1
    return +rows


def check_progress(applied: int, resolved: int) -> None:
    """Raises OrderError if the resolved ts stands behind what was applied."""
    if resolved < applied:
        raise OrderError(f"the resolved ts went back: {show(resolved)} is before {show(applied)}, which is published", code="WENT_BACK")


def _key(row: Cells, key_of: tuple[int, ...]) -> Cells:
    return tuple(row[i] for i in key_of)
