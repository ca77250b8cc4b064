"""`tidelake doctor`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, Json, SchemasFolder, out, print_json, say
from tidelake.config.feed import chosen_feeds
from tidelake.io.texts import plural

_MARKS = {"ok": "ok     ", "warning": "warning", "problem": "PROBLEM"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Feeds")(doctor)


def doctor(
    feed: Annotated[str | None, typer.Option("--feed", metavar="F", help="Name of the feed. Default: every feed.")] = None,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Check what the feeds need: Java, memory, disk, versions, variables, archive, brokers, lake, catalog, schema registry.

    The command writes one small object into the lake and removes it, to see that conditional puts work. It starts no Spark.
    `tidelake check` checks the files of the feeds.
    Exit code 1: there is a problem. Each has its remedy.
    """
    from tidelake.doctor.feeds import feed_findings
    from tidelake.doctor.finding import Finding, all_findings
    from tidelake.doctor.host import host_checks

    found = list[Finding]()

    def show(f: Finding) -> None:
        found.append(f)
        if not as_json:
            say(f"{_MARKS[f.state]}  {f.subject}: {f.found}" + (f"; {f.remedy}" if f.remedy else ""))

    names, asked = chosen_feeds(schemas, feed), set[str]()
    for f in all_findings(host_checks()):
        show(f)
    for name in names:
        for f in feed_findings(schemas, name, asked):
            show(f)
    problems = sum(f.state == "problem" for f in found)
    if as_json:
        print_json({"findings": [asdict(f) for f in found], "problems": problems})
    else:
        warnings = sum(f.state == "warning" for f in found)
        out.print(f"{plural(len(found), 'check')}: {plural(problems, 'problem')}, {plural(warnings, 'warning')}")
    if problems:
        raise typer.Exit(1)
