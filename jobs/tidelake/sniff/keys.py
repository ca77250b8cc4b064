"""The parts of an object's key: base folder, name template, topic, partition, number and hour.

    <base>/<topic>/dt=2026-01-05/hr=10/<topic>+<partition>+<number>.jsonl.gz     the hour in any usual form, before or after the topic
    <base>/2026/01/05/10/<topic>/<partition>/<anything>.json                     … partition as a folder, with `partition=` or without
    <base>/<topic>/partition=<n>/<topic>+<n>+<number>.json                       no hour: Confluent's DefaultPartitioner, Aiven's default
    <base>/<topic>/tombstone/<topic>+<partition>+<number>.keys.json              Confluent's behavior.on.null.values=write

Keys are read from the root of the bucket or file system. So the URI to sniff can end above the archive, at it, or inside it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from tidelake.archives.readers.codecs import EXTENSIONS as CODECS

KEYS, HEADERS, TOMBSTONES = "keys", "headers", "tombstones"

_HOUR = re.compile(  # there are no digits between the numbers: `-`, `/`, `/month=`, `T`
    r"(?<!\d)(?P<yyyy>20\d\d)\D{0,9}?(?P<MM>0[1-9]|1[0-2])\D{0,9}?(?P<dd>0[1-9]|[12]\d|3[01])\D{0,9}?(?P<HH>[01]\d|2[0-3])(?!\d)"
)
_NAMED = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]+)(?P<joint>[+_-])(?P<partition>\d{1,6})(?P=joint)(?P<start_offset>\d{1,20})(?P<any>-\d+-[0-9a-f]+)?"
)
_SECOR = re.compile(r"(?P<any>\d+)_(?P<partition>\d{1,6})_(?P<start_offset>\d{1,20})")
_SHORT = re.compile(r"(?P<partition>\d{1,6})[+_-](?P<start_offset>\d{1,20})")
_LENSES = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)\((?P<partition>\d{1,6})_(?P<any>\d+)\)")
_COUNTED = re.compile(r"(?P<start_offset>\d{1,20})(?P<any>-.+)?")
_WHOLE = re.compile(r"(?P<any>.+)")
_PARTITION = re.compile(r"(?:partition=)?\d{1,6}")
_MINUTE = re.compile(r"(?:min(?:ute)?=)?[0-5]\d")
_ENDING = re.compile(r"(?:\.[A-Za-z]\w*)*$")
_FOLDER = re.compile(r"[A-Za-z0-9._-]+")  # a possible topic
_TOMBSTONE = "/tombstone/"
_LARGEST = 1 << 62  # maximum number: records are counted from it

HourSpan = tuple[int, int, str]  # (from, to, field)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The parts of a key.

    Attributes:
        base: The part of the key that source.uri ends with.
        template: Template of the rest without extensions, in the terms of source.template; without {yyyy} … {HH} if the key has no hour.
        number: The offset; None if there is none.
        view: `keys`, `headers` or `tombstones` for objects beside the values, else empty.
        extensions: In lower case, without codecs.
        codecs: Compression extensions.
    """

    base: str
    template: str
    topic: str
    partition: int
    number: int | None
    hour: datetime | None
    view: str
    extensions: tuple[str, ...]
    codecs: tuple[str, ...]


def named(key: str) -> Named | None:
    """Return the parts of the key; None if it is not a name of a Kafka archive. key: from the root of the bucket or file system."""
    folder, _, name = key.rpartition("/")
    ending = _ENDING.search(name)[0]  # type: ignore[index]  # it may be empty, but it is there
    stem, words = key[: len(key) - len(ending)], ending.lower().split(".")[1:]
    view = next((word for word in words if word in (KEYS, HEADERS)), "")
    if _TOMBSTONE in f"{folder}/":
        stem, view = stem.replace(_TOMBSTONE, "/", 1), TOMBSTONES
    found = _hours_in(stem)
    if found is None:
        return None
    spans, fields = found
    start = min((at for at, _, field in spans if field in ("topic", "yyyy") and "/" in stem[at:]), default=stem.rfind("/") + 1)
    start = stem.rfind("/", 0, start) + 1
    number = fields.get("start_offset")
    return Named(
        base=stem[:start].rstrip("/"),
        template=_written(stem, start, spans),
        topic=fields["topic"],
        partition=int(fields["partition"]),
        number=None if number is None or int(number) > _LARGEST else int(number),
        hour=_hour(fields),
        view=view,
        extensions=tuple(word for word in words if word not in CODECS and word not in (KEYS, HEADERS)),
        codecs=tuple(word for word in words if word in CODECS),
    )


