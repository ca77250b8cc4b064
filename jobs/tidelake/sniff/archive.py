"""An archive below a URI: its content, recognised topic by topic, with one section per feed that is needed to land it.

Only what decodes is accepted: a layout is named if its reader read objects of every topic, a protocol if its decoder decoded their
messages.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import pyarrow as pa

from tidelake.archives import layout_of
from tidelake.config.lake_paths import SYSTEM
from tidelake.errors import StorageError
from tidelake.io.avro_schemas import schema_source
from tidelake.io.storage import ObjectInfo, Store, open_store
from tidelake.protocols import Context
from tidelake.sniff.absent import explained, nothing
from tidelake.sniff.containers import PLAIN_CSV
from tidelake.sniff.contents import MessageContents, contents
from tidelake.sniff.keys import TOMBSTONES, Named, named
from tidelake.sniff.objects import EMPTY, UNREAD, ReadObject
from tidelake.sniff.reading import LARGEST, ObjectChoice, chosen, read_all
from tidelake.sniff.roots import root_of, uri_of
from tidelake.sniff.sampling import MOST_OBJECTS, Sample, sample
from tidelake.sniff.sink import SinkFolder, is_sink_file, sinks_of
from tidelake.sniff.topics import Entry, Topic, topic_of
from tidelake.sniff.verdict import Guess, SniffVerdict, judge

MOST_MESSAGES = 4_000
MOST_OF_TOPIC = 200  # maximum messages of a topic if there are many topics
_IGNORED = re.compile(rf"(.*/)?(_SUCCESS|\..*|_temporary/.*|[^/]*\.crc|{SYSTEM}/.*)")
_ENDING = re.compile(r"(\.[A-Za-z]\w*)+$")

Progress = Callable[[str, int, int], None]  # (what, done, total; 0: unknown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Topics with the same base folder, form and protocol: what one feed.toml can land.

    Attributes:
        base: URI.
        template: How its keys are written, in the terms of source.template.
        form: The layout, or what else the objects are.
        layout: Name of the layout; None if Tidelake does not read it.
        why: Why there is no layout.
        verdict: Verdict on the messages.
        tombstones: Number of separate objects with deletes.
    """

    base: str
    template: str
    form: str
    layout: str | None
    why: str
    topics: tuple[Topic, ...]
    verdict: SniffVerdict
    contents: MessageContents
    tombstones: int
    tags: bool | None
    examples: tuple[str, ...]
    codecs: tuple[str, ...]
    entries: tuple[Entry, ...] = field(repr=False)

    @property
    def guess(self) -> Guess | None:
        """The protocol, if it is decided."""
        return self.verdict.guesses[0] if self.verdict.decided else None

    @property
    def recognised(self) -> bool:
        """Whether both layout and protocol are known."""
        return self.layout is not None and self.guess is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """Everything found.

    Attributes:
        listed: Number of listed objects.
        whole: All objects are listed.
        left_out: Number of folders that were not listed.
        unknown: Keys with names of no archive.
        ignored: Number of objects that are empty or belong to no data.
        schemas: Key of a file with Avro schemas, if there is one.
        checkpoints: Key of a file with recorded checkpoints, if there is one.
    """

    uri: str
    listed: int
    whole: bool
    left_out: int
    sections: tuple[Section, ...]
    sinks: tuple[SinkFolder, ...]
    unknown: tuple[str, ...]
    ignored: int
    schemas: str | None = None
    checkpoints: str | None = None


@dataclass(slots=True)
class _Stream:
    """Objects of one topic with the same kind of name."""

    entries: list[Entry]
    reads: list[ReadObject] = field(default_factory=list)
    joined: int = 0
    verdict: SniffVerdict | None = None

    @property
    def messages(self) -> list[pa.RecordBatch]:
        return [batch for r in self.reads for batch in r.messages]


