"""Before-image reconciliation: compare the old rows that changes carry with the rows of the lake (docs/architecture.md 8.4).

An update or delete that carries the old row, and an insert, say how their row was before: the row must be in the last cut's snapshot, or
result from the change before it. If it does not, a change was lost or repeated, or the snapshot is wrong.

The comparison needs no scan of its own: the fold reads snapshot and changes anyway (lake.columns.image_sums). Only the rows of keys that do
not match are read once more (lake.columns.image_findings).

Not compared: columns that are masked, columns that a statement of the window added or retyped, FLOAT, VECTOR and JSON (their text depends
on the printer), FLOATs that Craft damaged, keys with a change that does not carry what it replaces (upserts, rows with only their key),
the other columns of deletes that carry the key alone; tables that have no snapshot yet, that lost a partition in the window (no change
events for its rows) or that were recovered in it; feeds ordered by offsets, where a repeat looks like a change. Windows and redos compare;
asof, versions, rollback, seed and maintenance do not.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidelake.config.policy import SAMPLE
from tidelake.io.texts import plural
from tidelake.lake.catalog import LakeColumn
from tidelake.lake.columns.fold_rules import ComparedImages
from tidelake.lake.cut import ImageCounts, TableCounts
from tidelake.lake.folding.fold import Fold
from tidelake.lake.tables import lake_column, mask_of

_PRINTED = frozenset({"float", "json", "vector"})


def images_of(fold: Fold, base: Sequence[LakeColumn] | None, counts: TableCounts | None) -> ComparedImages | None:
    """Return the images to compare of a table with a key, None if nothing can be compared.

    Args:
        fold: The fold.
        base: Columns of the snapshot that is folded onto; None if there is none.
        counts: Counts of all changes; None if unknown.
    """
    if base is None or counts is None or counts.partial or counts.undated or not _tells(fold):
        return None
    share = 1 if fold.feed.policy.before_images == "all" else SAMPLE
    return ComparedImages(columns=_comparable(fold, base, counts.untrusted), share=share, key_only_deletes=counts.key_only_deletes)


def compared_bucket(fold: Fold, buckets: int) -> int:
    """Return the bucket whose keys are compared if only one is, a different one for every window."""
    at = fold.until_ts
    return (at ^ at >> 18) % buckets


def images_without_key(fold: Fold, counts: TableCounts | None, missing: int) -> ImageCounts | None:
    """Return the counts of a table without key, in which every delete and update is looked up by all its cells. None where rows also left
    otherwise.
    """
    if counts is None or not _tells(fold) or fold.emptied_ts >= max(fold.applied_ts, 0):
        return None
    return ImageCounts(compared=counts.deletes + counts.updates, missing=missing)


def _tells(fold: Fold) -> bool:
    """Whether a missing old value indicates a loss."""
    return fold.feed.policy.before_images != "off" and not fold.feed.by_offsets and not fold.removals


def _comparable(fold: Fold, base: Sequence[LakeColumn], untrusted: Sequence[str]) -> tuple[str, ...]:
    """Return the columns with the same type in the snapshot, throughout the window and now."""
    i, have = fold.incarnation, {c.source_id: c.type for c in base}
    types = [{c.id: c.type for c in s.columns} for s in i.segments if s.until_ts is None or s.until_ts >= fold.applied_ts]
    return tuple(
        c.lake_name
        for c in fold.columns
        if all(known.get(c.id) == c.type for known in types)
        and have.get(c.id) == lake_column(fold.feed, i, c).type
        and c.since_ts < fold.applied_ts
        and c.type.word not in _PRINTED
        and c.name not in untrusted
        and mask_of(fold.feed, i, c) is None
    )


def described(c: ImageCounts) -> str:
    """Describe the counts of a table's old values, as a message."""
    columns = ", ".join(f"{name} {n:,}" for name, n in sorted(c.columns.items()))
    found = (
        (c.differs, f"{plural(c.differs, 'change')} whose before image differs from the row in the lake ({columns})"),
        (c.missing, f"{plural(c.missing, 'change')} of a row that does not exist in the lake"),
        (c.duplicate_inserts, f"{plural(c.duplicate_inserts, 'insert')} of a row that already exists"),
    )
    return f"{plural(c.compared, 'row')} compared" + "".join(f"; {text}" for n, text in found if n)
