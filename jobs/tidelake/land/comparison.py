"""The dry run of landing: compare an hour's archive with what is landed of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from tidelake.archives import Listing, layout_of
from tidelake.config.feed import Feed
from tidelake.errors import StorageError
from tidelake.io.storage import Store, open_store
from tidelake.land.closing import Ends, Held, covered_of, ends_of, waits_for
from tidelake.land.findings import finding, named
from tidelake.land.generation import since
from tidelake.land.listing import lister
from tidelake.land.store.landed import missing
from tidelake.land.store.manifest import Finding, Manifest, newest
from tidelake.land.unusable import refuse_unusable
from tidelake.land.waits import Waits
from tidelake.tso import format_hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Comparison of an hour's archive with what is landed of it.

    generation: the newest one, None if the hour is not landed; objects: number in the archive; findings: those of a new generation; waits:
    what keeps the hour open.
    """

    hour: str
    generation: int | None
    objects: int
    findings: tuple[Finding, ...]
    waits: tuple[Waits, ...]


def compare_hour(feed: Feed, hour: datetime) -> Comparison:
    """Compare an hour's archive with what is landed of it. Writes only notes of what was read after the hour (land/seen.py).

    Reads listings and objects that may have changed. For landed objects it checks only existence and size. For live topics it checks only
    whether the hour is over, and the landed objects, because a passed hour cannot change.

    Args:
        feed: The feed's settings.
        hour: First instant of the hour, UTC.

    Raises:
        ConfigError, StorageError: The source or the lake cannot be read.
    """
    if feed.source.kind == "kafka":
        return _live(feed, hour)
    archive, name, layout = open_store(feed.source.uri), format_hour(hour), layout_of(feed.source.layout or "")
    lake = open_store(feed.lake.uri)
    landed = newest(lake, feed.name, name)
    try:
        listing = lister(feed, archive, lake, hour, layout)()
    except StorageError as e:
        if e.code != "HOUR_OPEN":
            raise
        generation = landed.generation if landed else None
        return Comparison(hour=name, generation=generation, objects=0, findings=(), waits=(Waits(what=e.message),))
    if landed is None:
        refuse_unusable(feed, archive, layout, listing)
    ends: Ends = ends_of([landed]) if landed else {(source.topic, source.partition): None for source in listing.objects}
    held = Held(covered=covered_of([landed]), hour=landed) if landed else None
    found = (*since(landed, _digests(archive, landed, listing), feed.source.layout or ""), *_broken(lake, landed)) if landed else ()
    return Comparison(
        hour=name,
        generation=landed.generation if landed else None,
        objects=sum(len(source.parts) for source in listing.objects),
        findings=tuple(f.model_copy(update={"severity": feed.policy.severity(f.code, f.severity)}) for f in found),
        waits=waits_for(feed, archive, lake, layout, hour, listing, ends, datetime.now(UTC), held),
    )


def _broken(lake: Store, landed: Manifest) -> Iterator[Finding]:
    """Yield the finding for landed objects that are gone or of another size. Does not read their bytes."""
    if found := missing(lake, landed.objects):
        yield finding(
            "LANDED_DAMAGED", "warning", f"landed objects are missing or have another size: {named([each.key for each in found])}"
        )


def _live(feed: Feed, hour: datetime) -> Comparison:
    from tidelake.land.live import live_waits  # imports Kafka's client, which archives do not need

    lake = open_store(feed.lake.uri)
    landed = newest(lake, feed.name, format_hour(hour))
    generation, found = (landed.generation, tuple(_broken(lake, landed))) if landed else (None, ())
    return Comparison(hour=format_hour(hour), generation=generation, objects=0, findings=found, waits=live_waits(feed, hour))


def _digests(archive: Store, landed: Manifest, listing: Listing) -> dict[str, str]:
    """Return the sha256 of every listed object that was landed. It is known if size and ETag are unchanged; empty for new objects."""
    known = {source.key: source for source in landed.sources}
    out: dict[str, str] = {}
    for part in (part for source in listing.objects for part in source.parts):
        old = known.get(part.key)
        if old is None:
            out[part.key] = ""
        elif (old.size, old.etag) == (part.size, part.etag):
            out[part.key] = old.sha256 or ""
        else:
            out[part.key] = _digest(archive, part.key)
    return out


def _digest(archive: Store, key: str) -> str:
    digest = hashlib.sha256()
    for chunk in archive.chunks(key):
        digest.update(chunk)
    return digest.hexdigest()
