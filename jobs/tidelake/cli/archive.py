"""`tidelake archive`: follow Kafka topics and write their archive."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from threading import Event
from types import FrameType
from typing import Annotated

import typer

from tidelake.cli.common import DEFAULT_SCHEMAS, Debug, FeedName, Json, LogLines, SchemasFolder, logged, out, print_json
from tidelake.config.feed import load_feed
from tidelake.errors import ConfigError
from tidelake.io.texts import plural
from tidelake.tso import parse_hour


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Stages")(archive)


def archive(
    feed: FeedName,
    until: Annotated[
        str | None, typer.Option("--until", metavar="H", help="Stop after this hour (UTC), for example 2026-01-05T10.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Archive what the topics hold now, then stop.")] = False,
    accept_expired: Annotated[
        bool, typer.Option("--accept-expired", help="Continue after messages that Kafka deleted before they were archived.")
    ] = False,
    schemas: SchemasFolder = DEFAULT_SCHEMAS,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Follow Kafka topics and write the archive that `land` reads. Runs until it is stopped.

    Use it if no other archiver (such as a Kafka Connect sink) writes your topics to S3.
    The archive itself records where to continue: you can kill the command and start it again at any time.
    Every offset is archived exactly once.
    Only one can run at a time.
    SIGTERM stores what was read and exits with 0.
    Exit code 3: messages expired before they were archived.
    """
    from tidelake.land.archiver.follow import Goal
    from tidelake.land.archiver.follow import archive as follow

    if once and until is not None:
        raise ConfigError("--once and --until exclude each other", remedy="leave one out")
    goal = Goal(once=once, until=None if until is None else parse_hour(until))
    loaded = load_feed(schemas, feed, archiving=True)
    with _stopped_by_signals() as stop, logged(LogLines()):
        done = follow(loaded, goal, stop, accept_expired=accept_expired)
    if as_json:
        print_json(asdict(done))
        return
    said = f"{done.messages:,} messages ({done.bytes / 1_000_000:,.1f} MB) in {plural(done.objects, 'object')}"
    out.print(f"archived {said}{' of ' if done.topics else ''}{', '.join(done.topics)}", soft_wrap=True)


@contextmanager
def _stopped_by_signals() -> Iterator[Event]:
    """Yield an event that SIGTERM and Ctrl-C set. A second Ctrl-C interrupts at once."""
    stop, interrupted = Event(), Event()

    def ask(number: int, _: FrameType | None) -> None:
        stop.set()
        if number == signal.SIGINT:
            interrupted.set()
            signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if interrupted.is_set():
        raise KeyboardInterrupt
