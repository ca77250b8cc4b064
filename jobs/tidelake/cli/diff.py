"""`tidelake diff`: what changed in tables between two TSOs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, FeedName, Json, SchemasFolder, errors, opened, print_json, say, table_or_all
from tidelake.cli.rows import SHOWN, Limit, ShownRows, print_rows, to_stdout
from tidelake.cli.tables import ChangeFormat
from tidelake.errors import ConfigError
from tidelake.io.duckdb_door import identifier
from tidelake.io.texts import plural
from tidelake.tso import parse_ts

if TYPE_CHECKING:
    from tidelake.query.diff import ChangedRows, Diff


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Tables")(diff)


def diff(
    feed: FeedName,
    ts: Annotated[list[str], typer.Option("--ts", metavar="TSO", help="TSO or time. Give it twice: first from, then to.")],
    table: Annotated[
        str, typer.Option("--table", metavar="db.t", help="The table, by its name at either TSO; `all` for every table.")
    ] = "all",
    rows: Annotated[bool, typer.Option("--rows", help="Print the rows as well as their number.")] = False,
    format_: Annotated[ChangeFormat, typer.Option("--format", help="Format of --rows.")] = ChangeFormat.table,
    limit: Limit = SHOWN,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare tables at two TSOs: how many rows were added, removed and changed.

    With --rows the rows are printed as well, each with `_change`: added, removed, before or after.
    At published cuts the command does not start Spark.
    """
    from tidelake.query.diff import differences

    if len(ts) != 2:
        raise ConfigError(f"--ts is given {plural(len(ts), 'time')}", remedy="give it twice: --ts FROM --ts TO")
    if rows and as_json:
        raise ConfigError("--json prints counts and no rows", remedy="give --rows --format jsonl")
    wanted = table_or_all(table)
    found: list[Diff] = []
    with opened(schemas, feed, quiet=True) as lake, _counting() as seen:
        shown = (lambda d, r: _show(d, r, format_, limit)) if rows else None
        for d in differences(lake, wanted, parse_ts(ts[0]), parse_ts(ts[1]), shown):
            found.append(d)
            seen(d.name)
            if not as_json:
                _say(d, quiet=rows and format_ is ChangeFormat.jsonl)
    if as_json:
        print_json([_plain(d) for d in found])


@contextmanager
def _counting() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the table that was compared last; on a terminal only."""
    if not errors.is_terminal:
        yield lambda name: None
        return
    with errors.status("comparing") as status:
        yield lambda name: status.update(Text(f"comparing, {name} is done"))


def _show(d: Diff, found: ChangedRows, format_: ChangeFormat, limit: int) -> None:
    names = [c.name for c in found.columns]
    if format_ is ChangeFormat.jsonl:
        to_stdout(found.rows, [f"{_literal(d.name)} AS _table", *map(identifier, names)])
    else:
        select = [f"'0x' || {identifier(n)}.hex" if n in found.binary else identifier(n) for n in names]
        print_rows(names, select, found.rows, ShownRows(title=d.name, limit=limit, vertical=format_ is ChangeFormat.vertical))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _say(d: Diff, *, quiet: bool) -> None:
    """Print one line for a table. quiet: on stderr, because stdout is for programs."""
    line = f"{d.name}: {_words(d)}"
    errors.print(line, soft_wrap=True) if quiet else say(line)


def _words(d: Diff) -> str:
    if d.same:
        return "unchanged"
    said = []
    if d.name_before is None:
        said.append("new")
    elif d.name_after is None:
        said.append("dropped")
    elif d.name_before != d.name_after:
        said.append(f"was {d.name_before}")
    said += [f"{n:,} {what}" for n, what in ((d.added, "added"), (d.removed, "removed"), (d.changed or 0, "changed")) if n]
    said += [f"column {c} added" for c in d.columns_added] + [f"column {c} dropped" for c in d.columns_removed]
    return ", ".join(said)


def _plain(d: Diff) -> dict[str, object]:
    counts: dict[str, object] = {"added": d.added, "removed": d.removed, "changed": d.changed}
    columns: dict[str, object] = {"columns_added": d.columns_added, "columns_removed": d.columns_removed}
    return {"name_before": d.name_before, "name_after": d.name_after, **counts, **columns}
