"""A table's changelog while a window is staged: opened before, its advance and counts afterwards."""

from __future__ import annotations

from collections.abc import Container, Mapping

from tidelake.history.event import CHECKSUMS
from tidelake.history.projection import lived
from tidelake.lake.catalog import LakeCatalog, LakeTable
from tidelake.lake.columns.cells import LOSSES
from tidelake.lake.cut import Advance, TableCounts, TableCut
from tidelake.lake.names import changelog_name, taking, vacant
from tidelake.lake.tables import create_changelog, grow_changelog
from tidelake.order.table_rows import TableRows

_OF_OPERATIONS = ("inserts", "updates", "deletes", "upserts", "key_changes", "updates_without_before_image", "partial")


def open_changelog(catalog: LakeCatalog, table: TableRows, previous: TableCut | None, kept: Container[str]) -> tuple[LakeTable, int]:
    """Return (a changelog with all columns of the window, the snapshot that a branch begins at).

    Args:
        catalog: The lake's catalog.
        table: The table.
        previous: The changelog at the last cut, if any.
        kept: UUIDs of the tables that published cuts need.
    """
    i, columns = table.incarnation, lived(table.incarnation)
    if previous is not None:
        return grow_changelog(catalog, table.feed, i, catalog.load(previous.identifier), columns), previous.snapshot_id
    wanted = changelog_name(table.feed, i)
    with taking(wanted):
        identifier = vacant(catalog, table.feed.name, wanted, i, kept)
        created = create_changelog(catalog, table.feed, i, identifier, columns, table.buckets)
    return created, created.main


def advanced(
    catalog: LakeCatalog, table: TableRows, staged: LakeTable, branch: str, base: int, previous: TableCut | None
) -> tuple[Advance | None, int]:
    """Return (how far the branch advances, or None; number of rows that it adds). Without new rows, remove what was created for them.

    staged: the changelog as it is now.
    """
    head = staged.branch(branch) if branch in staged.branches else base
    written = _rows(staged, head) - _rows(staged, base)
    if not written:
        if previous is None:  # no cut refers to it, and another incarnation of the window may need its name
            catalog.drop(staged.identifier, table.feed.name)
        elif branch in staged.branches:
            catalog.drop_branches(staged, [branch])
        return None, 0
    advance = Advance(
        identifier=staged.identifier,
        uuid=staged.uuid,
        base=base,
        to=head,
        branch=branch,
        incarnation=table.incarnation.id,
        buckets=table.buckets,
    )
    return advance, written


def _rows(changelog: LakeTable, snapshot_id: int) -> int:
    return int(changelog.summary(snapshot_id).get("total-records", 0))


def counts_of(table: TableRows, seen: Mapping[str, int], counted: Mapping[str, int]) -> TableCounts:
    """Return a table's counts.

    Args:
        table: The table.
        seen: Row events by checksum word, `unsettled` and `undated`; '' counts all.
        counted: Events by outcome, and losses as `<one of LOSSES>_<column id>`, without repeats.
    """
    found: dict[str, dict[str, int]] = {kind: {} for kind in LOSSES}
    for p in table.projections:
        for kind in LOSSES:
            if n := counted.get(f"{kind}_{p.column.id}", 0):
                found[kind][p.column.name] = n
    events = seen.get("", 0)
    plain = {k: counted.get(k, 0) for k in _OF_OPERATIONS} | {k: seen.get(k, 0) for k in ("unsettled", "undated")}
    plain |= {"events": events, "duplicates": events - counted.get("distinct", 0)}
    checksums = {word: n for word in CHECKSUMS if (n := seen.get(word, 0))}
    return TableCounts.model_validate(
        plain | found | {"checksums": checksums, "untrusted": table.untrusted, "key_only_deletes": table.key_only_deletes}
    )
