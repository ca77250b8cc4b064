"""Find the objects of an hour and read their names (docs/reference/archives.md 1, 2, 9).

Without `source.template` the usual folders below `source.uri` are listed:

    <topic>/dt=YYYY-MM-DD/hr=HH/<topic>+<partition>+<number>.<ext>         Aiven's connector as most people configure it
    <topic>/year=YYYY/month=MM/day=DD/hour=HH/<topic>+<partition>+<number>.<ext>      Confluent, MSK Data Delivery

The hours are UTC. `-` may replace `+`, and MSK's suffix `-<seq>-<hex>` may follow the number. A layout may define other places.
Other archives need a template: the path below source.uri with {topic} {partition} {yyyy} {MM} {dd} {HH} {start_offset}. The hour's four
fields must come before the others, so that an hour can be listed without listing the archive. With `hours = "timestamps"` paths have no
hour:

    <topic>/partition=N/<topic>+<partition>+<number>.<ext>      Confluent's DefaultPartitioner
    <topic>-<partition>-<number>.<ext>                          Aiven's default

and a template has no field of time ({any} matches dates). {any} matches any text without `/`. {start_offset} may be missing if offsets are
in the records, extensions may be left out. Aiven's notation is accepted, too.

    template = "{topic}/{yyyy}/{MM}/{dd}/{HH}/{topic}-{partition}-{start_offset}.gz"
    template = "{{topic}}/dt={{timestamp:unit=yyyy}}-{{timestamp:unit=MM}}-{{timestamp:unit=dd}}/{{timestamp:unit=HH}}-{{partition}}"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from tidelake.archives.readers.codecs import EXTENSIONS as CODEC_EXTENSIONS
from tidelake.archives.readers.layout import Layout, Listing, Sibling, SourceObject
from tidelake.config.feed import Feed
from tidelake.errors import ConfigError
from tidelake.io.storage import ObjectInfo, Store

_FOLDERS = ("{topic}/dt={yyyy}-{MM}-{dd}/hr={HH}/", "{topic}/year={yyyy}/month={MM}/day={dd}/hour={HH}/")
TIMELESS = ("{topic}/partition={partition}/{topic}+{partition}+{start_offset}", "{topic}-{partition}-{start_offset}")
_NAME = r"(?P<joint>[+-])(?P<partition>\d+)(?P=joint)(?P<start_offset>\d+)(?:-\d+-[0-9a-f]+)?"
_EXTENSIONS = r"(?P<extensions>(?:\.\w+)*)"
_FIELD = re.compile(r"\{(\w*)\}")
_ENDING = re.compile(r"(\.\w+)+$")
_SIBLING = re.compile(r"(?P<base>.+)\.(?P<view>keys|headers)(\.(json|avro|bin))?(\.\w+)?")
_HOUR_FIELDS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H"}
_NUMBERS = ("partition", "start_offset")
_ANY = "any"
_AIVEN_FIELD = re.compile(r"\{\{\s*(\w+)(?:\s*:\s*(?:unit\s*=\s*(\w+)|padding\s*=\s*\w+))?\s*\}\}")
_IGNORED = re.compile(r"(.*/)?(_SUCCESS|metadata|\..*|_temporary/.*|[^/]*\.(crc|index))")


def topics_of(feed: Feed, store: Store) -> list[str]:
    """Return the feed's topics: the configured names, or the archive's topic folders that match its pattern, sorted."""
    pattern = feed.topic_pattern
    if pattern is None:
        return list(feed.topics)
    folder, found, rest = (_template(feed) or (_FOLDERS if _has_hours(feed) else TIMELESS)[0]).partition("{topic}")
    if not found or "{" in folder or (folder and not folder.endswith("/")) or not rest.startswith("/"):
        raise _wrong_template(feed, "a pattern of topics needs {topic} as a folder of its own with nothing variable before it")
    return [name for name in store.folders(folder) if pattern.fullmatch(name) and name not in (".", "..")]


def list_hour(feed: Feed, store: Store, topic: str, hour: datetime, layout: Layout) -> Listing:
    """Return the objects of one topic and hour. Empty files, and files that archives have beside their data, are skipped."""
    return _listed(store, topic, _places(feed, topic, hour, layout), layout)


def list_all(feed: Feed, store: Store, topic: str, layout: Layout) -> Listing:
    """Return all objects of one topic, for an archive whose paths have no hour. Unknown files are listed only if the topic has a folder."""
    return _listed(store, topic, _timeless_places(feed, topic, layout), layout)


def numbered(feed: Feed) -> bool:
    """Return whether the names of objects contain an offset."""
    return feed.source.template is None or "start_offset" in feed.source.template


def _listed(store: Store, topic: str, places: Iterator[tuple[str, re.Pattern[str]]], layout: Layout) -> Listing:
    objects, unknown, newest = list[SourceObject](), list[ObjectInfo](), 0
    for prefix, names in places:
        found = [info for info in store.objects(prefix) if info.size and not _IGNORED.fullmatch(info.key, len(prefix))]
        newest = max([newest, *(info.modified_ms for info in found)])
        siblings = _siblings(found) if layout.has_siblings else {}
        for info in found:
            if (source := _source(info, topic, names, layout)) is not None:
                beside = siblings.pop(_base(info.key), [])
                objects.append(replace(source, siblings=tuple(sorted(beside))))
            elif prefix.endswith("/") and (not layout.has_siblings or _SIBLING.fullmatch(info.key) is None):
                unknown.append(info)
        unknown += [ObjectInfo(s.key, s.size, s.etag) for several in siblings.values() for s in several]
    return Listing(objects=tuple(sorted(objects)), unknown=tuple(sorted(unknown)), newest_ms=newest)


def all_have_keys(keys: list[str]) -> bool:
    """Return whether every object among these keys, which include siblings, has its Kafka keys beside it."""
    views = {(found["base"], found["view"]) for key in keys if (found := _SIBLING.fullmatch(key))}
    return all((_base(key), "keys") in views for key in keys if not _SIBLING.fullmatch(key))


def _siblings(found: list[ObjectInfo]) -> dict[str, list[Sibling]]:
    """Return the objects with keys and headers, by the name (without extensions) of the object that they belong to."""
    out: dict[str, list[Sibling]] = {}
    for info in found:
        if name := _SIBLING.fullmatch(info.key):
            out.setdefault(name["base"], []).append(Sibling(name["view"], info.key, info.size, info.etag))
    return out


def _base(key: str) -> str:
    """Return a key without its extensions."""
    return _ENDING.sub("", key, count=1)


def _source(info: ObjectInfo, topic: str, names: re.Pattern[str], layout: Layout) -> SourceObject | None:
    """Return the object if its name matches the layout, else None."""
    found = names.fullmatch(info.key)
    if not found or not set(found["extensions"].lower().split(".")[1:]) <= layout.extensions | CODEC_EXTENSIONS:
        return None
    number = found.groupdict().get("start_offset") or "0"
    return SourceObject(topic, int(found["partition"]), info.key, int(number), info.size, info.etag, modified_ms=info.modified_ms)


def _places(feed: Feed, topic: str, hour: datetime, layout: Layout) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the prefixes to list, and the patterns of the keys of data objects below them."""
    moment = hour.astimezone(UTC)
    known = {"topic": topic} | {name: moment.strftime(code) for name, code in _HOUR_FIELDS.items()}
    template = _template_for(feed, layout)
    templates = layout.templates if template is None else (template,)
    for form in templates or _FOLDERS:
        filled = _FIELD.sub(lambda field: known.get(field[1], field[0]), form)
        prefix = filled.partition("{")[0]
        name = _pattern(filled.removeprefix(prefix)) if templates else re.escape(topic) + _NAME
        yield prefix, re.compile(re.escape(prefix) + name + _EXTENSIONS)


