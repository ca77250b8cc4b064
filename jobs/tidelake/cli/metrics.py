"""`tidelake metrics`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, SchemasFolder, errors, say
from tidelake.config.feed import chosen_feeds
from tidelake.io.texts import plural

if TYPE_CHECKING:
    from tidelake.metrics.gauges import Gauge


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Feeds")(metrics)


def metrics(
    feed: Annotated[str | None, typer.Option("--feed", metavar="F", help="Name of the feed. Default: every feed.")] = None,
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
