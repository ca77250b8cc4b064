"""Target of a fold: a table's snapshot, where it is, and its state once files of it are staged."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from tidelake.compact.merge import live_rows
from tidelake.errors import QualityError
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut import Advance, ImageCounts, Reshape, TableCounts, TableCut
from tidelake.lake.folding.fold import Fold
from tidelake.lake.names import snapshot_name, vacant
from tidelake.lake.tables import create_snapshot, reshape


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldTarget:
    """The table to write.

    Attributes:
        table: The table.
        base: The table that is folded onto; None if there is none.
        base_snapshot: Its snapshot.
        reshape: Column changes to publish with it.
        rebuilt: The table replaces base.
        buckets: Number of buckets.
    """

    table: LakeTable
    base: LakeTable | None
    base_snapshot: int | None
    reshape: Reshape | None
    rebuilt: bool
    buckets: int

    @property
    def start(self) -> int:
        """The snapshot that the branch starts at; in a redo not the newest one."""
        return self.table.main if self.rebuilt or self.base_snapshot is None else self.base_snapshot

    @property
    def reads_on(self) -> bool:
        """Whether files of the base give the same values when read with the table's present columns.

        They do not if a column was dropped and added again since, or has another name (a redo over statements).
        """
        if self.base_snapshot is None or self.base_snapshot == self.table.main:
            return True
        then, now = self.table.fields(self.base_snapshot), self.table.fields()
        return all(now[k] == f for k, f in then.items() if k in now)

    @property
    def carries_its_columns(self) -> bool:
        """Whether the snapshot that the cut would keep has the table's columns.

        It does not if a column was added or widened and no row changed.
        """
        return self.table.columns(self.base_snapshot) == self.table.columns()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogSlice:
    """A table's staged changelog.

    after: the snapshot before the changes that are folded; counts: of these changes. Both are None if some are of earlier windows.
    """

    table: LakeTable
    snapshot_id: int
    after: int | None
    counts: TableCounts | None

    @property
    def only_inserts(self) -> bool:
        """Whether no existing row changes."""
        c = self.counts
        return c is not None and c.updates == c.deletes == c.upserts == c.exchanged_out == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldWork:
    """One table of a window: what is folded into what, on which branch. previous: its snapshot at the cut that the window builds on."""

    fold: Fold
    changes: ChangelogSlice | None
    target: FoldTarget
    previous: TableCut | None
    branch: str

    @property
    def goes_on(self) -> bool:
        """Whether rows without a change stay as they are, in their files."""
        t = self.target
        return t.base is not None and not t.rebuilt and not self.fold.rewrites_all and t.reads_on


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A staged snapshot.

    Attributes:
        advance: How the branch advances.
        table: The table in the new cut.
        replaced: The table that it replaces, if any.
        written: What was rewritten, for people.
        missing: Deletes that met no row, in a table without a key.
        images: Result of comparing old values; None if none were compared.
    """

    advance: Advance
    table: TableCut
    replaced: TableCut | None
    written: str
    missing: int = 0
    images: ImageCounts | None = None


def work_of(
    catalog: LakeCatalog,
    fold: Fold,
    changes: ChangelogSlice | None,
    previous: TableCut | None,
    branch: str,
    buckets: int,
    kept: Container[str] = (),
) -> FoldWork:
    """Return the work for a table; the table is created or gets the columns of the window's end, as far as possible before publishing.

    Args:
        catalog: The lake's catalog.
        fold: What to fold.
        changes: The staged changelog, if any.
        previous: The table at the last cut, if any.
        branch: Branch to write.
        buckets: Number of buckets of a new table.
        kept: UUIDs of the tables that published cuts need.
    """
    target = _target(catalog, fold, previous, buckets, kept)
    return FoldWork(fold=fold, changes=changes, target=target, previous=previous, branch=branch)


def _target(catalog: LakeCatalog, fold: Fold, previous: TableCut | None, buckets: int, kept: Container[str]) -> FoldTarget:
    feed, i = fold.feed, fold.incarnation
    if previous is None:
        table = _new(catalog, fold, buckets, kept)
        return FoldTarget(table=table, base=None, base_snapshot=None, reshape=None, rebuilt=False, buckets=buckets)
    base, buckets = catalog.load(previous.identifier), previous.buckets
    shaped = reshape(catalog, feed, i, base)
    table, later = shaped if shaped is not None else (_new(catalog, fold, buckets, kept), None)
    return FoldTarget(table=table, base=base, base_snapshot=previous.snapshot_id, reshape=later, rebuilt=shaped is None, buckets=buckets)


def _new(catalog: LakeCatalog, fold: Fold, buckets: int, kept: Container[str]) -> LakeTable:
    identifier = vacant(catalog, fold.feed.name, snapshot_name(fold.feed, fold.incarnation), fold.incarnation, kept)
    return create_snapshot(catalog, fold.feed, fold.incarnation, identifier, buckets)


def not_unique(fold: Fold, keys: Sequence[str]) -> QualityError:
    """Return the error for duplicate keys. keys: a few of them, as text."""
    return QualityError(f"{fold.incarnation.name}: keys occur twice in the snapshot: {', '.join(keys)}", code="KEY_NOT_UNIQUE")


def folded(work: FoldWork, written: str, missing: int = 0, images: ImageCounts | None = None) -> Folded:
    """Return what the branch has now, or the snapshot that it would start at. work: with the target as it is now."""
    target, table = work.target, work.target.table
    head = table.branch(work.branch) if work.branch in table.branches else target.start
    return Folded(
        advance=Advance(
            identifier=table.identifier,
            uuid=table.uuid,
            base=target.start,
            to=head,
            branch=work.branch,
            incarnation=table.properties.get("tidelake.incarnation", ""),
            buckets=target.buckets,
            reshape=target.reshape,
        ),
        table=TableCut(
            identifier=table.identifier,
            uuid=table.uuid,
            snapshot_id=head,
            rows=live_rows(table, head),
            buckets=target.buckets,
        ),
        replaced=work.previous if target.rebuilt else None,
        written=written,
        missing=missing,
        images=images,
    )
