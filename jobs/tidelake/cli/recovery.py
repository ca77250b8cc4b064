"""abandon and unlock: ways out of a publishing or a lease that cannot go on."""

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
    """Give up a publishing that was begun and cannot be finished. Starts no Spark, deletes no row of a published cut.

    Tables that it had moved go back to the snapshots, columns and names of the cut before; staged branches are dropped. Its number is not
    used again. What is landed and decoded stays: run the hour again to stage it anew. If it is killed, run it again.
    """
    from tidelake.publish.abandon import abandon as give_up

    with opened(schemas, feed, quiet=as_json) as lake:
        found = give_up(lake, dry_run=dry_run)
    if as_json:
        print_json(found.model_dump() if found else None)
        return
    for line in found.lines(dry_run=dry_run) if found else [f"{feed}: no publishing is unfinished; nothing to give up"]:
        say(line)


def unlock(
    feed: FeedName, dry_run: DryRun = False, schemas: SchemasFolder = DEFAULT_SCHEMAS, as_json: Json = False, debug: Debug = False
) -> None:
    """Free a feed's lease that would not expire by itself: its holder's clock is wrong, or its document is damaged.

    A lease is good for a minute and renewed by its holder; one that is within that is left alone. Make sure that no run works on the feed:
    one that does ends with an error at its next step.
    """
    from tidelake.io.lease import unlock as free
    from tidelake.io.storage import open_store
    from tidelake.lake.identity import refuse_missing

    store = open_store(load_feed(schemas, feed).lake.uri)
    refuse_missing(store)
    told = free(store, feed, dry_run=dry_run)
    if as_json:
        print_json({"lease": told})
        return
    say(f"{feed}: {told}")
