"""What a window is folded into: a table's snapshot, where it stands, and what becomes of it once files of it are staged."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

from tidelake.compact.merge import live_rows
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.cut import Advance, ImageCounts, Reshape, TableCounts, TableCut
from tidelake.lake.fold import Fold
from tidelake.lake.names import snapshot_name, vacant
from tidelake.lake.tables import bucket_column, create_snapshot, key_columns, reshape

AT_HAND = 100_000  # rows that one task folds, and whose keys are looked at here: Spark plans longer than that takes


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldTarget:
    """The table that is written. base: the one folded onto, None = nothing to fold onto; rebuilt: it takes the place of base."""

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
        """Whether files of the base read with the table's present columns give the same values: not where a column left since and came
        again as another, or bears another name (a redo over statements)."""
        if self.base_snapshot is None or self.base_snapshot == self.table.main:
            return True
        then, now = self.table.fields(self.base_snapshot), self.table.fields()
        return all(now[k] == f for k, f in then.items() if k in now)

    @property
    def carries_its_columns(self) -> bool:
        """Whether the snapshot that the cut would keep has the table's columns: not where one came, or became wider, and no row did."""
        return self.table.columns(self.base_snapshot) == self.table.columns()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogSlice:
    """A table's staged changelog. counts: of the changes that are folded, None where some are of earlier windows."""

    table: LakeTable
    snapshot_id: int
    counts: TableCounts | None

    @property
    def only_inserts(self) -> bool:
        """Nothing that was there is touched."""
        c = self.counts
        return c is not None and c.updates == c.deletes == c.upserts == c.exchanged_out == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldWork:
    """One table of a window: what is folded, into what, on which branch. previous: its snapshot at the cut that it goes on from."""

    fold: Fold
    changes: ChangelogSlice | None
    target: FoldTarget
    previous: TableCut | None
    branch: str

    @property
    def goes_on(self) -> bool:
        """Whether rows that no change tells of stay as they are, and where they are."""
        t = self.target
        return t.base is not None and not t.rebuilt and not self.fold.rewrites_all and t.reads_on


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A staged snapshot. written: for people, what was rewritten; missing: deletes of a table without key that met no row; images: None
    where no old values were compared."""

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
    """A table that is there and has the columns of the window's end, as far as may be before publishing. buckets: of a new table; kept:
    uuids of the tables that published cuts need."""
    target = _target(catalog, fold, previous, buckets, kept)
    return FoldWork(fold=replace(fold, few=_few(target, changes)), changes=changes, target=target, previous=previous, branch=branch)


def _few(target: FoldTarget, changes: ChangelogSlice | None) -> bool:
    """Whether all that is folded is little."""
    if changes is None or changes.counts is None:
        return False
    held = live_rows(target.base, target.base_snapshot) if target.base and target.base_snapshot else 0
    return held + changes.counts.changes <= AT_HAND


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


def catalog_view(catalog: LakeCatalog, target: FoldTarget) -> FoldTarget:
    """The target as it stands after a write to the branch."""
    return replace(target, table=catalog.load(target.table.identifier))


def bucket_of(target: FoldTarget, fold: Fold) -> tuple[str, str] | None:
    """The bucketed column's final name and its name in the table now."""
    name = bucket_column(key_columns(fold.feed, fold.incarnation, fold.columns))
    if name is None:
        return None
    number = next(c.id for c in fold.columns if c.lake_name == name)
    return name, next(c.name for c in target.table.columns() if c.source_id == number)


def key_names(fold: Fold, target: FoldTarget) -> dict[str, str]:
    """Of the key's columns in a fold → in the table now."""
    physical = {c.source_id: c.name for c in target.table.columns()}
    return {name: physical[k] for name, k in zip(fold.key, fold.incarnation.key, strict=True)}


def folded(work: FoldWork, written: str, missing: int = 0, images: ImageCounts | None = None) -> Folded:
    """What is on the branch now, or at the snapshot that it would begin at. work: its target as it stands now."""
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
