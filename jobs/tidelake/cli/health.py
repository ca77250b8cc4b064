"""`tidelake doctor` and `tidelake metrics`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, Json, SchemasFolder, errors, out, print_json, say
from tidelake.config.feed import chosen_feeds
from tidelake.io.texts import plural

if TYPE_CHECKING:
    from tidelake.metrics.gauges import Gauge

_MARKS = {"ok": "ok     ", "warning": "warning", "problem": "PROBLEM"}
_OneFeed = Annotated[str | None, typer.Option("--feed", metavar="F", help="Name of the feed. Default: every feed.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(rich_help_panel="Feeds")(doctor)
    app.command(rich_help_panel="Feeds")(metrics)


def doctor(
    feed: _OneFeed = None,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Check what the feeds need: Java, memory, disk, versions, variables, archive, brokers, lake, catalog, schema registry.

    The command writes one small object into the lake and removes it, to see that conditional puts work. It starts no Spark.
    `tidelake check` checks the files of the feeds.
    Exit code 1: there is a problem. Each has its remedy.
    """
    from tidelake.doctor.diagnosis import Diagnosis, all_diagnoses
    from tidelake.doctor.feeds import feed_diagnoses
    from tidelake.doctor.host import host_checks

    found = list[Diagnosis]()

    def show(d: Diagnosis) -> None:
        found.append(d)
        if not as_json:
            say(f"{_MARKS[d.state]}  {d.subject}: {d.found}" + (f"; {d.remedy}" if d.remedy else ""))

    names, asked = chosen_feeds(schemas, feed), set[str]()
    for d in all_diagnoses(host_checks()):
        show(d)
    for name in names:
        for d in feed_diagnoses(schemas, name, asked):
            show(d)
    problems = sum(d.state == "problem" for d in found)
    if as_json:
        print_json({"checks": [asdict(d) for d in found], "problems": problems})
    else:
        warnings = sum(d.state == "warning" for d in found)
        out.print(f"{plural(len(found), 'check')}: {plural(problems, 'problem')}, {plural(warnings, 'warning')}")
    if problems:
        raise typer.Exit(1)


def metrics(
    feed: _OneFeed = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the text here, in one step, for a collector of text files."),
    ] = None,
    otlp: Annotated[
        bool, typer.Option("--otlp", help="Send them to the OpenTelemetry collector of OTEL_EXPORTER_OTLP_ENDPOINT instead.")
    ] = False,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    debug: Debug = False,
) -> None:
    """Print metrics of the feeds as OpenMetrics text: resolved ts, newest cut, rows, seconds of stages, quarantine. Does not start Spark.

    Exit code 1: the state of a feed could not be read. It is in the metrics as tidelake_up 0.
    """
    from tidelake.metrics.all_feeds import all_gauges

    gauges, wrong = all_gauges(schemas, chosen_feeds(schemas, feed))
    if otlp:
        from tidelake.metrics.otlp import send

        send(gauges)
        say(f"{plural(len(gauges), 'value')} sent")
    else:
        _write(output, gauges)
    for said in wrong:
        errors.print(f"error: {said}", soft_wrap=True)
    if wrong:
        raise typer.Exit(1)


def _write(output: Path | None, gauges: Sequence[Gauge]) -> None:
    """Write the text. A file is replaced in one step, because a collector may read it at any time."""
    from tidelake.metrics.openmetrics import openmetrics

    text = openmetrics(gauges)
    if output is None:
        sys.stdout.write(text.decode())
        return
    part = output.with_name(f".{output.name}.{os.getpid()}")
    part.write_bytes(text)
    part.replace(output)
