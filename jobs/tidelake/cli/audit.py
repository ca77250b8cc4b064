"""`tidelake audit`: check a lake by its certificates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, FeedName, Json, SchemasFolder, out, print_json, say, working
from tidelake.config.feed import load_feed
from tidelake.errors import ConfigError
from tidelake.io.texts import plural

if TYPE_CHECKING:
    from tidelake.audit.audit import Audited

SHOWN = 20
WRONG = 3
_NO_LAKE = "leave out --lake, and give the folder of the feeds with --schemas"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Feeds")(audit)


def audit(
    feed: FeedName,
    start: Annotated[int, typer.Option("--from", metavar="CUT", min=1, help="Number of the first cut to audit.")] = 1,
    public_key: Annotated[
        list[Path] | None,
        typer.Option("--public-key", metavar="FILE", help="Public Ed25519 key (PEM) whose signatures count. Repeat for several keys."),
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also decode the landed messages again, and fold a sample of buckets in plain Python.")
    ] = False,
    lake: Annotated[
        str | None, typer.Option("--lake", metavar="URI", help="The lake, without the feed's folder and its variables. Not with --deep.")
    ] = None,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Check a feed's cuts by their certificates, from the lake's files alone: without the catalog and without Spark.

    The certificates are one chain, windows adjoin, and counts add up.
    Manifests, landed objects, and the files of all tables of retained cuts have the sums that the certificates say.
    Offsets are contiguous, and Iceberg's snapshots have the files that are listed.
    The command only reads.
    With --deep, the landed messages are decoded again and counted, and a sample of buckets is folded by the specification.
    With --lake nothing else is needed: neither the feed's folder nor its variables.
    With --public-key every certificate must be signed by one of the keys, from the first signed one on.
    Exit code 0: all is as certified; 3: something is not, and the first such place is named.
    """
    from tidelake.audit.audit import audit as run
    from tidelake.io.signing import public_keys

    if lake and deep:
        raise ConfigError("--lake and --deep exclude each other: only the feed's files say how its messages are decoded", remedy=_NO_LAKE)
    known = None if lake else load_feed(schemas, feed)
    where = known.lake.uri if known else lake or ""
    with working("audit") as bar:
        found = run(feed, where, start, public_keys(public_key or ()), deep=known if deep else None, progress=bar)
    if as_json:
        print_json(found.model_dump())
    else:
        _report(found)
    if found.wrong:
        raise typer.Exit(WRONG)


def _report(found: Audited) -> None:
    cuts = f"cut {found.last}" if found.first == found.last else f"cuts {found.first} to {found.last}"
    said = f"{plural(len(found.wrong), 'thing')} not as certified" if found.wrong else "as certified"
    say(f"{found.feed}, {cuts}: {said}")
    for wrong in found.wrong[:SHOWN]:
        say(f"  cut {wrong.cut}: {wrong.key}: {wrong.what}")
    if len(found.wrong) > SHOWN:
        say(f"  and {len(found.wrong) - SHOWN:,} more; --json has all")
    grid = Table("compared", "number", box=None, padding=(0, 2))
    for what, many in found.checked.items():
        grid.add_row(what, f"{many:,}")
    out.print(grid)
    for one in found.unchecked:
        say(f"  not compared: {one.what}{f' ({one.many:,})' if one.many > 1 else ''}: {one.why}")
