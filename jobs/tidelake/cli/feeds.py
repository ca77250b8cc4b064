"""`tidelake check`, `status` and `report`."""

from __future__ import annotations

import os
import re
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer
from rich.table import Table

from tidelake.cli.checks import mistakes
from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, Json, SchemasFolder, errors, opened, out, print_json, say, working
from tidelake.cli.sharing import shared
from tidelake.config.feed import EXTENDED, UNDATED, chosen_feeds, load_feed, unset_variables
from tidelake.config.table_name import written
from tidelake.errors import ConfigError, ContractError, TidelakeError
from tidelake.io.texts import plural
from tidelake.tso import show

if TYPE_CHECKING:
    from tidelake.config.feed import Feed
    from tidelake.history.contract import TableContract

P = ParamSpec("P")
T = TypeVar("T")
_SHOWN = 5  # failed checks of a cut that status prints; --json has more
_ELSEWHERE = re.compile(r"://|\$\{")  # Avro schemas that check cannot read: a URL or a variable


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(rich_help_panel="Feeds")(check)
    app.command(rich_help_panel="Feeds")(status)
    app.command(rich_help_panel="Feeds")(report)


def check(schemas: SchemasFolder = DEFAULT_SCHEMAS, as_json: Json = False, debug: Debug = False) -> None:
    """Check the files of every feed: feed.toml, tables.sql, ddl.jsonl and expectations.

    The command reads no data and needs no environment variables.
    Exit code 2: a file has a mistake.
    """
    names = chosen_feeds(schemas, None)
    results = {name: _checked(schemas, name) for name in names}
    for name, found in shared(schemas, names).items():
        results[name]["errors"] += found.errors
        results[name]["notes"] += [] if results[name]["errors"] else found.notes
    if as_json:
        print_json(results)
    else:
        for name, r in results.items():
            for said in r["errors"] or [r["summary"]]:
                out.print(f"{name}: {said}", soft_wrap=True)
            for note in r["notes"]:
                out.print(f"  note: {note}", soft_wrap=True)
    if any(r["errors"] for r in results.values()):
        raise typer.Exit(2)


def _checked(schemas: Path, name: str) -> dict[str, Any]:
    """Check every file of a feed, also after one has a mistake."""
    from tidelake.history.contract import read_expectations, read_recorded_ddl
    from tidelake.io.avro_schemas import schema_source

    errors: list[str] = []
    feed = _tried(errors, load_feed, schemas, name, expand=False)
    tables = _tried(errors, _typed_tables, schemas / name) or []
    ddl = _tried(errors, read_recorded_ddl, schemas / name) or []
    rules = _tried(errors, read_expectations, schemas / name) or []
    if rules:
        from tidelake.validate.quality.expectations import check_expectation  # the import takes seconds

        for rule in rules:
            _tried(errors, check_expectation, rule)
    if feed is not None:
        errors += mistakes(feed, tables, ddl, rules)
    if feed is not None and feed.avro is not None and not _ELSEWHERE.search(feed.avro.schemas):
        _tried(errors, schema_source, feed.avro.schemas, feed.folder)
    if feed is not None:
        _check_clients(errors, feed)
        _tried(errors, _check_masks, feed, tables)
    if feed is None or errors:
        return {"errors": errors, "notes": [], "summary": ""}
    known = {written(t.database, t.table).lower() for t in tables}
    undefined = sorted({e.table for e in rules if tables and e.table.lower() not in known})
    notes = [f"{v} is not set here; it must be where the feed runs" for v in unset_variables(feed, os.environ)]
    notes += [f"expectations for {t}, which tables.sql does not define (fine if it is created later)" for t in undefined]
    notes += [*_unknown_masks(feed, tables), *_order(feed), *_types(feed, tables)]
    summary = f"ok: {feed.protocol}, {plural(len(tables), 'table')}, {plural(len(rules), 'expectation')}"
    summary += f", {plural(len(ddl), 'statement')}" if ddl else ""
    return {"errors": errors, "notes": notes, "summary": summary}


def _order(feed: Feed) -> list[str]:
    """Notes that another watermark rule would give a stronger guarantee."""
    if not feed.by_offsets or feed.protocol in UNDATED:
        return []
    if feed.protocol in EXTENDED and not feed.options.enable_tidb_extension:
        return [
            'if TiCDC is the source, enable-tidb-extension and [watermark] from = "messages" give stronger guarantees (docs/offsets.md)'
        ]
    return [
        f'{feed.protocol} messages carry a commit ts: [watermark] from = "messages" gives stronger guarantees than "offsets" '
        "(docs/offsets.md)"
    ]


