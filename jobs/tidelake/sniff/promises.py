"""Guarantees of an archive's layout for Kafka's messages, and what prevents landing.

A guarantee is kept, lost or unsure. For a lost one there is the connector setting that fixes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tidelake.archives import KEYED_PROTOCOLS, Layout, layout_of
from tidelake.config.feed import EXTENDED, UNDATED
from tidelake.io.texts import plural
from tidelake.sniff.archive import Section
from tidelake.sniff.containers import PLAIN_CSV
from tidelake.sniff.objects import EMPTY
from tidelake.sniff.topics import spelled

KEPT, LOST, UNSURE = "kept", "lost", "unsure"
_WRITES_NULLS = "avro"

_BYTES = "value.converter = org.apache.kafka.connect.converters.ByteArrayConverter, and the layout for it in feed.toml"
_FIELDS = "format.output.fields = key,value,offset,timestamp,headers"
_MEND = {  # connector settings by family of layouts
    "aiven": {
        "NOT_BINARY_SAFE": f"{_BYTES} (aiven-jsonl)",
        "REORDERED_JSON": f"{_BYTES} (aiven-jsonl)",
        "LOSSY_LAYOUT": f"format.output.type = jsonl with ByteArrayConverter and {_FIELDS}",
    },
    "confluent": {
        "KEYS_LOST": "store.kafka.keys = true (it fails on null keys)",
        "TOMBSTONES_LOST": "no setting of this connector keeps them in their place: archive with Aiven's connector",
        "NOT_BINARY_SAFE": f"format.class = …json.JsonFormat and {_BYTES} (confluent-json)",
        "REORDERED_JSON": f"{_BYTES} (confluent-json)",
        "LOSSY_LAYOUT": "store.kafka.headers = true keeps headers; timestamps need a layout that holds them, such as aiven-parquet",
        "NO_OFFSETS": "s3.object.tagging = true, and `tags = true` under [source]",
        "HOUR": "partitioner.class = …TimeBasedPartitioner, path.format = 'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH, "
        "partition.duration.ms = 3600000, timestamp.extractor = Record, timezone = UTC",
    },
    "lenses": {
        "LOSSY_LAYOUT": "STOREAS AVRO or PARQUET with store.envelope = true keeps headers that are maps",
        "HOUR": "PARTITIONBY _date.uuuu, _date.LL, _date.dd, _date.hh, _topic, _partition",
    },
}
_MEND["aiven"]["HOUR"] = (
    "file.name.template = {{topic}}/dt={{timestamp:unit=yyyy}}-{{timestamp:unit=MM}}-{{timestamp:unit=dd}}/hr={{timestamp:unit=HH}}/"
    "{{topic}}+{{partition}}+{{start_offset:padding=true}}, file.name.timestamp.source = event, file.name.timestamp.timezone = UTC"
)
_OF_FORM = {  # forms without readable messages → what to do
    PLAIN_CSV: "set format.output.fields.value.encoding = base64 in the connector; what it writes then is layout aiven-csv",
    EMPTY: "run again when the archiver has written messages",
}
_DATE = re.compile(r"20\d\d\D?(0[1-9]|1[0-2])")  # a date in a template: its objects are of a single day
_ELSE = "prefer aiven-parquet or aiven-jsonl with all five fields"


@dataclass(frozen=True, slots=True)
class Promise:
    """State of one property of Kafka's messages in the archive. state: KEPT, LOST or UNSURE; mend: empty if there is nothing to fix."""

    what: str
    state: str
    says: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Blocker:
    """Why no feed can land this, and what to do."""

    says: str
    mend: str


def promises(section: Section) -> list[Promise]:
    """Return one entry for every property of a message; empty for objects without a layout."""
    if section.layout is None:
        return []
    return list(_promises(section, layout_of(section.layout)))


def _promises(section: Section, layout: Layout) -> Iterator[Promise]:
    yield from _keys(section, layout)
    yield from _offsets(section, layout)
    yield from _nulls(section, layout)
    unsafe = [code for code in ("NOT_BINARY_SAFE", "REORDERED_JSON") if code in layout.losses]
    for code in unsafe:
        yield Promise("bytes", LOST, layout.losses[code], mend(section, code))
    if not unsafe:
        yield Promise("bytes", KEPT, "values are kept byte for byte")
    if "LOSSY_LAYOUT" in layout.losses:
        yield Promise("the rest", LOST, layout.losses["LOSSY_LAYOUT"], mend(section, "LOSSY_LAYOUT"))
    for what in ("headers", "timestamps"):
        if bare := lacking(section, what):
            read = sum(t.read for t in section.topics)
            text = f"{bare} of {read} objects that were read hold none; no protocol needs them"
            yield Promise(what, LOST if bare == read else UNSURE, text, mend(section, "LOSSY_LAYOUT"))
    yield from _hours(section)
    yield from _order(section)