def _timeless_places(feed: Feed, topic: str, layout: Layout) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the prefixes and patterns for an archive whose paths have no hour."""
    template = _template_for(feed, layout)
    if template is None and layout.templates:
        raise _wrong_template(
            feed, f'layout {feed.source.layout!r} has hours in its default paths; with hours = "timestamps" a template is required'
        )
    for form in TIMELESS if template is None else (template,):
        filled = form.replace("{topic}", topic)
        prefix = filled.partition("{")[0]
        yield prefix, re.compile(re.escape(prefix) + _pattern(filled.removeprefix(prefix)) + _EXTENSIONS)


def _pattern(rest: str) -> str:
    """Return the part of a template after the hour's prefix, as a regular expression."""
    parts, seen = list[str](), set[str]()
    for i, part in enumerate(_FIELD.split(rest)):
        if i % 2 == 0:
            parts.append(re.escape(part))
        elif part == _ANY:
            parts.append("[^/]*?")
        else:
            parts.append(f"(?P={part})" if part in seen else f"(?P<{part}>\\d+)")
            seen.add(part)
    return "".join(parts)


def _has_hours(feed: Feed) -> bool:
    return feed.source.hours == "path"


def _template_for(feed: Feed, layout: Layout) -> str | None:
    template = _template(feed)
    if template is not None and layout.number_is_first_offset and "{start_offset}" not in template:
        raise _wrong_template(feed, f"layout {feed.source.layout!r} takes offsets from names, so {{start_offset}} must be in it")
    return template


def _template(feed: Feed) -> str | None:
    """Return source.template in Tidelake's notation, checked. Raises ConfigError."""
    template = feed.source.template
    if template is None:
        return None
    template = _AIVEN_FIELD.sub(lambda field: "{" + (field[2] or field[1]) + "}", template)
    fields = _FIELD.findall(template)
    needed = {"topic", "partition"} | (set(_HOUR_FIELDS) if _has_hours(feed) else set())
    if "key" in fields:
        raise _wrong_template(feed, "an archive with {key} in its names keeps the last record of every key only")
    if _has_hours(feed) and "HH" not in fields:
        raise _wrong_template(feed, 'it has no hour; if the paths have none, set hours = "timestamps" and write {any} for dates')
    if not needed <= set(fields) <= needed | {"start_offset", _ANY}:
        raise _wrong_template(
            feed, f"its fields are {sorted(set(fields))}, they must be {sorted(needed)}, and may be {_ANY} and start_offset"
        )
    if not _has_hours(feed):
        return template
    if max(fields.index(name) for name in _HOUR_FIELDS) > min(fields.index(name) for name in (*_NUMBERS, _ANY) if name in fields):
        raise _wrong_template(
            feed, "{partition}, {start_offset} or {any} comes before the hour, so every hour would list the whole archive"
        )
    return template


def _wrong_template(feed: Feed, problem: str) -> ConfigError:
    return ConfigError(
        f"{feed.folder / 'feed.toml'}: source.template: {problem}",
        remedy='write it like "{topic}/dt={yyyy}-{MM}-{dd}/hr={HH}/{topic}+{partition}+{start_offset}.jsonl.gz"',
    )
