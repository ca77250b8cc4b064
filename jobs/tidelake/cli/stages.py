"""`tidelake land`, `decode`, `order`, `validate`, `compact`, and `run`, which does all of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, FeedName, Hour, Json, SchemasFolder, opened, out, print_json, say, working
from tidelake.config.feed import load_feed
from tidelake.errors import OrderError, TidelakeError
from tidelake.io.texts import plural
from tidelake.tso import format_hour, parse_hour, show

if TYPE_CHECKING:
    from tidelake.lake.cut import Reason
    from tidelake.lake.opened import Lake
    from tidelake.land.comparison import Comparison
    from tidelake.land.store.manifest import Finding
    from tidelake.run import HourRun

Redo = Annotated[bool, typer.Option("--redo", help="Decode again even if the hour was already decoded from the same input.")]


RedoFrom = Annotated[
    str | None,
    typer.Option("--redo-from", metavar="H", help="Rebuild from this hour up to the newest cut, to replace what is published."),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (land, decode, order, validate, compact, run):
        app.command(rich_help_panel="Stages")(command)


def land(
    feed: FeedName,
    hour: Hour,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Compare the archive with the landed hour and write nothing.")] = False,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Copy the messages of an hour from the archive or the live topics to Parquet, with a manifest.

    Landing an hour again compares it with the archive and changes nothing unless the archive changed.
    A dry run lists objects that were added, removed or changed, and what a complete hour still waits for.
    If it waits for a resolved ts, the dry run stores how far it has read.
    Exit code 3: something is missing or contradictory; the messages that are there are landed.
    """
    if dry_run:
        from tidelake.land.comparison import compare_hour

        wanted = load_feed(schemas, feed)
        wanted.check_hour(format_hour(parse_hour(hour)))
        _say_comparison(compare_hour(wanted, parse_hour(hour)), as_json)
        return
    from tidelake.run import land as stage

    with opened(schemas, feed, quiet=as_json, begins=True) as lake, working(f"land {hour}") as progress:
        report = stage(lake, parse_hour(hour), progress)
    if as_json:
        print_json({"hour": report.hour, "generation": report.generation, "new": report.new, "messages": report.messages})
        return
    state = f"generation {report.generation}" if report.new else "unchanged"
    out.print(f"landed {report.hour}: {plural(report.messages, 'message')} of {plural(report.sources, 'source')}, {state}")
    _say_findings(report.findings)


def _say_findings(findings: Sequence[Finding]) -> None:
    """Print one line for findings that are equal at several places."""
    from tidelake.land.findings import place

    places: dict[tuple[str, str, str, str], list[str]] = {}
    for f in findings:
        places.setdefault((f.severity, f.code, f.detail, f.remedy), []).append(place(f))
    for (severity, code, detail, remedy), where in places.items():
        say(f"  {severity}: {' '.join(filter(None, (code, ', '.join(filter(None, where)))))}: {detail}; {remedy}")


def _say_comparison(found: Comparison, as_json: bool) -> None:
    if as_json:
        facts = {"hour": found.hour, "generation": found.generation, "objects": found.objects, "closed": not found.waits}
        print_json(facts | {"waits_for": [str(w) for w in found.waits], "findings": [f.model_dump() for f in found.findings]})
        return
    state = "not landed" if found.generation is None else f"landed as generation {found.generation}"
    state += ", changed since" if found.findings else "" if found.generation is None else ", unchanged"
    out.print(f"{found.hour}: {plural(found.objects, 'object')}, {state}")
    _say_findings(found.findings)
    for wait in found.waits:
        out.print(f"  not complete: {wait}", soft_wrap=True)


