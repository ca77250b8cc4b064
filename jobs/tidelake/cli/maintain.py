"""`tidelake maintain`: maintenance of a feed's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, FeedName, Json, SchemasFolder, opened, out, print_json, say
from tidelake.io.texts import plural
from tidelake.tso import show

if TYPE_CHECKING:
    from tidelake.maintenance.maintain import Maintained
    from tidelake.maintenance.maintenance_plan import MaintenancePlan, TablePlan


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Stages")(maintain)


def maintain(
    feed: FeedName,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be rewritten, expired and removed, and change nothing.")
    ] = False,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Rewrite small files and delete files, expire snapshots and old changes, drop tables that no cut needs, remove orphan files.

    The section `maintenance` of feed.toml sets which cuts are retained.
    Every cut is retained for keep_cuts, then the last cut of each day for keep_daily.
    Every retained cut reads as before.
    Changes and dropped tables are kept for keep_changelog, by default forever.
    You can run the command again at any time, also after it was killed.
    """
    from tidelake.maintenance.maintain import maintain as work

    with opened(schemas, feed, quiet=as_json) as lake:
        done = work(lake, dry_run=dry_run)
    if as_json:
        print_json(done.model_dump())
        return
    if done.plan is None:
        out.print(f"{feed}: nothing is published yet")
        return
    _say_plan(done.plan)
    if not dry_run:
        _say_done(done)


def _say_plan(plan: MaintenancePlan) -> None:
    why = [f"{sum(w == kind for w in plan.cuts.values())} {kind}" for kind in ("every", "daily", "newest")]
    say(f"{plan.feed}: {plural(len(plan.cuts), 'cut')} kept ({', '.join(why)}), {len(plan.lets_go)} no longer kept")
    if plan.changelog_retained_after:
        say(f"  changes are kept after {show(plan.changelog_retained_after)}")
    if plan.dropped:
        say(f"  {plural(plan.dropped, 'dropped table')} in the cut, {len(plan.leaving):,} no longer kept")
    if plan.staged is not None:
        say(f"  hour {plan.staged} is staged and not published: files are rewritten by the next maintenance")
    for p in plan.tables:
        say(f"  {p.table}: {_table(p)}")
    if plan.folders:
        say(f"  {plural(len(plan.folders), 'folder')} of deleted tables: {plan.folder_bytes:,} bytes")


def _table(p: TablePlan) -> str:
    if p.gone:
        return f"no cut needs it: dropped, with {plural(p.snapshots, 'snapshot')}"
    parts = [f"{plural(p.snapshots, 'snapshot')}, {len(p.expires)} to expire"]
    if p.files:
        does = ": rewritten" if p.rewrites else ""
        parts.insert(0, f"{plural(p.files, 'file')}, {p.bytes:,} bytes, {p.small_files} small, {p.delete_files} delete files{does}")
    if p.old is not None:
        span = p.old.first if p.old.first == p.old.last else f"{p.old.first} to {p.old.last}"
        where = f", copied to {p.archive}" if p.archive else ""
        parts.append(
            f"changes of {span} to remove: {plural(p.old.rows, 'row')} in {plural(p.old.files, 'file')}, {p.old.bytes:,} bytes{where}"
        )
    if p.kept:
        parts.append("kept by cuts " + _numbers(sorted({seq for seqs in p.kept.values() for seq in seqs})))
    if p.orphans is not None:
        parts.append(f"{plural(p.orphans, 'orphan')}, {p.orphan_bytes:,} bytes")
    return "; ".join(parts)


def _numbers(numbers: list[int]) -> str:
    """Format sorted numbers with runs joined: 1–3, 7."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs)


def _say_done(done: Maintained) -> None:
    changes = f"removed {plural(done.removed_changes, 'change')}; " if done.removed_changes else ""
    rewrote = f"rewrote {plural(len(done.rewritten), 'table')}; " if done.rewritten else ""
    published = f"published cut {done.cut}; " if done.cut else ""
    say(
        f"{changes}{rewrote}{published}expired {plural(done.expired_snapshots, 'snapshot')} with {plural(done.deleted_files, 'file')}, "
        f"dropped {plural(len(done.dropped_tables), 'table')}, "
        f"removed {plural(done.removed_orphans, 'orphan')} of {done.removed_bytes:,} bytes"
    )