def _types(feed: Feed, tables: list[TableContract]) -> list[str]:
    """Notes on where column types come from if tables.sql defines no table."""
    from tidelake.history.definitions import UNSAID

    if tables:
        return []
    unsaid = UNSAID[feed.protocol]
    if not unsaid:
        return [f"types: taken from {feed.protocol} messages, because tables.sql defines no table"]
    return [
        f"types: tables.sql defines no table, and {feed.protocol} messages do not carry {unsaid}; the rows of a table that needs them are "
        "set aside (UNDEFINED_TABLE) unless a CREATE TABLE statement comes first (docs/types.md)"
    ]


def _check_masks(feed: Feed, tables: list[TableContract]) -> None:
    """Check the masks of the columns in tables.sql. Raises ConfigError."""
    from tidelake.wire.masks import check_mask

    for t in tables:
        name = written(t.database, t.table)
        key = {c.lower() for c in t.definition.handle.columns} if t.definition.handle else set()
        for c in t.definition.visible:
            if mask := feed.rules_of([name], [c.name]).mask:
                check_mask(name, c.name, mask, c.name.lower() in key, c.type)


def _unknown_masks(feed: Feed, tables: list[TableContract]) -> list[str]:
    """Notes on masks of columns that tables.sql does not define."""
    known = {(written(t.database, t.table).lower(), c.name.lower()) for t in tables for c in t.definition.visible}
    masks = [(t, c) for t, columns in feed.columns.items() for c, p in columns.items() if p.mask]
    return [
        f'mask of columns."{t}".{c}, which tables.sql does not define (fine if it is created later)'
        for t, c in masks
        if (t.lower(), c.lower()) not in known
    ]


def _check_clients(errors: list[str], feed: Feed) -> None:
    """Check the settings of the Kafka clients, if there are any."""
    archiver = feed.source.archiver
    if feed.source.kafka or archiver:
        from tidelake.io.kafka import ARCHIVER, SOURCE, check_settings

        _tried(errors, check_settings, feed.source.kafka, SOURCE)
        _tried(errors, check_settings, archiver.kafka if archiver else {}, ARCHIVER)


def _tried(errors: list[str], read: Callable[P, T], *args: P.args, **named: P.kwargs) -> T | None:
    try:
        return read(*args, **named)
    except TidelakeError as e:
        errors.append(str(e))
        return None


def _typed_tables(folder: Path) -> list[TableContract]:
    from tidelake.history.contract import read_tables
    from tidelake.history.ddl.column_types import lake_type

    tables = read_tables(folder)
    for t in tables:
        for c in t.definition.visible:
            try:
                lake_type(c.type)
            except ContractError as e:
                raise ContractError(
                    f"{folder / 'tables.sql'}: {written(t.database, t.table)}: column {c.name!r}: {e.message}", code=e.code
                ) from e
    return tables


