"""A table's fold as workers need it, from its catalog entry and its physical tables. Workers do not import this module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidelake.history.incarnations import ALWAYS, Column, Removal
from tidelake.lake.catalog import LakeColumn, LakeTable
from tidelake.lake.columns.cells import CastRules, cell_type
from tidelake.lake.columns.fold_columns import Default, FoldColumn, Holder
from tidelake.lake.columns.fold_rules import ComparedImages, FoldRules, Removed, TableFold
from tidelake.lake.folding.file_rows import ORDERED
from tidelake.lake.folding.fold import Fold
from tidelake.lake.tables import CHANGELOG_COLUMNS, COMMIT_TS, PARTIAL, holders, lake_column, mask_of, shown_type, value_rules
from tidelake.wire.masks import mask_key, masked_text


@dataclass(frozen=True, slots=True)
class TableAt:
    """A physical table at a snapshot. after: only rows that were appended after this snapshot are wanted."""

    table: LakeTable
    snapshot_id: int
    after: int | None = None


def table_fold(
    fold: Fold,
    base: TableAt | None,
    changes: TableAt | None,
    *,
    partial: bool = True,
    merges: bool = False,
    images: ComparedImages | None = None,
    coded: bool = False,
) -> TableFold:
    """Return the fold of a table.

    Args:
        fold: What to fold.
        base: The snapshot, if there is one.
        changes: The changelog, if there is one.
        partial: Rows may have come with their key alone.
        merges: Merge-on-read.
        images: How old values are compared, if at all.
        coded: Cells of hashed columns may be dictionaries.

    Raises:
        OrderError: UNSUPPORTED_DDL: the partitioning column of removed rows is gone or masked.
    """
    base_columns, change_columns = _base_columns(fold, base), _change_columns(fold, changes)
    marks = {c.name for c in changes.table.columns(changes.snapshot_id) if c.source_id is None} if changes else set()
    rules = FoldRules(
        columns=tuple(c.lake_name for c in fold.columns),
        key=tuple(fold.key),
        after_ts=max(fold.applied_ts, fold.emptied_ts),
        until_ts=fold.until_ts,
        emptied_ts=fold.emptied_ts,
        removed=tuple(removed(fold, r) for r in fold.removals),
        partial=partial and PARTIAL.name in marks,
        merges=merges,
        images=images,
        leading=_leading(fold, base_columns),
    )
    if coded:
        base_columns, change_columns = _coded(fold, base_columns), _coded(fold, change_columns)
    return TableFold(rules=rules, base=base_columns, changes=change_columns)


def _coded(fold: Fold, columns: Sequence[FoldColumn]) -> tuple[FoldColumn, ...]:
    """The columns, those of hashes marked that are neither compared nor put together of several ones."""
    marks = {c.lake_name: mask_of(fold.feed, fold.incarnation, c) or "" for c in fold.columns if c.lake_name not in fold.key}
    hashed = {name for name, mark in marks.items() if mark.startswith("hash")}
    alone = (c.name in hashed and [h.type for h in c.holders] == [c.type] and c.default is None for c in columns)
    return tuple(c.model_copy(update={"coded": True}) if coded else c for c, coded in zip(columns, alone, strict=True))


def _leading(fold: Fold, columns: Sequence[FoldColumn]) -> str | None:
    """The key's first column if its values have an order; without a key, the first such column of the table."""
    names = fold.key[:1] or [c.lake_name for c in fold.columns]
    ordered = {c.name for c in columns if c.type in ORDERED}
    return next((n for n in names if n in ordered), None)


def removed(fold: Fold, r: Removal) -> Removed:
    """Return the rows of a removed partition by the fold's columns. Raises OrderError (UNSUPPORTED_DDL)."""
    return Removed(
        ts=r.ts,
        column=fold.partition_columns(r)[0].lake_name,
        low=r.low,
        high=r.high,
        values=r.values,
        null=r.null,
        text=r.text,
        modulus=r.modulus,
        hashed=tuple(c.lake_name for c in fold.partition_columns(r)) if r.hashed else (),
        also=tuple(removed(fold, a) for a in r.also),
    )


def _base_columns(fold: Fold, base: TableAt | None) -> tuple[FoldColumn, ...]:
    have = base.table.columns(base.snapshot_id) if base else []
    ids = base.table.field_ids(base.snapshot_id) if base else {}
    out, held_by = [], holders(have)
    for c in fold.columns:
        held = held_by.get(c.id, [])
        default = _default(fold, c, None) if not held and c.since_ts > ALWAYS else None
        out.append(_column(fold, c, held, ids, default))
    return (*out, *_own((COMMIT_TS,), have, ids))


def _change_columns(fold: Fold, changes: TableAt | None) -> tuple[FoldColumn, ...]:
    have = changes.table.columns(changes.snapshot_id) if changes else []
    ids = changes.table.field_ids(changes.snapshot_id) if changes else {}
    out, held_by = [], holders(have)
    for c in fold.columns:
        added = c.since_ts > fold.applied_ts and c.default is not None
        out.append(_column(fold, c, held_by.get(c.id, []), ids, _default(fold, c, c.since_ts) if added else None))
    return (*out, *_own((*CHANGELOG_COLUMNS, PARTIAL), have, ids))


def _column(fold: Fold, c: Column, held: Sequence[LakeColumn], ids: dict[str, int], default: Default | None) -> FoldColumn:
    kind = lake_column(fold.feed, fold.incarnation, c).type
    holders = tuple(Holder(field_id=ids[h.name], type=h.type) for h in held)
    return FoldColumn(name=c.lake_name, type=kind, holders=holders, default=default, zone=fold.feed.time_zone)


def _own(columns: Sequence[LakeColumn], have: Sequence[LakeColumn], ids: dict[str, int]) -> list[FoldColumn]:
    """Tidelake's own columns."""
    there = {h.name for h in have if h.source_id is None}
    return [
        FoldColumn(name=c.name, type=c.type, holders=(Holder(field_id=ids[c.name], type=c.type),) if c.name in there else ())
        for c in columns
    ]


def _default(fold: Fold, c: Column, until_ts: int | None) -> Default | None:
    """The value of rows from before the column; None for NULL."""
    feed, i = fold.feed, fold.incarnation
    if c.default is None:
        return None
    mask = mask_of(feed, i, c)
    text = c.default if mask is None else masked_text(c.default, mask, c.type, mask_key(feed))
    if text is None:
        return None
    shown = shown_type(feed, i, c)
    rules = CastRules(time_zone=feed.time_zone if mask is None else "UTC", names_sent=True)
    if mask is None:
        rules = CastRules(time_zone=feed.time_zone, names_sent=True, values=value_rules(feed, i, c))
    kind = cell_type(shown, rules)
    cell = text if kind.lake == "binary" else text.encode().hex()
    return Default(cell=cell, kind=kind, until_ts=until_ts)
