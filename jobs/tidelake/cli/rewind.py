"""rewind: all tables of a feed back to a published cut."""

from __future__ import annotations

from typing import Annotated

import typer

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, FeedName, Json, Schemas, opened, print_json, say

To = Annotated[str, typer.Option("--to", metavar="TSO|TIME", help="A published cut: its TSO, or its time like 2026-01-05T10:59:59.999Z.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be set back, table by table; touch nothing.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Stages")(rewind)


def rewind(
    feed: FeedName,
    to: To,
    dry_run: DryRun = False,
    schemas: Schemas = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """All tables back to a published cut, as one new cut. Starts no Spark, writes no row, deletes nothing.

    The hours after that cut can be run again then; a cut that was undone can be rewound to like any other. If --to names no cut, the
    nearest are told. Whoever reads by snapshot id reads on undisturbed.
    """
    from tidelake.lake.rewind import lines
    from tidelake.lake.rewind import rewind as set_back

    with opened(schemas, feed, quiet=as_json) as lake:
        plan = set_back(lake, to, dry_run=dry_run)
    if as_json:
        print_json(plan.model_dump())
        return
    for line in lines(plan):
        say(line)
