"""`tidelake ddl`: a feed's DDL statements and their effects."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, FeedName, Json, SchemasFolder, opened, out, print_json
from tidelake.config.table_name import same
from tidelake.tso import show as tso

SHOWN = 50
_WIDTH = 100  # characters of a statement that are shown; --json prints the whole statement


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Feeds")(ddl)


def ddl(
    feed: FeedName,
    table: Annotated[
        str | None, typer.Option("--table", metavar="DB.T", help="Show only statements of this table, by its current name.")
    ] = None,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show the DDL ledger: every published statement, its effect, and the table's snapshots before and after it.

    The ledger also has schema changes that only rows showed, without a statement.
    Statements of cuts that a rollback or a redo undid are not shown.
    `docs/ddl.md` describes what each kind of statement does.
    Does not start Spark.
    """
    from tidelake.lake.cuts import statements

    wanted = None if table is None else same(table)
    with opened(schemas, feed, quiet=True) as lake:
        rows = statements(lake.catalog, lake.feed.name)
    if wanted is not None:
        rows = [r for r in rows if (r["table"] or "").lower() == wanted.lower()]
    if as_json:
        print_json(rows)
        return
    if not rows:
        out.print("no statement is published")
        return
    grid = Table("cut", "commit ts", "effect", "table", "snapshot before", "after", "statement", box=None, padding=(0, 2))
    for r in rows[-SHOWN:]:
        grid.add_row(*_cells(r))
    out.print(grid)
    if len(rows) > SHOWN:
        out.print(f"  and {len(rows) - SHOWN} before: --json prints all")


def _cells(r: dict[str, Any]) -> list[str]:
    effect = f"{r['effect']}: {r['why']}" if r["why"] else r["effect"]
    statement = " ".join((r["statement"] or "").split())
    ids = (str(r[k]) if r[k] is not None else "-" for k in ("snapshot_before", "snapshot_after"))
    return [str(r["seq"]), tso(r["commit_ts"]), effect, r["table"] or "-", *ids, statement[:_WIDTH]]
