"""`tidelake late`: rows that arrived after the cut that should hold them."""

from __future__ import annotations

from typing import Any

import typer
from rich.table import Table

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, FeedName, Json, SchemasFolder, opened, out, print_json
from tidelake.config.table_name import written
from tidelake.errors import Coordinates
from tidelake.tso import show as tso

SHOWN = 50
_WORDS = {"late": "truly late: no such change is published", "conflict": "conflict: another change of the row is published"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Feeds")(late)


def late(feed: FeedName, schemas: SchemasFolder = DEFAULT_SCHEMAS, as_json: Json = False, debug: Debug = False) -> None:
    """Show the late ledger: rows that arrived after the cut that covers their commit ts, and that are not in the tables.

    Exact replays are not listed because the tables already have them; certificates count them.
    """
    from tidelake.lake.cuts import lineage
    from tidelake.order.late.ledger import late_rows

    with opened(schemas, feed, quiet=True) as lake:
        cuts = lineage(lake.catalog, lake.feed.name)
        newest = max(cuts, default=0)
        rows = [_plain(r, newest) for r in late_rows(lake.catalog, lake.feed.name) if r["seq"] in cuts or r["seq"] > newest]
    if as_json:
        print_json(rows)
        return
    if not rows:
        out.print("no late rows")
        return
    grid = Table("found at", "message", "hour", "table", "change", "commit ts", "verdict", box=None, padding=(0, 2))
    for r in rows[:SHOWN]:
        at = f"cut {r['cut']}" if r["published"] else "the next window"
        grid.add_row(at, r["message"], r["hour"], r["table"], r["op"], tso(r["commit_ts"]), _WORDS[r["verdict"]])
    out.print(grid)
    if len(rows) > SHOWN:
        out.print(f"  and {len(rows) - SHOWN} more: --json prints all")


def _plain(row: dict[str, Any], newest: int) -> dict[str, Any]:
    return {
        "cut": row["seq"],
        "published": row["seq"] <= newest,
        "verdict": row["verdict"],
        "message": str(Coordinates(row["topic"], row["partition"], row["offset"])),
        "ordinal": row["ordinal"],
        "hour": row["hour"],
        "table": written(row["database"], row["table"]),
        "op": row["op"],
        "commit_ts": row["commit_ts"],
    }