def _order(section: Section) -> Iterator[Promise]:
    undated, guess = section.contents.without_ts, section.guess
    if undated and guess is not None and (guess.protocol in UNDATED or guess.protocol in EXTENDED):
        text = f"{plural(undated, 'row')} without commit ts: offsets order them, and events sent twice count twice (docs/offsets.md)"
        mend = "" if guess.protocol in UNDATED else "set enable-tidb-extension = true in the changefeed's sink, if it is TiCDC's"
        yield Promise("order", UNSURE, text, mend)


def _keys(section: Section, layout: Layout) -> Iterator[Promise]:
    objects, there = sum(t.objects for t in section.topics), sum(t.with_keys for t in section.topics)
    bare, read = lacking(section, "keys"), sum(t.read for t in section.topics)
    if bare and section.guess is not None and section.guess.protocol in KEYED_PROTOCOLS:
        text = f"{bare} of {read} objects that were read hold none; {section.guess.protocol} needs them"
        yield Promise("keys", LOST, text, f"{_FIELDS} (connector)")
    elif layout.has_keys:
        yield Promise("keys", KEPT, "in the records")
    elif there == objects:
        yield Promise("keys", KEPT, "in .keys objects beside the values")
    elif there:
        yield Promise(
            "keys", UNSURE, f"{objects - there} of {objects} objects have no .keys object beside them", mend(section, "KEYS_LOST")
        )
    else:
        guess = section.guess
        needed = "" if guess is None else f"; {guess.protocol} {'needs' if guess.protocol in KEYED_PROTOCOLS else 'does not need'} them"
        unneeded = guess is not None and guess.protocol not in KEYED_PROTOCOLS
        yield Promise("keys", LOST, f"values only{needed}", "" if unneeded else mend(section, "KEYS_LOST"))


def lacking(section: Section, what: str) -> int:
    """Return the number of read objects without any `headers`, `timestamps` or `keys`."""
    return sum(t.lacking.get(what, 0) for t in section.topics)


def _offsets(section: Section, layout: Layout) -> Iterator[Promise]:
    if not layout.number_is_first_offset:
        marked = ", and the objects record where the log holds no message (transaction markers, compaction)" if _archived(section) else ""
        yield Promise("offsets", KEPT, f"in the records: missing and repeated messages are detected{marked}")
        return
    joints = sum(t.offsets.joints for t in section.topics if t.offsets)
    wrong = sum(t.offsets.unproven for t in section.topics if t.offsets)
    joined = f"; {wrong} of {joints} neighbouring objects that were read do not join" if wrong else ""
    joined = joined or (f"; all {joints} neighbouring objects that were read join" if joints else "")
    if section.tags:
        yield Promise("offsets", UNSURE if wrong else KEPT, f"counted from the names; tags prove them object by object{joined}")
    else:
        text = "counted from the names: correct only if the connector drops no record and sorts no late record into another hour"
        yield Promise("offsets", UNSURE, text + joined, mend(section, "NO_OFFSETS"))


def _nulls(section: Section, layout: Layout) -> Iterator[Promise]:
    matters = section.guess is not None and section.guess.protocol == _WRITES_NULLS
    if "TOMBSTONES_LOST" in layout.losses:
        apart = f"; {section.tombstones} objects under tombstone/ hold their keys, without offsets" if section.tombstones else ""
        harmless = section.guess is not None and not matters
        why = (
            "avro writes deletes as null values"
            if matters
            else "not needed: this protocol writes none"
            if section.guess
            else "only avro writes them"
        )
        yield Promise(
            "null values", LOST, f"{layout.losses['TOMBSTONES_LOST']} ({why}){apart}", "" if harmless else mend(section, "TOMBSTONES_LOST")
        )
    else:
        yield Promise("null values", KEPT, "deletes of Avro are kept")


def _archived(section: Section) -> bool:
    """Whether `tidelake archive` wrote it."""
    return all(t.offsets and t.offsets.covered for t in section.topics)


