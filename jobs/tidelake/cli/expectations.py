"""`tidelake expectations suggest | export`: expectations from what tables hold, and expectations as Great Expectations knows them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, FeedName, Json, SchemasFolder, errors, opened, print_json, say, working
from tidelake.config.feed import load_feed
from tidelake.config.table_name import same
from tidelake.errors import ConfigError
from tidelake.io.texts import plural
from tidelake.tso import parse_hour

if TYPE_CHECKING:
    from tidelake.validate.suggest.suggest import SuggestedFile

_HOURS = 48


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(
        no_args_is_help=True,
        help="Suggest expectations for the tables of a feed, or export them to Great Expectations.",
        rich_markup_mode="rich",
    )
    group.command()(suggest)
    group.command()(export)
    app.add_typer(group, name="expectations", rich_help_panel="Feeds")


def suggest(
    feed: FeedName,
    table: Annotated[str | None, typer.Option("--table", metavar="DB.T", help="Only this table. Default: all tables.")] = None,
    hours: Annotated[int, typer.Option("--hours", metavar="N", min=1, help="Number of hours whose changes are read.")] = _HOURS,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="A folder, which gets a file for each table, or the file of one table."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write expectations that the published rows of a table and its changes of the last hours meet, for a person to edit.

    The rules go to stdout, or with --output into files for `expectations/`.
    Nothing is suggested about the values of masked columns.
    Does not start Spark.
    """
    from tidelake.validate.suggest.suggest import suggest as suggestions
    from tidelake.validate.suggest.suggest import tables_of

    wanted = None if table is None else same(table)
    with opened(schemas, feed, quiet=True) as lake:
        cut, tables = tables_of(lake, wanted)
        found = list["SuggestedFile"]()
        for n, i in enumerate(tables, 1):
            with working(f"{i.name} ({n} of {len(tables)})") as bar:
                found.append(suggestions(lake, cut, i, hours, bar))
    if output is not None:
        _write(output, found, force=force)
    if as_json:
        print_json({f.table: [{"type": r.type, "seen": r.seen, **r.arguments} for r in f.rules] for f in found})
    elif output is None:
        sys.stdout.write("\n".join(f.text for f in found))


def export(
    feed: FeedName,
    gx: Annotated[Path, typer.Option("--gx", metavar="DIR", help="Folder of the project of Great Expectations, new or existing.")],
    hour: Annotated[
        str | None, typer.Option("--hour", metavar="H", help="Hour of the results (UTC). Default: the newest published hour.")
    ] = None,
    docs: Annotated[bool, typer.Option("--docs/--no-docs", help="Build Data Docs.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Overwrite suites that Tidelake did not write.")] = False,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write the feed's expectations and the results of an hour as a project of Great Expectations.

    The project has a suite for each table, and its result as `validate` stored it; nothing is validated again.
    Rules that every table gets are no expectations of Great Expectations and are left out.
    Before the first cut the project has suites only.
    Does not start Spark.
    """
    from tidelake.history.contract import read_expectations
    from tidelake.lake.cuts import newest_cut
    from tidelake.validate.quality.gx_project import export as exported
    from tidelake.validate.report import hour_facts

    if hour is not None:
        parse_hour(hour)
    rules = read_expectations(load_feed(schemas, feed).folder)
    if not rules:
        raise ConfigError(
            f"feed {feed} has no expectations to export", remedy=f"`tidelake expectations suggest --feed {feed}` suggests some"
        )
    with opened(schemas, feed, quiet=True) as lake:
        cut = newest_cut(lake.catalog, lake.store, feed)
        wanted = hour or (cut.hour if cut else None)
        facts = hour_facts(lake, wanted) if wanted else None
    if facts is not None and not facts.checks:
        said = f"hour {wanted} of feed {feed} is not validated, so it has no results"
        raise ConfigError(said, remedy=f"`tidelake status --feed {feed}` shows the hours; without --hour the newest published one is taken")
    done = exported(gx, feed, rules, facts, docs=docs, force=force)
    if as_json:
        changed = [{"table": c.table, "rule": c.rule, "origin": c.origin} for c in done.changed]
        print_json({"suites": done.suites, "hour": wanted, "results": done.results, "changed": changed, "docs": done.docs})
        return
    say(f"{plural(len(done.suites), 'suite')} in {gx}, {plural(done.results, 'result')}" + (f" of hour {wanted}" if wanted else ""))
    for c in done.changed:
        say(f"left out: the result of {c.table}: {c.rule}, whose rule has changed since ({c.origin})")
    if done.docs:
        say(done.docs)


def _write(output: Path, found: Sequence[SuggestedFile], *, force: bool) -> None:
    """Write all files, or none if one exists. Raises ConfigError."""
    into_folder = output.is_dir() or output.suffix != ".toml"
    if not into_folder and len(found) != 1:
        said = f"--output {output}: {plural(len(found), 'table')} do not fit into one file"
        raise ConfigError(said, remedy="name one with --table, or give a folder, such as expectations/")
    files = {(output / f"{f.stem}.toml" if into_folder else output): f for f in found}
    there = [str(path) for path in files if path.exists()]
    if there and not force:
        more = f" (and {len(there) - 1} more)" if len(there) > 1 else ""
        raise ConfigError(
            f"--output: {there[0]}{more} already exists, nothing is written", remedy="remove it, or add --force to overwrite it"
        )
    for path, f in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f.text, encoding="utf-8")
        errors.print(f"{path}: {plural(len(f.rules), 'expectation')}", soft_wrap=True)
