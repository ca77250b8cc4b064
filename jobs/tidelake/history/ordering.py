"""The rules of order (docs/reference/protocols.md 6.4, 11.14) as an executable specification: the oracle of the Spark stages.

The code is small and slow by intent. Spark's result for a window must equal `fold(base, ordered(deduplicated(changes)))` for every history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from tidelake.errors import Coordinates, OrderError
from tidelake.tso import show

RowCells = tuple[object, ...]
# At equal commit ts of one key, deletes come first (docs/reference/protocols.md 1.6).
CLASS = {"delete": 0, "update": 1, "insert": 2, "upsert": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """One row event.

    Attributes:
        key: The handle's cells; None for a table without key.
        at: (topic, partition, offset, ordinal).
        replay_epoch: How often the resolved ts of its partition went back before it; a later replay epoch repeats an earlier one.
        partial: Only the key's cells are known (handle-key-only messages, docs/reference/protocols.md 1.5).
        source: The producer's own name of the change (source_names.source_name), in feeds without commit ts.
    """

    table: str
    op: str
    commit_ts: int
    at: tuple[str, int, int, int]
    key: RowCells | None = None
    before: RowCells | None = None
    after: RowCells | None = None
    replay_epoch: int = 0
    partial: bool = False
    source: str | None = None


def resolved_ts(watermarks: Mapping[Coordinates, int | None]) -> int:
    """Return M: the minimum over all expected partitions of the largest resolved ts seen. Raises OrderError for a partition without one."""
    silent = [str(at) for at, ts in watermarks.items() if ts is None]
    if silent or not watermarks:
        raise OrderError(f"no resolved ts was ever seen in {', '.join(silent) or 'any partition'}", code="NO_WATERMARK")
    return min(ts for ts in watermarks.values() if ts is not None)


def in_window(changes: Iterable[RowChange], applied_ts: int, resolved: int) -> list[RowChange]:
    """Return the rows after applied_ts, up to and including resolved. A row at applied_ts can only be a repeat."""
    return [c for c in changes if applied_ts < c.commit_ts <= resolved]


def deduplicated(changes: Iterable[RowChange]) -> list[RowChange]:
    """Return one of each change: of equal events a whole one before a partial one, then the one with the lowest coordinates.

    With a key, events with the same table, key, commit ts and class are equal. Without a key, the n-th equal row event of a replay epoch
    equals the n-th of any other replay epoch, so the multiplicity is the maximum over replay epochs.
    """
    seen: set[tuple[object, ...]] = set()
    nth: Counter[tuple[object, ...]] = Counter()
    out = []
    for c in sorted(changes, key=lambda c: (c.partial, c.at)):
        identity: tuple[object, ...] = (c.table, c.key, c.commit_ts, CLASS[c.op])
        if c.key is None:
            content = (c.table, c.op, c.commit_ts, c.before, c.after)
            nth[(*content, c.at[0], c.at[1], c.replay_epoch)] += 1
            identity = (*content, nth[(*content, c.at[0], c.at[1], c.replay_epoch)])
        if identity not in seen:
            seen.add(identity)
            out.append(c)
    return out


def without_repeats(changes: Iterable[RowChange]) -> list[RowChange]:
    """Return the changes of a feed without commit ts that their producer had not sent before, by partition and offset.

    A change is a repeat if a change of its partition at a lower offset has its name, and says the same. One without a name never is.
    """
    first: dict[tuple[object, ...], int] = {}
    out = []
    for c in sorted(changes, key=lambda c: c.at):
        topic, partition, offset, _ = c.at
        said = (topic, partition, c.source, c.table, c.op, c.before, c.after)
        if c.source is None or first.setdefault(said, offset) == offset:
            out.append(c)
    return out


def ordered(changes: Iterable[RowChange]) -> list[RowChange]:
    """Sort by commit ts, then delete < update < insert, then arrival."""
    return sorted(changes, key=lambda c: (c.commit_ts, CLASS[c.op], c.at))


def fold(base: Mapping[RowCells, RowCells], changes: Iterable[RowChange], key_of: tuple[int, ...]) -> dict[RowCells, RowCells]:
    """Return a keyed table after changes.

    An update of the key is a delete and an insert, because two rows can exchange their keys at one commit ts.

    A partial row keeps the known values of the other cells, also after a delete of the same commit ts, which is the other half of a split
    update. Unknown cells are None.

    Args:
        base: The table before.
        changes: Changes in any order.
        key_of: Positions of the key's cells in a row.
    """
    rows = dict(base)
    gone: dict[tuple[RowCells, int], RowCells] = {}
    for c in ordered(half for whole in changes for half in _halves(whole, key_of)):
        if c.before is not None and c.op != "insert" and (old := rows.pop(_key(c.before, key_of), None)) is not None:
            gone[_key(c.before, key_of), c.commit_ts] = old
        if c.after is not None:
            key = _key(c.after, key_of)
            rows[key] = _partial(c.after, rows.get(key) or gone.get((key, c.commit_ts)), key_of) if c.partial else c.after
    return rows


def _halves(c: RowChange, key_of: tuple[int, ...]) -> list[RowChange]:
    if c.op != "update" or c.before is None or c.after is None or _key(c.before, key_of) == _key(c.after, key_of):
        return [c]
    return [replace(c, op="delete", after=None), replace(c, op="insert", before=None)]


def _partial(sent: RowCells, known: RowCells | None, key_of: tuple[int, ...]) -> RowCells:
    """The row with the key's cells as sent and the others as known."""
    return tuple(cell if i in key_of else known[i] if known is not None else None for i, cell in enumerate(sent))


