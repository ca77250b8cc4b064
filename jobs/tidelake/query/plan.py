"""Plan of an hour for `run --dry-run`: what would be read and written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import BaseModel

from tidelake.archives import Listing, SourceObject, layout_of
from tidelake.config.feed import Feed
from tidelake.config.lake_paths import events_table, landed_folder, manifests, report_key
from tidelake.decode.known import opening
from tidelake.decode.record import decoder_id, read_record
from tidelake.errors import OrderError
from tidelake.io.storage import open_store
from tidelake.io.texts import plural
from tidelake.lake.cut import Cut
from tidelake.lake.cuts import newest_cut
from tidelake.lake.events import databases_of
from tidelake.lake.namespaces import refuse_databases, refuse_other_namespace, refuse_taken, taken_by_others
from tidelake.lake.opened import Lake
from tidelake.lake.turns import is_published, refuse_out_of_turn
from tidelake.land.listing import lister
from tidelake.land.store.manifest import newest
from tidelake.land.unusable import refuse_early, refuse_unusable
from tidelake.order.progress import progress
from tidelake.tso import parse_hour, show


class HourPlan(BaseModel):
    """Plan of one hour. applied_ts and resolved_ts (TSO) are those of the window if the hour is already decoded."""

    feed: str
    hour: str
    published: bool
    source: str
    objects: int  # in the archive
    object_bytes: int
    landed_generation: int | None
    lands: bool
    decodes: bool
    applied_ts: int | None
    resolved_ts: int | None
    blocked: str | None
    writes: list[str]
    taken: list[str] = []  # if the feed's databases are not known: other feeds' namespaces that a database could lead into

    def lines(self) -> list[str]:
        """Return the plan as lines for people."""
        state = "unchanged" if not self.lands else "new" if self.landed_generation is None else "changed"
        says = "already published, nothing would change" if self.published else "would be published"
        if self.blocked:
            says = "would not be published"
        window = f"({show(self.applied_ts or 0)}, {show(self.resolved_ts)}]" if self.resolved_ts else "known once the hour is decoded"
        archived = f"{plural(self.objects, 'object')}, {plural(self.object_bytes, 'byte')}"
        return [
            f"{self.feed} {self.hour}: {says}",
            f"  land      {archived if self.source == 'archive' else 'live topics'}, {state}",
            f"  decode    {'would decode' if self.decodes else 'unchanged'}",
            f"  order     {f'blocked: {self.blocked}' if self.blocked else f'window {window}'}",
            *(f"  writes    {w}" for w in self.writes),
            *(f"  refused   if it has rows of that database: {t}" for t in self.taken),
        ]


def plan_hour(lake: Lake, hour: str, coming: Sequence[str] = ()) -> HourPlan:
    """Return what `run` would do for an hour. Lists the archive and the lake, reads documents, writes nothing.

    Args:
        lake: The feed's lake.
        hour: The hour, like 2026-01-05T10.
        coming: Hours that are run before it.

    Raises:
        ConfigError: BEFORE_FIRST_HOUR, NAMESPACE_CHANGED.
        TidelakeError: What `namespaces.refuse_taken` and `unusable.refuse_unusable` raise.
    """
    feed = lake.feed
    refuse_other_namespace(feed, lake.store, lake.catalog)
    cut = newest_cut(lake.catalog, lake.store, feed.name)
    known = opening(feed, cut)
    refuse_taken(lake.catalog, feed, known)
    published, blocked = _turn(lake, cut, hour, coming)
    manifest, record = newest(lake.store, feed.name, hour), read_record(lake.store, feed.name, hour)
    found: tuple[SourceObject, ...] = ()
    if feed.source.kind == "archive":
        listing = _listed(lake, hour)
        found = listing.objects
        blocked = blocked or (None if manifest or published else _unusable(feed, hour, listing))
    parts = [part for source in found for part in source.parts]
    same = manifest is not None and (
        feed.source.kind == "kafka" or {(s.key, s.size) for s in manifest.sources} == {(part.key, part.size) for part in parts}
    )
    decodes = (
        not same or record is None or manifest is None or (record.generation, record.decoder) != (manifest.generation, decoder_id(feed))
    )
    resolved = None
    if not decodes and not published and blocked is None and not coming:
        try:
            events = lake.catalog.load(events_table(feed.name))
            refuse_databases(lake.catalog, feed, databases_of(events, hour))
            resolved = progress(feed, lake.store, events, cut, hour).resolved_ts
        except OrderError as e:
            blocked = str(e)
    return HourPlan(
        feed=feed.name,
        hour=hour,
        published=published,
        source=feed.source.kind,
        objects=len(found),
        object_bytes=sum(part.size for part in parts),
        landed_generation=manifest.generation if manifest else None,
        lands=not same,
        decodes=decodes and not published,
        applied_ts=cut.resolved_ts if cut else 0,
        resolved_ts=resolved,
        blocked=blocked,
        writes=[] if published or blocked else _places(lake, hour),
        taken=[] if known.incarnations else taken_by_others(lake.catalog, feed),
    )


def _turn(lake: Lake, cut: Cut | None, hour: str, coming: Sequence[str]) -> tuple[bool, str | None]:
    """Return (whether the hour is published, the error of `run` if it would refuse the hour)."""
    try:
        refuse_out_of_turn(lake.feed, lake.catalog, lake.store, hour, coming)
        return is_published(lake.feed, lake.catalog, lake.store, cut, hour), None
    except OrderError as e:
        return False, str(e)


def archive_ends(lake: Lake, hours: Sequence[str]) -> bool:
    """Whether the archive has nothing of these hours and every hour of the feed has messages: the archive is not written so far yet."""
    feed = lake.feed
    return feed.source.kind == "archive" and feed.watermark.source == "messages" and not any(_listed(lake, h).objects for h in hours)


def _listed(lake: Lake, hour: str) -> Listing:
    source = lake.feed.source
    return lister(lake.feed, open_store(source.uri), lake.store, parse_hour(hour), layout_of(source.layout or ""))()


def _unusable(feed: Feed, hour: str, listing: Listing) -> str | None:
    """Return the error of `land` for an hour that is not landed, or None. Raises ConfigError as `land` does."""
    archive = open_store(feed.source.uri)
    refuse_unusable(feed, archive, layout_of(feed.source.layout or ""), listing)
    try:
        refuse_early(feed, archive, parse_hour(hour), datetime.now(UTC))
    except OrderError as e:
        return str(e)
    return None


def _places(lake: Lake, hour: str) -> list[str]:
    feed, uri = lake.feed, lake.store.uri_of
    topic = feed.topics[0] if feed.topic_pattern is None else "<topic>"
    return [
        uri(landed_folder(feed.name, topic, hour, 0).rpartition("partition=")[0]),
        uri(manifests(feed.name) + f"hour={hour}/"),
        f"table {events_table(feed.name)}, hour {hour}",
        f"tables {feed.namespace_of('<database>')}.* and their changelogs",
        uri(report_key(feed.name, hour)),
    ]