def _hours_in(stem: str) -> tuple[list[HourSpan], dict[str, str]] | None:
    """Positions and texts of the fields in a key without its ending. Topic and partition must be among them."""
    at = stem.rfind("/") + 1
    moment = _moment(stem, at)
    spans = [(moment.start(f), moment.end(f), f) for f in ("yyyy", "MM", "dd", "HH")] if moment else []
    behind = spans[-1][1] if spans else 0
    folders = [s for s in _segments(stem, at) if not (moment and s[0] < moment.end() and s[1] > moment.start())]
    place = next((s for s in folders[-1:] if s[0] >= behind and _PARTITION.fullmatch(stem[s[0] : s[1]])), None)
    name = _name(stem[at:], {stem[a:b] for a, b in folders}, place is not None)
    if name is None:
        return None
    spans += [(at + name.start(f), at + name.end(f), f) for f, text in name.groupdict().items() if text is not None and f != "joint"]
    number = stem[place[0] : place[1]].rpartition("=")[2] if place else ""
    if place and name.groupdict().get("partition", number) == number:
        spans.append((stem.rfind("=", *place) + 1 or place[0], place[1], "partition"))
    minutes = (m for m in folders if m[0] == behind + 1 and m != place and _MINUTE.fullmatch(stem[m[0] : m[1]]))
    spans += [(stem.rfind("=", *m) + 1 or m[0], m[1], "minute") for m in minutes]
    topic = name.groupdict().get("topic") or _topic(
        stem, [s for s in folders if s != place and not _MINUTE.fullmatch(stem[s[0] : s[1]])], behind
    )
    spans += [(a, b, "topic") for a, b in folders[::-1] if stem[a:b] == topic][:1]
    fields = {field: stem[a:b] for a, b, field in spans}
    return (spans, fields) if {"topic", "partition"} <= fields.keys() else None


def _moment(stem: str, at: int) -> re.Match[str] | None:
    """The hour, in the folders or else in the name; the last match that is a time."""
    for end in (at, len(stem)):
        matches = [m for m in _HOUR.finditer(stem, 0, end) if _hour(m.groupdict())]
        if matches:
            return matches[-1]
    return None


def _segments(stem: str, end: int) -> list[tuple[int, int]]:
    """Start and end of each folder in a key."""
    return [(m.start(), m.end()) for m in re.finditer(r"[^/]+", stem[:end])]


def _name(name: str, folders: set[str], partitioned: bool) -> re.Match[str] | None:
    """Match a name with those that connectors write. partitioned: its folder is the number of a partition."""
    full = _NAMED.fullmatch(name)
    if full and (full["topic"] in folders or (full["joint"] == "+") or not (full["topic"].isdigit() or partitioned)):
        return full
    forms = (_LENSES, _COUNTED, _WHOLE) if partitioned else (_LENSES, _SECOR, _SHORT)
    return next((found for form in forms if (found := form.fullmatch(name))), None)


def _topic(stem: str, folders: list[tuple[int, int]], behind: int) -> str:
    """The folder that must be the topic if the name has none: the last one after the hour, else the last before it."""
    after = [stem[a:b] for a, b in folders if a >= behind and behind]
    before = [stem[a:b] for a, b in folders]
    chosen = (after or before)[-1:]
    return chosen[0] if chosen and _FOLDER.fullmatch(chosen[0]) else ""


def _written(stem: str, start: int, spans: list[HourSpan]) -> str:
    """The key from `start` on, with field names in place of their texts."""
    parts, at = list[str](), start
    for a, b, field in sorted(set(spans)):
        if a >= at:
            any_ = field in ("any", "minute")
            text = stem[a:b]
            parts += [stem[at:a], text[0] if any_ and text[:1] == "-" else "", "{any}" if any_ else f"{{{field}}}"]
            at = b
    return "".join(parts) + stem[at:]


def _hour(fields: dict[str, str]) -> datetime | None:
    try:
        year, month, day, hour = (int(fields[name]) for name in ("yyyy", "MM", "dd", "HH"))
        return datetime(year, month, day, hour, tzinfo=UTC)
    except (KeyError, ValueError):
        return None
