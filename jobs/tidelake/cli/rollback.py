"""rollback and redo: back to a published cut, and published hours anew."""

from __future__ import annotations

from typing import Annotated

import typer

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, DryRun, FeedName, Json, SchemasFolder, opened, print_json, say
from tidelake.tso import parse_hour, show

To = Annotated[
    str,
    typer.Option("--to", metavar="TSO|TIME|CUT", help="A published cut: its TSO, its time like 2026-01-05T10:59:59.999Z, or 'cut 7'."),
]
First = Annotated[str, typer.Option("--from", metavar="H", help="The first hour to decode again, like 2026-01-05T10.")]
Last = Annotated[str | None, typer.Option("--to", metavar="H", help="The last hour to decode again; default: the first.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (rollback, redo):
        app.command(rich_help_panel="Stages")(command)


def rollback(
    feed: FeedName,
    to: To,
    dry_run: DryRun = False,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """All tables back to a published cut, as one new cut. Starts no Spark, writes no row, deletes nothing.

    The hours after that cut can be run again then; a cut that was undone can be rolled back to like any other. If --to names no cut, the
    nearest are told. Whoever reads by snapshot id reads on undisturbed.
    """
    from tidelake.publish.rollback import lines
    from tidelake.publish.rollback import rollback as set_back

    with opened(schemas, feed, quiet=as_json) as lake:
        plan = set_back(lake, to, dry_run=dry_run)
    if as_json:
        print_json(plan.model_dump())
        return
    for line in lines(plan):
        say(line)


def redo(
    feed: FeedName,
    from_: First,
    to: Last = None,
    dry_run: DryRun = False,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Decode published hours again and build the lake anew from there to where it stands; then switch to it, as one cut.

    Until then readers have what is published. The certificate says which rows of which tables are different. A redo that was ended
    by force is started again by the same command, or finished by whatever runs next if it was publishing.
    """
    from tidelake.maintenance.redo import plan_redo
    from tidelake.maintenance.redo import redo as build_anew

    first, last = parse_hour(from_), parse_hour(to or from_)
    with opened(schemas, feed, quiet=as_json) as lake:
        if dry_run:
            plan = plan_redo(lake, first, last)
            found, told = plan.model_dump(), plan.lines()
        else:
            done = build_anew(lake, first, last)
            found = done.model_dump()
            told = [
                f"published cut {done.plan.seq}, {show(done.resolved_ts)}, in place of {done.plan.replaced}",
                *_differences(done.tables),
            ]
    if as_json:
        print_json(found)
        return
    for line in told:
        say(line)


def _differences(tables: dict[str, dict[str, int]]) -> list[str]:
    if not tables:
        return ["  every table holds the same rows as before"]
    said = {"table": "one of the two cuts has it", "added": "added", "removed": "removed", "changed": "changed"}
    return [
        f"  {name}: {', '.join(said[k] if k == 'table' else f'{n:,} rows {said[k]}' for k, n in d.items())}" for name, d in tables.items()
    ]