def status(
    feed: Annotated[str | None, typer.Option("--feed", metavar="F", help="Name of the feed. Default: one line for every feed.")] = None,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show the state of a feed: resolved ts, published cut, hours, tables, quarantine. Does not start Spark.

    Without --feed the command prints one line for every feed under schemas/.
    Exit code 1: the state of a feed could not be read; its line states why.
    """
    from tidelake.query.status import feed_status

    if feed is None:
        _all_feeds(schemas, as_json)
        return
    with opened(schemas, feed, quiet=True) as lake:
        found = feed_status(lake)
    if as_json:
        print_json(found)
    else:
        _say_status(found)


def _say_status(found: dict[str, Any]) -> None:
    out.print(f"feed {found['feed']} ({found['protocol']})")
    out.print(f"  published   {_published(found)}")
    for r in found["incomplete_because"]:
        say(f"  incomplete  {r['code']}: {r['detail']} (cut {r['cut']}, hour {r['hour']})")
    if (checks := found["checks"]) and checks["failed"]:
        out.print(f"  checks      {checks['failed']:,} of {checks['checked']:,} of the cut failed")
        for c in checks["first"][:_SHOWN]:
            where = f"{c['table'] or 'the window'}{'.' + c['column'] if c['column'] else ''}"
            say(f"              {c['severity']}  {where}: {c['rule']}: {c['observed']}")
    out.print(f"  resolved    {show(found['resolved_ts']) if found['resolved_ts'] else '–'}")
    out.print(f"  hours       {_hours(found['hours'])}")
    out.print(f"  quarantine  {plural(found['quarantine'], 'message')} undecided")
    if found["waits_for"]:
        out.print(f"  waits for   {found['waits_for']}", soft_wrap=True)
    for said in found["definitions"]:
        out.print(f"  differs     {said}", soft_wrap=True)
    if found["tables"]:
        grid = Table("table", "rows", "in the lake", "types from", box=None, padding=(0, 2))
        grid.columns[1].justify = "right"
        for name, t in found["tables"].items():
            grid.add_row(name, f"{t['rows']:,}", t["table"], t["types"])
        out.print(grid)


def _published(found: dict[str, Any]) -> str:
    if not found["cut"]:
        return "nothing yet"
    mark = "  INCOMPLETE" if found["incomplete"] else ""
    return f"cut {found['cut']} (hour {found['published_hour']}) at {show(found['published_ts'])}{mark}"


def _all_feeds(schemas: Path, as_json: bool) -> None:
    """Print one line for every feed, also for feeds whose state cannot be read."""
    from tidelake.query.status import feed_status

    known, failed = dict[str, Any](), dict[str, TidelakeError]()
    for name in chosen_feeds(schemas, None):
        try:
            with opened(schemas, name, quiet=True) as lake:
                known[name] = feed_status(lake)
        except TidelakeError as e:
            failed[name] = e
    if as_json:
        print_json(known | {name: {"feed": name, "error": str(error)} for name, error in failed.items()})
    else:
        grid = Table("feed", "published", "tables", "quarantine", "hours", box=None, padding=(0, 2))
        for name, s in known.items():
            grid.add_row(name, _published(s), str(len(s["tables"])), str(s["quarantine"]), _hours(s["hours"]))
        for name, error in failed.items():
            grid.add_row(name, f"error: {error}")
        out.print(grid)
    if failed:
        raise typer.Exit(1)


def _hours(hours: list[dict[str, Any]]) -> str:
    if not hours:
        return "none landed"
    open_ones = [f"{h['hour']} {h['stage']}" for h in hours if h["stage"] != "published"]
    return f"{len(hours)} landed, {hours[0]['hour']} to {hours[-1]['hour']}" + (
        f"; not published: {', '.join(open_ones)}" if open_ones else ""
    )


def report(
    feed: Annotated[
        str | None, typer.Option("--feed", metavar="F", help="Name of the feed. --site alone writes the pages of all feeds.")
    ] = None,
    hour: Annotated[
        str | None, typer.Option("--hour", metavar="H", help="Hour of the report (UTC). Default: the newest landed hour.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write a copy of the page here.")] = None,
    site: Annotated[
        Path | None,
        typer.Option("--site", metavar="DIR", help="Write pages of all feeds, hours and tables into this folder, from the stored reports."),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write the quality report of an hour: input, output, and what was rejected and why. Does not start Spark.

    With --site, write the pages of all feeds as files that any web server shows, or a browser without one.
    Run it again after new hours: only files that changed are written.
    Exit code 1: a feed or a stored report could not be read; its page states why.
    """
    if site is not None:
        if hour is not None or output is not None:
            raise ConfigError("--site writes the pages of all hours", remedy="leave out --hour and --output")
        _site(schemas, site, feed, as_json, open_)
    elif feed is None:
        raise ConfigError("a report is that of a feed's hour", remedy="give --feed F, or --site DIR for the pages of all feeds")
    else:
        _report(schemas, feed, hour, output, as_json, open_)


def _site(schemas: Path, folder: Path, feed: str | None, as_json: bool, open_: bool) -> None:
    from tidelake.pages.site import write_site
    from tidelake.pages.site_folder import SiteFolder

    names = chosen_feeds(schemas, feed)
    made = SiteFolder(folder)
    with working(f"pages of {plural(len(names), 'feed')}") as bar:
        rows = write_site(schemas, made, names, bar)
    wrong = [*(f"{row.feed}: {row.why}" for row in rows if not row.can_be_read), *made.damaged]
    if as_json:
        counts = {"written": made.written, "unchanged": made.unchanged, "removed": made.removed}
        print_json({"site": str(folder), "feeds": {row.feed: row.word for row in rows}} | counts | {"errors": wrong})
    else:
        for said in wrong:
            errors.print(f"error: {said}", soft_wrap=True)
        say(f"{folder / 'index.html'}: {made.written} written, {made.unchanged} unchanged, {made.removed} removed")
    if open_:
        webbrowser.open((folder / "index.html").resolve().as_uri())
    if wrong:
        raise typer.Exit(1)


def _report(schemas: Path, feed: str, hour: str | None, output: Path | None, as_json: bool, open_: bool) -> None:
    from tidelake.config.lake_paths import report_key
    from tidelake.land.store.manifest import generations
    from tidelake.validate.report import hour_facts, write_report

    with opened(schemas, feed, quiet=True) as lake:
        landed = list(generations(lake.store, feed))
        if not landed:
            raise ConfigError(f"feed {feed} has no landed hour to report on", remedy=f"run `tidelake run --feed {feed} --hour …` first")
        wanted = hour or landed[-1]
        if wanted not in landed:
            raise ConfigError(f"hour {wanted} of feed {feed} is not landed", remedy=f"landed: {landed[0]} to {landed[-1]}")
        if as_json:
            print_json(hour_facts(lake, wanted).model_dump())
            return
        uri = write_report(lake, wanted)
        if output:
            output.write_bytes(lake.store.read(report_key(feed, wanted)))
    out.print(str(output) if output else uri, soft_wrap=True)
    if open_:
        webbrowser.open((output or Path(uri)).resolve().as_uri())
