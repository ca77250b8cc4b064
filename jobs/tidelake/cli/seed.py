"""`tidelake seed`: load a full export as the first cut of a feed."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, DryRun, FeedName, Json, SchemasFolder, opened, print_json, say, working
from tidelake.config.table_name import parse_several
from tidelake.io.texts import plural
from tidelake.tso import show

From = Annotated[str, typer.Option("--from", metavar="URI", help="Location of the export: s3://… or a folder.")]
Ts = Annotated[int | None, typer.Option("--ts", metavar="TSO", help="TSO of the export. Default: from the export's file metadata.")]
Tables = Annotated[
    list[str] | None,
    typer.Option("--tables", metavar="DB.TABLE", help="Load only these tables. Comma-separated or repeated. Default: all."),
]
Separator = Annotated[str, typer.Option("--csv-separator", metavar="TEXT", help="Field separator, as given to Dumpling.")]
Delimiter = Annotated[str, typer.Option("--csv-delimiter", metavar="C", help="Quote character around text.")]
Null = Annotated[str, typer.Option("--csv-null", metavar="WORD", help="Unquoted word that means NULL.")]
Header = Annotated[bool, typer.Option("--csv-header/--csv-no-header", help="Whether files begin with a header line.")]
Escape = Annotated[bool, typer.Option("--escape-backslash/--no-escape-backslash", help="Whether CSV and SQL use backslash escapes.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Stages")(seed)


def seed(
    feed: FeedName,
    from_: From,
    ts: Ts = None,
    tables: Tables = None,
    dry_run: DryRun = False,
    csv_separator: Separator = ",",
    csv_delimiter: Delimiter = '"',
    csv_null: Null = r"\N",
    csv_header: Header = True,
    escape_backslash: Escape = True,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Load a full export (Dumpling's CSV or SQL, or Parquet) as the first cut of a feed, at the TSO of the export.

    Start the changefeed at the same TSO.
    The first hour that you run afterwards continues from there and skips changes that the export already has.
    Exit code 3: rows cannot be read or values do not fit; nothing is published.
    """
    from tidelake.seed.exports.dialect import dialect

    written = dialect(separator=csv_separator, delimiter=csv_delimiter, null=csv_null, header=csv_header, escape=escape_backslash)
    wanted = [str(name) for several in tables or [] for name in parse_several(several)]
    with opened(schemas, feed, quiet=as_json, begins=True) as lake:
        if dry_run:
            from tidelake.seed.seed_plan import prepare

            plan = prepare(lake, from_, ts, wanted, written).plan
            found, lines = plan.model_dump(), plan.lines()
        else:
            from tidelake.seed.stage import seed as load
            from tidelake.validate.report import write_report

            with working(f"seed {feed}") as progress:
                done = load(lake, from_, ts, wanted, written, progress)
            logging.getLogger("tidelake.report").info(write_report(lake, done.plan.hour))
            found = done.model_dump()
            lines = [f"published cut {done.cut}, {show(done.plan.ts)}: {plural(len(done.rows), 'table')}"]
            lines += [f"  {name}: {plural(rows, 'row')}" for name, rows in done.rows.items()]
            lines += [f"  left out because unreadable: {plural(done.refused, 'row')}; the cut is incomplete"] if done.refused else []
            lines += [f"  {name}: left out, because its changes alone would not give the whole table" for name in done.plan.left_out]
    if as_json:
        print_json(found)
        return
    for line in lines:
        say(line)