def exchanged(
    partitioned: Mapping[RowCells, RowCells], other: Mapping[RowCells, RowCells], belongs: Callable[[RowCells], bool]
) -> tuple[dict[RowCells, RowCells], dict[RowCells, RowCells]]:
    """Return two keyed tables after EXCHANGE PARTITION: the partition's rows and all rows of the other table are exchanged.

    Changes up to and including the statement's commit ts are folded before it, later ones after it.

    Args:
        partitioned: The partitioned table.
        other: The other table.
        belongs: Whether a row belongs to the partition.

    Raises:
        OrderError: A row of the other table does not belong to the partition.
    """
    outside = [row for row in other.values() if not belongs(row)]
    if outside:
        raise OrderError(f"rows that do not belong to the partition: {len(outside)}, the first: {outside[0]}", code="UNSUPPORTED_DDL")
    left = {key: row for key, row in partitioned.items() if belongs(row)}
    return {key: row for key, row in partitioned.items() if key not in left} | dict(other), left


def rekeyed(rows: Iterable[RowCells], key_of: tuple[int, ...]) -> dict[RowCells, RowCells]:
    """Return a table with rows after a statement that gave it another key, or its first one.

    Changes up to and including the statement's commit ts are folded before it by the former key, later ones after it by the new one.

    Args:
        rows: The rows before, with repeats.
        key_of: Positions of the new key's cells in a row.

    Raises:
        OrderError: A key is NULL, or several rows have it.
    """
    out: dict[RowCells, RowCells] = {}
    for row in rows:
        key = _key(row, key_of)
        if None in key or key in out:
            raise OrderError(f"a key that is NULL or not unique: {key}", code="UNSUPPORTED_DDL")
        out[key] = row
    return out


def fold_multiset(base: Counter[RowCells], changes: Iterable[RowChange]) -> Counter[RowCells]:
    """Return a table without key after ordered changes, with the number of each row."""
    rows = Counter(base)
    for c in changes:
        if c.before is not None and c.op != "insert":
            rows[c.before] -= 1
        if c.after is not None:
            rows[c.after] += 1
    return +rows


def check_progress(applied: int, resolved: int) -> None:
    """Raise OrderError if the resolved ts is before the published one."""
    if resolved < applied:
        raise OrderError(f"the resolved ts went back: {show(resolved)} is before {show(applied)}, which is published", code="WENT_BACK")


def _key(row: RowCells, key_of: tuple[int, ...]) -> RowCells:
    return tuple(row[i] for i in key_of)