def look(
    uri: str,
    context: Context,
    *,
    most: int = MOST_OBJECTS,
    messages: int = MOST_MESSAGES,
    said: str | None = None,
    progress: Progress | None = None,
) -> Archive:
    """Look at an archive and return what was found.

    Args:
        uri: Folder or s3:// prefix.
        context: Schemas for the decoders.
        most: Approximate maximum number of objects to list.
        messages: Maximum number of messages to judge in each section.
        said: Protocol to assume if none is certain or likely.
        progress: Called with (what, done, total).

    Raises:
        ConfigError: There is nothing below the URI.
        StorageError: The store cannot be read.
    """
    store = open_store(uri)
    try:
        seen = sample(store, most, progress)
    except StorageError as e:
        raise explained(e) from e
    if not seen.objects:
        raise nothing(store)
    root = root_of(store)
    named_ones, sink_files, unknown, ignored = _sorted_out(seen, root)
    entries, tombstones = _with_siblings(named_ones, unknown, root)
    schemas, checkpoints = (_taken(unknown, name) for name in ("avro_schemas.json", "checkpoints.json"))
    if schemas is not None and context.avro_schema is None:
        context = replace(context, avro_schema=schema_source(store.uri_of(schemas), Path("/")))
    streams = _read(store, entries, messages, progress)
    groups = _grouped(streams, context, said, progress)
    sections = [_section(store, group, tombstones, seen.whole, messages, context, said) for group in groups]
    sinks = sinks_of(store, sink_files, whole=seen.whole, context=context)
    unknown += [info.key for info in sink_files if not sinks]
    return Archive(
        uri=store.uri,
        listed=len(seen.objects),
        whole=seen.whole,
        left_out=seen.left_out,
        sections=tuple(sorted(sections, key=lambda s: (not s.recognised, s.base, s.form, s.topics[0].name))),
        sinks=sinks,
        unknown=tuple(sorted(unknown)),
        ignored=ignored,
        schemas=schemas,
        checkpoints=checkpoints,
    )


def _taken(unknown: list[str], name: str) -> str | None:
    """Remove and return the first unknown key that ends in this name."""
    found = next((key for key in sorted(unknown) if key.rpartition("/")[2] == name), None)
    if found is not None:
        unknown.remove(found)
    return found


def _sorted_out(seen: Sample, root: str) -> tuple[list[tuple[ObjectInfo, Named]], list[ObjectInfo], list[str], int]:
    """Return (named objects, files of a storage sink, unknown keys, number of ignored objects)."""
    found, sink, unknown, ignored = list[tuple[ObjectInfo, Named]](), list[ObjectInfo](), list[str](), 0
    for key, info in seen.objects.items():
        if is_sink_file(root + key):
            sink.append(info)
        elif not info.size or _IGNORED.fullmatch(key):
            ignored += 1
        elif (said := named(root + key)) is not None:
            found.append((info, said))
        else:
            unknown.append(key)
    return found, sink, unknown, ignored


def _with_siblings(
    found: Sequence[tuple[ObjectInfo, Named]], unknown: list[str], root: str
) -> tuple[list[Entry], Counter[tuple[str, str]]]:
    """Return (values with the objects beside them, number of tombstone objects by base and topic). Siblings without values are unknown."""
    tombstones = Counter((said.base, said.topic) for _, said in found if said.view == TOMBSTONES)
    values = {_ENDING.sub("", info.key): Entry(info.key, info, said, _below(root, info.key, said)) for info, said in found if not said.view}
    for info, said in found:
        if said.view and said.view != TOMBSTONES:
            beside = values.get(_ENDING.sub("", info.key))
            if beside is None:
                unknown.append(info.key)
            else:
                beside.siblings[said.view] = info
    return list(values.values()), tombstones


def _below(root: str, key: str, said: Named) -> str:
    return (root + key).removeprefix(said.base).lstrip("/")


