"""Find offsets that an hour lacks in the hours after it. Flush windows or the sink's clock put objects into a later hour's folder.

The manifest of a landed hour gives its offsets for certain. Of objects that are not landed only the names are known, which contain the
first offset in most layouts. Findings report these as expected; landing their hour confirms them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from tidelake.archives import Layout, SourceObject, list_hour, numbered
from tidelake.config.feed import Feed
from tidelake.errors import TopicPartition
from tidelake.io.storage import Store
from tidelake.land.closing import LOOK_AHEAD
from tidelake.land.store.manifest import Manifest, PartitionFacts, all_newest
from tidelake.land.store.ranges import Ranges, common, minus
from tidelake.tso import format_hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """Offsets that are in a later hour (`2026-01-05T11`). keys: the objects whose names show it; empty if that hour is landed with them."""

    hour: str
    ranges: Ranges
    keys: tuple[str, ...] = ()


class OffsetsAhead:
    """The hours after an hour. They are listed on demand, each topic's hour once."""

    def __init__(self, feed: Feed, archive: Store, lake: Store, layout: Layout, hour: datetime, now: datetime) -> None:
        self._feed, self._archive, self._lake, self._layout = feed, archive, lake, layout
        later = [hour + timedelta(hours=n) for n in range(1, LOOK_AHEAD + 1)]
        self._hours = [moment for moment in later if moment <= now]
        self._listed: dict[tuple[str, datetime], list[SourceObject]] = {}

    def find(self, place: TopicPartition, lacking: Ranges) -> Iterator[Elsewhere]:
        """Yield the later hours that hold offsets of a partition, until all of `lacking` is found."""
        for moment in self._hours:
            if not lacking:
                return
            facts = self._facts(moment, place)
            if facts is not None and (there := common(lacking, facts.covered)):
                yield Elsewhere(hour=format_hour(moment), ranges=there)
                lacking = minus(lacking, there)
            for found in self._promised(moment, place, lacking):
                yield found
                lacking = minus(lacking, found.ranges)

    def goes_on(self, place: TopicPartition, offset: int) -> Elsewhere | None:
        """Return the first later hour with anything of a partition if it begins with this offset, so that no offset is lost; else None."""
        for moment in self._hours:
            facts, named = self._facts(moment, place), self._named(moment, place)
            landed = facts.covered[0] if facts is not None and facts.covered else None
            firsts = ([landed[0]] if landed else []) + ([] if self._layout.number_is_last_offset else [source.number for source in named])
            if firsts:
                keys = () if landed and landed[0] == min(firsts) else (named[0].key,)
                return Elsewhere(hour=format_hour(moment), ranges=((offset, offset),), keys=keys) if min(firsts) == offset else None
        return None

    @cached_property
    def _manifests(self) -> Mapping[str, Manifest]:
        return all_newest(self._lake, self._feed.name, since=format_hour(self._hours[0]), until=format_hour(self._hours[-1]))

    def _facts(self, moment: datetime, place: TopicPartition) -> PartitionFacts | None:
        manifest = self._manifests.get(format_hour(moment))
        return manifest.partitions.get(place[0], {}).get(place[1]) if manifest else None

    def _promised(self, moment: datetime, place: TopicPartition, lacking: Ranges) -> Iterator[Elsewhere]:
        """Yield what the names of unlanded objects show for each gap: an object that begins inside it holds the rest of it."""
        for first, last in lacking:
            inside = [source for source in self._named(moment, place) if first <= source.number <= last]
            if inside:
                there = (first, inside[-1].number) if self._layout.number_is_last_offset else (inside[0].number, last)
                yield Elsewhere(hour=format_hour(moment), ranges=(there,), keys=tuple(source.key for source in inside))

    def _named(self, moment: datetime, place: TopicPartition) -> Sequence[SourceObject]:
        """Return the partition's unlanded objects of an hour, sorted by the numbers in their names."""
        if not numbered(self._feed):
            return ()
        topic, number = place
        if (topic, moment) not in self._listed:
            manifest = self._manifests.get(format_hour(moment))
            known = {source.key for source in manifest.sources} if manifest else set()
            objects = list_hour(self._feed, self._archive, topic, moment, self._layout).objects
            self._listed[topic, moment] = [source for source in objects if source.key not in known]
        of_place = (source for source in self._listed[topic, moment] if source.partition == number)
        return sorted(of_place, key=lambda source: (source.number, source.key))


def ahead_of(feed: Feed, archive: Store, lake: Store, layout: Layout, hour: datetime, now: datetime) -> OffsetsAhead | None:
    """Return the later hours to search, None if hours are not folders: for a storage sink, and for hours by timestamps of messages."""
    by_folder = feed.source.hours == "path" and not layout.file_bits
    return OffsetsAhead(feed, archive, lake, layout, hour, now) if by_folder else None
