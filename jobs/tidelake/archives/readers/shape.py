"""The one shape of an archive layout: what it declares, what it lists, what it reads, and how it reports damage.

A layout is a module of this package with a constant `LAYOUT`. `read` gets a local copy of one object and yields MESSAGE batches of
at most about BATCH_BYTES of payload, in the order of the object's records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tidelake.errors import ConfigError, OrderError, StorageError
from tidelake.history.event import MESSAGE
from tidelake.io.storage import ObjectInfo

BATCH_BYTES = 8 << 20
TEXT_PROTOCOLS = frozenset({"canal-json", "debezium", "maxwell", "simple-json", "csv"})  # values are UTF-8 text
JSON_PROTOCOLS = TEXT_PROTOCOLS - {"csv"}  # … and each is one JSON object
_COLUMNS = {"headers": "headers", "timestamps": "timestamp_ms", "keys": "key"}
OPTIONAL = frozenset(_COLUMNS)
KEYED_PROTOCOLS = frozenset({"open", "avro", "maxwell"})  # a message cannot be read without its key


@dataclass(frozen=True, slots=True, order=True)
class Sibling:
    """An object beside another one, with its records' keys or headers. view: `keys` or `headers`."""

    view: str
    key: str
    size: int
    etag: str


@dataclass(frozen=True, slots=True, order=True)
class SourceObject:
    """One object of an hour. number: the offset in its name, which is the first record's only where the layout says so; modified_ms: when
    it was written, epoch ms of the store's clock, 0 where nobody asked.

    Whoever reads it puts local copies of its siblings where `beside` says.
    """

    topic: str
    partition: int
    key: str
    number: int
    size: int
    etag: str
    siblings: tuple[Sibling, ...] = ()
    modified_ms: int = field(default=0, compare=False)

    @property
    def parts(self) -> tuple[SourceObject | Sibling, ...]:
        """Every object that is read: itself and its siblings."""
        return (self, *self.siblings)


def beside(path: Path, view: str) -> Path:
    """Where the local copy of a sibling lies, if `path` is that of the object."""
    return path.with_name(f"{path.name}.{view}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Numbered files of a partition that are missing behind those that are there. first, last: their numbers; said: how it is known."""

    topic: str
    partition: int
    first: int
    last: int
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What lies in the folders of an hour: objects in the order of topic, partition, key, and files that are none of the layout's.

    newest_ms: when the newest object was written, epoch ms of the store's clock; doubts: why something may be missing, for people;
    lost: what is missing for certain, of layouts whose indexes tell. None of these makes two listings differ.
    """

    objects: tuple[SourceObject, ...]
    unknown: tuple[ObjectInfo, ...] = ()
    newest_ms: int = field(default=0, compare=False)
    doubts: tuple[str, ...] = field(default=(), compare=False)
    lost: tuple[Lost, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a layout declares.

    extensions: what may stand in its objects' names, without codecs. number_is_first_offset: the name's number is the first record's
    offset and the records count on from it. number_is_last_offset: it is the last record's offset. has_keys: Kafka keys are in the
    objects. has_siblings: objects may have `.keys` and `.headers` beside them. file_bits: partitions are folders of the archive with files
    numbered from 1, and all but this many low bits of an offset are the file's number; 0 where partitions and offsets are Kafka's.
    covers: of a local copy, the first and last offset of which the object has all that the topic held, so that those between that it lacks
    are no loss; None where it does not say. templates: where its objects lie, as in source.template, if not in the usual folders.
    optional: what the connector writes only if it is told to, of OPTIONAL, so that an object may hold none of it.
    protocols: those whose messages survive it, None if all do. losses: what the layout cannot carry, by the finding's code, for people.
    """

    read: Callable[[Path, SourceObject], Iterator[pa.RecordBatch]]
    extensions: frozenset[str]
    covers: Callable[[Path], tuple[int, int] | None] | None = None
    number_is_first_offset: bool = False
    number_is_last_offset: bool = False
    has_keys: bool = True
    has_siblings: bool = False
    file_bits: int = 0
    templates: tuple[str, ...] = ()
    optional: frozenset[str] = frozenset()
    protocols: frozenset[str] | None = None
    losses: Mapping[str, str] = field(default_factory=dict)


def message_batch(
    source: SourceObject,
    offset: pa.Array,
    value: pa.Array,
    *,
    timestamp_ms: pa.Array | None = None,
    key: pa.Array | None = None,
    headers: pa.Array | None = None,
) -> pa.RecordBatch:
    """A MESSAGE batch of one object's records; members that the archive does not carry are null."""
    n = len(offset)
    columns = {
        "topic": pa.repeat(pa.scalar(source.topic, pa.string()), n),
        "partition": pa.repeat(pa.scalar(source.partition, pa.int32()), n),
        "offset": offset,
        "timestamp_ms": timestamp_ms,
        "key": key,
        "value": value,
        "headers": headers,
    }
    filled = [pa.nulls(n, field.type) if (found := columns[field.name]) is None else found for field in MESSAGE]
    return pa.RecordBatch.from_arrays(filled, schema=MESSAGE)


def absent(batch: pa.RecordBatch) -> frozenset[str]:
    """What no record of a MESSAGE batch has, of OPTIONAL. An empty list of headers is one."""
    return frozenset(what for what, column in _COLUMNS.items() if batch.column(column).null_count == len(batch))


def sound(offsets: pa.Array) -> bool:
    """Whether every record has an offset, from 0."""
    return not offsets.null_count and bool(pc.all(pc.greater_equal(offsets, 0), min_count=0).as_py())


def check_offsets(offsets: pa.Array, source: SourceObject, before: int) -> None:
    """Raise OrderError unless every record has an offset, from 0. before: how many records of the object are before these."""
    if not sound(offsets):
        first = next(i for i, value in enumerate(offsets.to_pylist()) if value is None or value < 0)
        raise damaged(source, f"record {before + 1 + first}", "no offset, or one below 0")


def check_place(layout: str, topics: pa.Array, partitions: pa.Array, source: SourceObject) -> None:
    """Raise ConfigError if records say another topic or partition than the object's name, or none."""
    there = pc.and_(pc.equal(topics, pa.scalar(source.topic).cast(topics.type)), pc.equal(partitions, source.partition))
    if not pc.all(pc.fill_null(there, False), min_count=0).as_py():
        raise refused(
            source,
            layout,
            f"it holds records of another place than {source.topic}[{source.partition}]",
            "an object must hold one partition, the one that its name says: check source.template",
        )


def damaged(source: SourceObject, where: str, problem: str) -> OrderError:
    """A record that the archive holds damaged. where: `line 17`, `record 3` (both from 1)."""
    return OrderError(
        f"{source.key}, {where}: {problem}; nothing of the hour is recorded as landed",
        code="DAMAGED_OBJECT",
        remedy="replace the object by a sound copy, or move it away and land the hour again: its offsets are then a reported gap",
    )


def unreadable(source: SourceObject, problem: str) -> StorageError:
    """An object that is cut short, or of another codec or file format than it says."""
    return StorageError(
        f"{source.key}: {problem}",
        code="BAD_OBJECT",
        remedy="the object is incomplete or not what its name says: have it written again, then land the hour again",
    )


def refused(source: SourceObject, layout: str, problem: str, remedy: str) -> ConfigError:
    """An archive that was written with settings from which messages cannot be told."""
    return ConfigError(f"{source.key} is not layout {layout!r} as Tidelake needs it: {problem}", code="ARCHIVE_LAYOUT", remedy=remedy)
