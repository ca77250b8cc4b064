"""`tidelake rollback` and `redo`: go back to a published cut, or decode published hours again."""

from __future__ import annotations

from typing import Annotated

import typer

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, DryRun, FeedName, Json, SchemasFolder, opened, print_json, say
from tidelake.io.texts import plural
from tidelake.tso import parse_hour, show

To = Annotated[
    str,
    typer.Option("--to", metavar="TSO|TIME|CUT", help="A published cut: TSO, time such as 2026-01-05T10:59:59.999Z, or 'cut 7'."),
]
First = Annotated[str, typer.Option("--from", metavar="H", help="First hour to decode again (UTC), for example 2026-01-05T10.")]
Last = Annotated[str | None, typer.Option("--to", metavar="H", help="Last hour to decode again. Default: the first.")]


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
    """Set all tables back to a published cut, as one new cut. Does not start Spark, write rows or delete anything.

    The hours after that cut can then be run again.
    You can also roll back to a cut that an earlier rollback undid.
    If --to names no cut, the error lists the nearest ones.
    Readers that use snapshot ids are not affected.
    """
    from tidelake.publish.rollback import lines
    from tidelake.publish.rollback import rollback as set_back
    from tidelake.validate.report import write_changed_reports

    with opened(schemas, feed, quiet=as_json) as lake:
        plan = set_back(lake, to, dry_run=dry_run)
        if not dry_run:
            write_changed_reports(lake)
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
    """Decode published hours again, rebuild the lake from there up to its newest cut, and switch to the result as one cut.

    Until the switch readers see the published tables.
    The certificate counts the rows of each table that differ.
    If a redo is killed, run the same command again; if it was already publishing, the next command finishes it.
    """
    from tidelake.maintenance.redo import plan_redo
    from tidelake.maintenance.redo import redo as build_anew

    first, last = parse_hour(from_), parse_hour(to or from_)
    with opened(schemas, feed, quiet=as_json) as lake:
        if dry_run:
            plan = plan_redo(lake, first, last)
            found, lines = plan.model_dump(), plan.lines()
        else:
            done = build_anew(lake, first, last)
            found = done.model_dump()
            lines = [
                f"published cut {done.plan.seq}, {show(done.resolved_ts)}, in place of {done.plan.replaced}",
                *_differences(done.tables),
            ]
    if as_json:
        print_json(found)
        return
    for line in lines:
        say(line)


def _differences(tables: dict[str, dict[str, int]]) -> list[str]:
    if not tables:
        return ["  every table holds the same rows as before"]
    said = {"table": "exists in only one of the two cuts", "added": "added", "removed": "removed", "changed": "changed"}
    counted = {name: [said[k] if k == "table" else f"{plural(n, 'row')} {said[k]}" for k, n in d.items()] for name, d in tables.items()}
    return [f"  {name}: {', '.join(counts)}" for name, counts in counted.items()]
