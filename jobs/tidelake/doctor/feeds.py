"""Checks of feeds: variables, and every place that they name. A place that several feeds share is asked once."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tidelake.config.feed import Feed, load_feed, unset_variables
from tidelake.doctor.diagnosis import Check, Diagnosis, State, carried_out, problem
from tidelake.doctor.places import Place, places
from tidelake.errors import TidelakeError
from tidelake.io.storage import open_store, probe_conditional_puts

MOST_SKEW_SECONDS = 60


def feed_diagnoses(schemas: Path, name: str, asked: set[str]) -> Iterator[Diagnosis]:
    """Yield the diagnoses of a feed. asked: places that were asked; the feed's are added."""
    try:
        unset = unset_variables(load_feed(schemas, name, expand=False), os.environ)
        if unset:
            remedy = "set what the feed.toml names"
            yield Diagnosis(subject=f"{name}: variables", state="problem", found=f"{', '.join(unset)} not set", remedy=remedy)
            return
        for place, check in _checks(load_feed(schemas, name)):
            if place not in asked:
                asked.add(place)
                yield carried_out(f"{name}: {place}", check)
    except TidelakeError as e:  # of the feed's settings
        yield problem(name, e)


def _checks(feed: Feed) -> Iterator[tuple[str, Check]]:
    lake = open_store(feed.lake.uri).uri
    for place in places(feed):
        subject = f"{feed.name}: {place.uri}"
        yield place.uri, partial(_writes, subject, feed.lake.uri) if place.uri == lake else partial(_reads, subject, place)


def _reads(subject: str, place: Place) -> Diagnosis:
    if place.ask():
        return Diagnosis(subject=subject, found="answers")
    state: State = "warning" if place.empty else "ok"
    return Diagnosis(subject=subject, state=state, found="answers; nothing of the feed is there yet", remedy=place.empty)


def _writes(subject: str, uri: str) -> Diagnosis:
    """Write a small object, conditionally, and remove it. Compare the clocks, because leases are judged by both.

    Raises StorageError (CONDITIONAL_PUTS).
    """
    written_ms = probe_conditional_puts(open_store(uri))
    skew = abs(time.time() - written_ms / 1000)
    if skew > MOST_SKEW_SECONDS:
        found, remedy = f"its clock and this host's are {skew:,.0f} s apart", "synchronise this host's clock (NTP)"
        return Diagnosis(subject=subject, state="problem", found=found, remedy=remedy)
    return Diagnosis(subject=subject, found="can be written, keeps to conditional puts, has the same time")