def _hours(section: Section) -> Iterator[Promise]:
    of, inside = sum(t.of_hours for t in section.topics), sum(t.in_hour for t in section.topics)
    if of and inside == of:
        yield Promise("hours", KEPT, f"folders are the hours (UTC) of the records' timestamps, in all {of} records that were read")
    elif of and _archived(section):
        text = f"{of - inside} of {of} records are of an earlier hour than their folder: they arrived late and belong to the open hour"
        yield Promise("hours", KEPT, text)
    elif of:
        text = f"{of - inside} of {of} records are of another hour (UTC) than their folder, which uses the time of writing or another zone"
        yield Promise("hours", UNSURE, text, "hours by the record's timestamp, in UTC: " + mend(section, "HOUR"))
    elif not any(t.hours for t in section.topics):
        text = "no path has an hour: messages land by their timestamps, or by the time their object was written, and all names are listed"
        yield Promise("hours", UNSURE, text, mend(section, "HOUR"))
    else:
        yield Promise("hours", UNSURE, "assumed to be UTC: the records hold no timestamps to compare with")
    for topic in section.topics:
        if topic.missing:
            yield Promise("hours", UNSURE, f"{topic.name}: no object in {spelled(topic.missing)}", "find out whether the topic was idle")
        if topic.holes:
            yield Promise("partitions", UNSURE, f"{topic.name}: no object of partition {topic.holes}", "find out why they are missing")


def blockers(section: Section) -> list[Blocker]:
    """Return everything that prevents a feed of this section from landing."""
    return list(_blockers(section))


def _blockers(section: Section) -> Iterator[Blocker]:
    if section.layout is None:
        text = f"the objects match no layout that can be landed ({section.form}): {section.why}"
        yield Blocker(text, _layout_mend(section))
        if not section.verdict.messages:  # without messages there is nothing more to check
            return
    elif not any(t.hours for t in section.topics) and _DATE.search(section.template):
        by_hand = 'write a feed by hand, with hours = "timestamps" and {any} for the date in template: docs/layouts.md; or '
        yield Blocker(f"dates without hours are in the objects' names: {section.template}", by_hand + mend(section, "HOUR"))
    if section.guess is None:
        keyless = _keyless(section)
        lacking = f"{plural(keyless, 'object')} {'lacks' if keyless == 1 else 'lack'}"
        why = f"; Open Protocol and Avro cannot be recognised without their keys, which {lacking}" if keyless else ""
        yield Blocker(f"the messages' protocol is undecided{why}", mend(section, "KEYS_LOST") if keyless else _protocol_mend(section))
        return
    yield from _of_protocol(section, section.guess.protocol)
    if section.contents.without_ts and section.guess.protocol == "csv":
        text = f"{plural(section.contents.without_ts, 'row')} without commit ts, which cannot be put in order"
        yield Blocker(text, "set include-commit-ts = true in the changefeed's sink")


def _layout_mend(section: Section) -> str:
    if "the name says" in section.why:
        return "rename or rewrite them: the codec in a name must be that of the content"
    fields = f"write them with Aiven's connector with ByteArrayConverter and {_FIELDS}; docs/layouts.md lists all layouts"
    return _OF_FORM.get(section.form, fields)


def _of_protocol(section: Section, protocol: str) -> Iterator[Blocker]:
    if section.layout is None:
        return
    layout = layout_of(section.layout)
    if layout.protocols is not None and protocol not in layout.protocols:
        yield Blocker(f"{section.layout} does not keep messages of {protocol} whole", mend(section, "NOT_BINARY_SAFE"))
    if protocol == _WRITES_NULLS and "TOMBSTONES_LOST" in layout.losses:
        yield Blocker("avro writes deletes as null values, which this layout loses", mend(section, "TOMBSTONES_LOST"))
    elif protocol in KEYED_PROTOCOLS and (keyless := _keyless(section)):
        yield Blocker(
            f"{protocol} needs Kafka keys, which {plural(keyless, 'object')} {'lacks' if keyless == 1 else 'lack'}",
            mend(section, "KEYS_LOST"),
        )


def _keyless(section: Section) -> int:
    """Number of objects without keys, inside or beside them."""
    if section.layout is None or layout_of(section.layout).has_keys:
        return 0
    return sum(t.objects - t.with_keys for t in section.topics)


def mend(section: Section, code: str) -> str:
    """Return the connector setting that fixes a loss."""
    family = (section.layout or section.form).partition("-")[0]
    return _MEND.get(family, {}).get(code, _MEND["aiven"]["HOUR"] if code == "HOUR" else _ELSE)


def _protocol_mend(section: Section) -> str:
    waiting = section.verdict.guesses and section.verdict.guesses[0].waiting
    if waiting:
        return "give the Avro schemas: --avro-schemas FILE.json, a folder, or the registry's URL; or give --protocol avro"
    return "`tidelake sniff OBJECT` on one of them shows every message that does not fit; `--protocol NAME` writes a feed.toml for it"