def decode(
    feed: FeedName, hour: Hour, redo: Redo = False, schemas: SchemasFolder = DEFAULT_SCHEMAS, as_json: Json = False, debug: Debug = False
) -> None:
    """Decode the landed messages of an hour into events: rows, DDL, resolved ts. Messages that cannot be decoded are quarantined."""
    from tidelake.run import decode as stage

    with opened(schemas, feed, quiet=as_json, begins=True) as lake, working(f"decode {hour}"):
        report = stage(lake, parse_hour(hour), redo=redo)
    record = report.record
    if as_json:
        found = {"hour": record.hour, "generation": record.generation, "changed": report.changed, "events": record.counts}
        print_json(found | {"rejected": record.rejected, "refused": record.refused and record.refused.model_dump()})
        return
    counts = ", ".join(f"{n:,} {kind}" for kind, n in sorted(record.counts.items()) if kind != "row_schema") or "no events"
    out.print(f"decoded {record.hour}: {counts}{'' if report.changed else ' (unchanged)'}")
    if record.quarantined:
        out.print(f"  {record.quarantined}", soft_wrap=True)


def order(
    feed: FeedName,
    hour: Hour,
    redo_from: RedoFrom = None,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Deduplicate and order the events up to the resolved ts, and stage them as changelogs."""
    from tidelake.run import order as stage

    with opened(schemas, feed, quiet=as_json, begins=True) as lake, working(f"order {hour}"):
        report = stage(lake, parse_hour(hour), _hour(redo_from))
    if as_json:
        print_json(report.staged.model_dump(exclude={"cut": {"catalog"}}) if report.staged else {"staged": None, "why": report.why})
        return
    if report.staged is None:
        out.print(f"nothing to order: {report.why}")
        return
    counts = report.staged.counts.values()
    changes = f"{plural(sum(c.changes for c in counts), 'change')} of {plural(len(counts), 'table')}"
    out.print(f"ordered {hour}: {changes} up to {show(report.staged.cut.resolved_ts)}")


def _hour(text: str | None) -> str | None:
    """Parse and format an hour. Raises ConfigError."""
    return None if text is None else format_hour(parse_hour(text))


def validate(
    feed: FeedName,
    hour: Hour,
    redo_from: RedoFrom = None,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Check the staged window against the expectations. Exit code 3: a critical expectation failed; the window is not published."""
    from tidelake.run import validate as stage

    with opened(schemas, feed, quiet=as_json, begins=True) as lake, working(f"validate {hour}"):
        verdict = stage(lake, parse_hour(hour), _hour(redo_from))
    if as_json:
        print_json(verdict.model_dump() if verdict else None)
    elif verdict is None:
        out.print(f"nothing to validate: hour {hour} is published")
    else:
        out.print(f"validated {hour}: {plural(len(verdict.checks), 'check')}, {plural(len(verdict.failed), 'warning')}")


def compact(
    feed: FeedName,
    hour: Hour,
    redo_from: RedoFrom = None,
    status: Annotated[
        Path | None, typer.Option("--status", metavar="FILE", help="Write the output of `status --json` here afterwards.")
    ] = None,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Apply the staged changelogs to the snapshot tables and publish the result as one cut."""
    from tidelake.query.status import feed_status
    from tidelake.run import compact as stage

    with opened(schemas, feed, quiet=as_json, begins=True) as lake, working(f"compact {hour}"):
        report = stage(lake, parse_hour(hour), _hour(redo_from))
        if status is not None:
            status.write_text(json.dumps(feed_status(lake)), encoding="utf-8")
    if as_json:
        print_json(report.certificate)
    elif report.cut is None:
        out.print(f"nothing to compact: hour {hour} is published")
    else:
        cut = report.cut
        say(f"published cut {cut.seq}: {plural(len(cut.snapshots), 'table')} at {show(cut.resolved_ts)}{_mark(cut.incomplete_because)}")


def run(
    feed: FeedName,
    hour: Hour,
    hours: Annotated[int, typer.Option("--hours", min=1, metavar="N", help="Number of consecutive hours.")] = 1,
    redo: Redo = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be read and written, and change nothing.")] = False,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run all five stages for an hour (or N hours) in one Spark application.

    You can run an hour again at any time, also after a run was killed: the tables end up the same.
    Hours are run in order.
    An hour after a gap, or before the first published one, is refused, and the error has the command to run.
    With --dry-run such an hour gives exit code 3.
    """
    from tidelake.run import hours_from

    wanted = [format_hour(h) for h in hours_from(parse_hour(hour), hours)]
    results: list[dict[str, Any]] = []
    with opened(schemas, feed, quiet=as_json, begins=True) as lake:
        for one in wanted:
            if dry_run:
                results.append(_plan(lake, one, [r["hour"] for r in results], as_json))
                if results[-1]["blocked"]:
                    break  # the run stops here too
            else:
                with _naming_done_hours(wanted, results):
                    results.append(_ran(lake, wanted[len(results) :], redo=redo, later=bool(results)))
                if not as_json:
                    _say(results[-1])
    if as_json:
        print_json(results)
    if dry_run and results[-1]["blocked"]:
        raise typer.Exit(3)


def _ran(lake: Lake, hours: Sequence[str], *, redo: bool, later: bool) -> dict[str, Any]:
    """Run the first of these hours. later: earlier hours were run before. Raises what the stages raise, and OrderError (NOT_ARCHIVED)."""
    from tidelake.query.plan import archive_ends
    from tidelake.run import run_hour

    first = hours[0]
    if later and archive_ends(lake, hours):
        more = f" --hours {len(hours)}" if len(hours) > 1 else ""
        raise OrderError(
            "the archive has no objects of this hour or of later hours yet",
            code="NOT_ARCHIVED",
            remedy=f"when the archive has it, run `tidelake run --feed {lake.feed.name} --hour {first}{more}`",
        )
    with working(f"run {first}") as bar:
        return _outcome(run_hour(lake, parse_hour(first), redo=redo, progress=bar))


@contextmanager
def _naming_done_hours(wanted: Sequence[str], results: list[dict[str, Any]]) -> Iterator[None]:
    """Add to an error the hours that were done before it."""
    done = len(results)
    try:
        yield
    except TidelakeError as e:
        if done:
            e.done = list(results)
            e.message = f"{done} of {len(wanted)} hours are done, up to {wanted[done - 1]}; hour {wanted[done]}: {e.message}"
        raise


def _plan(lake: Lake, hour: str, coming: list[str], quiet: bool) -> dict[str, Any]:
    from tidelake.query.plan import plan_hour

    plan = plan_hour(lake, hour, coming)
    if not quiet:
        for line in plan.lines():
            out.print(line, soft_wrap=True)
    return plan.model_dump()


def _outcome(done: HourRun) -> dict[str, Any]:
    cut = done.compacted.cut if done.compacted else None
    return {
        "hour": done.hour,
        "messages": done.landed.messages,
        "events": done.decoded.record.counts,
        "rejected": done.decoded.record.rejected,
        "published": cut.resolved_ts if cut else None,
        "cut": cut.seq if cut else None,
        "tables": {t.identifier: t.rows for t in cut.snapshots.values()} if cut else {},
        "why": done.ordered.why,
        "incomplete": bool(cut and cut.incomplete),
        "incomplete_because": [r.model_dump() for r in cut.incomplete_because] if cut else [],
        "seconds": done.seconds,
    }


def _say(r: dict[str, Any]) -> None:
    from tidelake.lake.cut import Reason

    refused = sum(r["rejected"].values())
    quarantined = f", {plural(refused, 'message')} quarantined" if refused else ""
    if r["cut"] is None:
        say(f"{r['hour']}: nothing to do: {r['why']}{quarantined}")
        return
    rows = sum(r["tables"].values())
    seconds = sum(r["seconds"].values())
    mark = _mark(Reason.model_validate(x) for x in r["incomplete_because"])
    tables = f"{plural(len(r['tables']), 'table')}, {plural(rows, 'row')} at {show(r['published'])}"
    say(f"{r['hour']}: {plural(r['messages'], 'message')} → cut {r['cut']}: {tables}{quarantined}{mark}  [{seconds:.1f} s]")


def _mark(reasons: Iterable[Reason]) -> str:
    """Say why a cut is incomplete; empty for a complete cut."""
    from tidelake.order.incomplete import in_one_line

    said = in_one_line(reasons)
    return f", INCOMPLETE: {said}" if said else ""
