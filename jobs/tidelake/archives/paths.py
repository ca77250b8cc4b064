"""Which objects belong to an hour, and what their names say (archives.md 1, 2, 9).

Without `source.template` the usual folders below `source.uri` are looked at:

    <topic>/dt=YYYY-MM-DD/hr=HH/<topic>+<partition>+<number>.<ext>         Aiven's connector as most people configure it
    <topic>/year=YYYY/month=MM/day=DD/hour=HH/<topic>+<partition>+<number>.<ext>      Confluent, MSK Data Delivery

The hours are UTC. `-` may stand for `+`, and MSK's suffix `-<seq>-<hex>` may follow the number. Anything else needs a template, the
path below source.uri with {topic} {partition} {yyyy} {MM} {dd} {HH} {start_offset}; the hour's four fields stand before {partition} and
{start_offset}, so that an hour can be listed without listing the archive. Extensions may be left out of it.

    template = "{topic}/{yyyy}/{MM}/{dd}/{HH}/{topic}-{partition}-{start_offset}.gz"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from tidelake.archives.codecs import EXTENSIONS as CODEC_EXTENSIONS
from tidelake.archives.shape import Layout, Listing, SourceObject
from tidelake.errors import ConfigError
from tidelake.feed import Feed
from tidelake.storage import ObjectInfo, Store

_FOLDERS = ("{topic}/dt={yyyy}-{MM}-{dd}/hr={HH}/", "{topic}/year={yyyy}/month={MM}/day={dd}/hour={HH}/")
_NAME = r"(?P<joint>[+-])(?P<partition>\d+)(?P=joint)(?P<start_offset>\d+)(?:-\d+-[0-9a-f]+)?"
_EXTENSIONS = r"(?P<extensions>(?:\.\w+)*)"
_FIELD = re.compile(r"\{(\w*)\}")
_HOUR_FIELDS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H"}
_NUMBERS = ("partition", "start_offset")
_IGNORED = re.compile(r"(.*/)?(_SUCCESS|metadata|\..*|_temporary/.*|[^/]*\.(crc|index))")


def topics_of(feed: Feed, store: Store) -> list[str]:
    """The feed's topics: the names it gives, or the topic folders of the archive that fit its pattern, sorted."""
    pattern = feed.topic_pattern
    if pattern is None:
        return list(feed.topics)
    folder, found, rest = (_template(feed) or _FOLDERS[0]).partition("{topic}")
    if not found or "{" in folder or (folder and not folder.endswith("/")) or not rest.startswith("/"):
        raise _wrong_template(feed, "a pattern of topics needs {topic} as a folder of its own with nothing variable before it")
    return [name for name in store.folders(folder) if pattern.fullmatch(name)]


def list_hour(feed: Feed, store: Store, topic: str, hour: datetime, layout: Layout) -> Listing:
    """The objects of one topic and hour. Empty files, and those that every archive has beside its data, are passed over."""
    objects, unknown = list[SourceObject](), list[ObjectInfo]()
    for prefix, names in _places(feed, topic, hour):
        for info in store.objects(prefix):
            if not info.size or _IGNORED.fullmatch(info.key, len(prefix)):
                continue
            source = _source(info, topic, names, layout)
            if source is None:
                unknown.append(info)
            else:
                objects.append(source)
    return Listing(objects=tuple(sorted(objects)), unknown=tuple(sorted(unknown)))


def _source(info: ObjectInfo, topic: str, names: re.Pattern[str], layout: Layout) -> SourceObject | None:
    """The object if its name is one of the layout's."""
    found = names.fullmatch(info.key)
    if not found or not set(found["extensions"].lower().split(".")[1:]) <= layout.extensions | CODEC_EXTENSIONS:
        return None
    return SourceObject(topic, int(found["partition"]), info.key, int(found["start_offset"]), info.size, info.etag)


def _places(feed: Feed, topic: str, hour: datetime) -> Iterator[tuple[str, re.Pattern[str]]]:
    """The prefixes to list, and what the keys of data objects below them look like."""
    moment = hour.astimezone(UTC)
    known = {"topic": topic} | {name: moment.strftime(code) for name, code in _HOUR_FIELDS.items()}
    template = _template(feed)
    for form in _FOLDERS if template is None else (template,):
        filled = _FIELD.sub(lambda field: known.get(field[1], field[0]), form)
        prefix = filled.partition("{")[0]
        name = re.escape(topic) + _NAME if template is None else _pattern(filled.removeprefix(prefix))
        yield prefix, re.compile(re.escape(prefix) + name + _EXTENSIONS)


def _pattern(rest: str) -> str:
    """The part of a template after the hour's prefix, as a regular expression."""
    parts, seen = list[str](), set[str]()
    for i, part in enumerate(_FIELD.split(rest)):
        if i % 2 == 0:
            parts.append(re.escape(part))
        else:
            parts.append(f"(?P={part})" if part in seen else f"(?P<{part}>\\d+)")
            seen.add(part)
    return "".join(parts)


def _template(feed: Feed) -> str | None:
    """source.template, checked. Raises ConfigError."""
    template = feed.source.template
    if template is None:
        return None
    fields = _FIELD.findall(template)
    expected = {"topic", *_HOUR_FIELDS, *_NUMBERS}
    if set(fields) != expected:
        raise _wrong_template(feed, f"its fields are {sorted(set(fields))}, they must be {sorted(expected)}")
    if max(fields.index(name) for name in _HOUR_FIELDS) > min(fields.index(name) for name in _NUMBERS):
        raise _wrong_template(feed, "{partition} or {start_offset} stands before the hour, so the whole archive would be listed every hour")
    return template


def _wrong_template(feed: Feed, problem: str) -> ConfigError:
    return ConfigError(
        f"{feed.folder / 'feed.toml'}: source.template: {problem}",
        remedy='write it like "{topic}/dt={yyyy}-{MM}-{dd}/hr={HH}/{topic}+{partition}+{start_offset}.jsonl.gz"',
    )
