"""`tidelake abandon` and `unlock`: abandon a publication or free a lease."""

from __future__ import annotations

import typer

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, DryRun, FeedName, Json, SchemasFolder, opened, print_json, say
from tidelake.config.feed import load_feed


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (abandon, unlock):
        app.command(rich_help_panel="Stages")(command)


def abandon(
    feed: FeedName, dry_run: DryRun = False, schemas: SchemasFolder = DEFAULT_SCHEMAS, as_json: Json = False, debug: Debug = False
) -> None:
    """Give up a publication that was begun and cannot be finished. Does not start Spark.

    Tables that were already switched go back to the snapshots, columns and names of the previous cut.
    Staged branches are dropped.
    No row of a published cut is deleted.
    The number of the cut is not used again.
    Landed and decoded hours stay: run the hour again to stage it again.
    If the command is killed, run it again.
    """
    from tidelake.publish.abandon import abandon as give_up

    with opened(schemas, feed, quiet=as_json) as lake:
        found = give_up(lake, dry_run=dry_run)
    if as_json:
        print_json(found.model_dump() if found else None)
        return
    for line in found.lines(dry_run=dry_run) if found else [f"{feed}: no cut is half published; nothing to abandon"]:
        say(line)


def unlock(
    feed: FeedName, dry_run: DryRun = False, schemas: SchemasFolder = DEFAULT_SCHEMAS, as_json: Json = False, debug: Debug = False
) -> None:
    """Free a feed's lease that does not expire by itself: its holder's clock is wrong, or its document is damaged.

    A lease is valid for a minute and its holder renews it.
    The command does not free a lease that is still valid.
    Make sure that no run works on the feed: such a run fails at its next step.
    """
    from tidelake.io.lease import unlock as free
    from tidelake.io.storage import open_store
    from tidelake.lake.identity import refuse_missing

    store = open_store(load_feed(schemas, feed).lake.uri)
    refuse_missing(store)
    outcome = free(store, feed, dry_run=dry_run)
    if as_json:
        print_json({"lease": outcome})
        return
    say(f"{feed}: {outcome}")
