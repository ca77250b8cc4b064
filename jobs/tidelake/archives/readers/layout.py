"""What archive layouts have in common: their declaration, their listings, their reader, and their errors.

A layout is a module of this package with a constant `LAYOUT`. `read` receives a local copy of one object and yields MESSAGE batches of at
most about BATCH_BYTES of payload, in the order of the object's records.
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
    """One object of an hour. number: the offset in its name, which is the first record's only if the layout declares it; modified_ms: when
    it was written, epoch ms of the store's clock, 0 if unknown.

    A reader must put local copies of its siblings at the paths that `beside` returns.
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
        """All objects to read: the object and its siblings."""
        return (self, *self.siblings)


def beside(path: Path, view: str) -> Path:
    """Return the path of a sibling's local copy. path: that of the object."""
    return path.with_name(f"{path.name}.{view}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Numbered files of a partition that are missing after the existing ones. first, last: their numbers; said: text of the evidence."""

    topic: str
    partition: int
    first: int
    last: int
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The objects in the folders of an hour, by topic, partition and key, and the files that the layout does not know.

    newest_ms: when the newest object was written, epoch ms of the store's clock; doubts: why something may be missing, as messages; lost:
    certainly missing files, for layouts with indexes. These three do not count when listings are compared.
    """

    objects: tuple[SourceObject, ...]
    unknown: tuple[ObjectInfo, ...] = ()
    newest_ms: int = field(default=0, compare=False)
    doubts: tuple[str, ...] = field(default=(), compare=False)
    lost: tuple[Lost, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Declaration of a layout.

    extensions: allowed extensions of its objects, without codecs. number_is_first_offset: the number in the name is the first record's
    offset, and the records count up from it. number_is_last_offset: the number is the last record's offset. has_keys: objects contain Kafka
    keys. has_siblings: objects may have `.keys` and `.headers` objects beside them. file_bits: partitions are folders of the archive with
    files numbered from 1, and all but this many low bits of an offset are the file's number; 0 if partitions and offsets are Kafka's.
    covers: for a local copy, returns the first and last offset of which the object has everything that the topic held, so that missing
    offsets between them are no loss; None if it does not record them. templates: paths of its objects, as in source.template, if not the
    usual folders. optional: what the connector writes only if it is configured, of OPTIONAL, so that an object may have none of it.
    protocols: those whose messages survive it, None if all do. losses: what the layout cannot carry, as messages, by finding code.
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
    """Return a MESSAGE batch of one object's records. Members that the archive does not carry are null."""
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
    """Return the members (of OPTIONAL) that no record of a MESSAGE batch has. An empty list of headers counts as present."""
    return frozenset(what for what, column in _COLUMNS.items() if batch.column(column).null_count == len(batch))


def sound(offsets: pa.Array) -> bool:
    """Return whether every record has an offset of 0 or more."""
    return not offsets.null_count and bool(pc.all(pc.greater_equal(offsets, 0), min_count=0).as_py())


def check_offsets(offsets: pa.Array, source: SourceObject, before: int) -> None:
    """Raise OrderError unless every record has an offset of 0 or more. before: number of the object's records before these."""
    if not sound(offsets):
        first = next(i for i, value in enumerate(offsets.to_pylist()) if value is None or value < 0)
        raise damaged(source, f"record {before + 1 + first}", "no offset, or one below 0")


def check_place(layout: str, topics: pa.Array, partitions: pa.Array, source: SourceObject) -> None:
    """Raise ConfigError if records have another topic or partition than the object's name, or none."""
    there = pc.and_(pc.equal(topics, pa.scalar(source.topic).cast(topics.type)), pc.equal(partitions, source.partition))
    if not pc.all(pc.fill_null(there, False), min_count=0).as_py():
        raise refused(
            source,
            layout,
            f"it holds records of a topic or partition other than {source.topic}[{source.partition}]",
            "an object must hold only the partition in its name: check source.template",
        )


def damaged(source: SourceObject, where: str, problem: str) -> OrderError:
    """Return the error for a damaged record in the archive. where: `line 17`, `record 3` (both from 1)."""
    return OrderError(
        f"{source.key}, {where}: {problem}; nothing of the hour is recorded as landed",
        code="DAMAGED_OBJECT",
        remedy="replace the object by an intact copy, or move it away and land the hour again: its offsets are then reported as a gap",
    )


def unreadable(source: SourceObject, problem: str) -> StorageError:
    """Return the error for an object that is cut short, or has another codec or file format than its name."""
    return StorageError(
        f"{source.key}: {problem}",
        code="BAD_OBJECT",
        remedy="the object is incomplete or does not match its name: write it again, then land the hour again",
    )


def refused(source: SourceObject, layout: str, problem: str, remedy: str) -> ConfigError:
    """Return the error for an archive that was written with settings from which messages cannot be restored."""
    return ConfigError(f"{source.key} is not layout {layout!r} as Tidelake needs it: {problem}", code="ARCHIVE_LAYOUT", remedy=remedy)