def _read(store: Store, entries: Iterable[Entry], messages: int, progress: Progress | None) -> list[_Stream]:
    """Group the objects by place, kind of name and topic and read some of each. Objects of several forms are separate streams."""
    alike: dict[tuple[object, ...], list[Entry]] = defaultdict(list)
    for entry in entries:
        said = entry.said
        alike[said.base, said.template, said.extensions, said.topic].append(entry)
    choices = chosen(list(alike.values()))
    reading = None if progress is None else lambda done, total: progress("reading", done, total)
    streams = list[_Stream]()
    messages = min(messages, max(MOST_OF_TOPIC, 10 * messages // max(1, len(choices))))
    for several, choice, reads in zip(alike.values(), choices, read_all(store, choices, messages, reading), strict=True):
        streams += _by_form(several, choice, reads)
    return streams


def _by_form(entries: list[Entry], choice: ObjectChoice, reads: list[ReadObject]) -> list[_Stream]:
    forms = [form for form, _ in Counter(r.form for r in reads).most_common()] or [UNREAD]
    if forms != [EMPTY]:  # objects without records get the form of the topic's others
        forms = [form for form in forms if form != EMPTY]
    if len(forms) == 1:
        return [_Stream(entries, reads, choice.joined)]
    other = {r.source.key: r.form for r in reads if r.form not in (forms[0], EMPTY)}
    out = list[_Stream]()
    for form in forms:
        mine = [e for e in entries if other.get(e.key, forms[0]) == form]
        out.append(_Stream(mine, [r for r in reads if other.get(r.source.key, forms[0]) == form]))
    return out


def _grouped(streams: list[_Stream], context: Context, said: str | None, progress: Progress | None) -> list[list[_Stream]]:
    """Streams that one feed can land: with the same base, template, form and protocol."""
    groups: dict[tuple[str, str, str, str, bool], list[_Stream]] = defaultdict(list)
    for number, stream in enumerate(streams):
        if progress:
            progress("topics decoded", number, 0)
        stream.verdict = judge(stream.messages, context, said)
        name = stream.entries[0].said
        protocol = stream.verdict.guesses[0].protocol if stream.verdict.guesses else ""
        groups[name.base, name.template, _form(stream.reads), protocol, stream.verdict.decided].append(stream)
    return list(groups.values())


def _section(
    store: Store,
    streams: list[_Stream],
    tombstones: Counter[tuple[str, str]],
    whole: bool,
    messages: int,
    context: Context,
    said: str | None,
) -> Section:
    first = streams[0]
    name, reads = first.entries[0].said, list(chain.from_iterable(s.reads for s in streams))
    layout = next((r.layout for r in reads if r.layout), None)
    batches = [batch.slice(0, max(1, messages // len(reads))) for s in streams for batch in s.messages]
    verdict = first.verdict if len(streams) == 1 and first.verdict else judge(batches, context, said)
    from_names = layout is not None and layout_of(layout).number_is_first_offset
    return Section(
        base=uri_of(store, name.base),
        template=name.template,
        form=_form(reads),
        layout=layout,
        why="" if layout else _why(reads),
        topics=tuple(_topic(s, from_names, whole) for s in sorted(streams, key=lambda s: s.entries[0].said.topic)),
        verdict=verdict,
        contents=contents(batches, verdict.guesses[0] if verdict.decided else None, context),
        tombstones=sum(tombstones[name.base, s.entries[0].said.topic] for s in streams),
        tags=_tagged(store, first.entries[-1].key) if from_names else None,
        examples=tuple(r.source.key for r in reads if r.layout == layout)[:3],
        codecs=tuple(sorted({codec for s in streams for e in s.entries for codec in e.said.codecs})),
        entries=tuple(chain.from_iterable(s.entries for s in streams)),
    )


def _form(reads: Sequence[ReadObject]) -> str:
    """The form of the objects, judging by those with records."""
    return next((r.form for r in reads if r.form != EMPTY), EMPTY if reads else UNREAD)


def _topic(stream: _Stream, from_names: bool, whole: bool) -> Topic:
    name = stream.entries[0].said.topic
    return topic_of(name, stream.entries, stream.reads, stream.reads[: stream.joined], from_names, whole)


def _why(reads: Sequence[ReadObject]) -> str:
    if _form(reads) == EMPTY:
        return "they hold no record yet"
    if _form(reads) == PLAIN_CSV:
        return "their values are not base64, and nothing else marks the end of a value"
    if any(len(r.offsets) for r in reads):
        return "they hold values only, without keys, offsets and timestamps"
    return next((r.problem for r in reads if r.problem), f"none was read, as each is larger than {LARGEST >> 20} MB")


def _tagged(store: Store, key: str) -> bool | None:
    """Whether the object has the tags that prove its offsets; None if tags cannot be read."""
    try:
        return {"startOffset", "endOffset", "recordCount"} <= store.tags(key).keys()
    except StorageError:
        return None
