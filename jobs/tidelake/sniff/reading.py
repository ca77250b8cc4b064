"""Chooses and reads objects of an archive: the first hours of every topic without gaps, and its newest object."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidelake.archives import Sibling, SourceObject, beside
from tidelake.errors import StorageError
from tidelake.io.storage import CHUNK, Store
from tidelake.sniff.objects import UNREAD, ReadObject, read
from tidelake.sniff.topics import Entry

MOST_READ, MOST_READ_BYTES = 400, 256 << 20  # maximum objects and bytes of all topics
LARGEST = 64 << 20  # larger objects are not read, nor objects with a larger sibling
_FEWEST = 3  # minimum objects of a topic

OnRead = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ObjectChoice:
    """Objects of a topic to read. joined: number of the first ones that have no other object between them."""

    entries: tuple[Entry, ...]
    joined: int


def chosen(streams: Sequence[Sequence[Entry]]) -> list[ObjectChoice]:
    """Return for each topic the objects to read, within its share of the limits."""
    share = max(1, len(streams))
    return [_of_one(entries, max(_FEWEST, MOST_READ // share), MOST_READ_BYTES // share) for entries in streams]


def _of_one(entries: Sequence[Entry], most: int, most_bytes: int) -> ObjectChoice:
    ordered = sorted(entries, key=lambda e: (str(e.said.hour or ""), e.said.partition, e.said.number or 0, e.key))
    taken, size = list[Entry](), 0
    for entry in ordered:
        if len(taken) == most or (taken and size + _size(entry) > most_bytes) or not _fits(entry):
            break
        taken.append(entry)
        size += _size(entry)
    joined = len(taken)
    rest = [entry for entry in ordered[joined:] if _fits(entry)]
    return ObjectChoice((*taken, *rest[-1:]), joined)


def _size(entry: Entry) -> int:
    return entry.info.size + sum(info.size for info in entry.siblings.values())


def _fits(entry: Entry) -> bool:
    return _size(entry) <= LARGEST


def read_all(store: Store, choices: Sequence[ObjectChoice], most: int, done: OnRead | None) -> Iterator[list[ReadObject]]:
    """Yield the read objects of every choice. most: number of messages to keep of a topic."""
    total = sum(_size(entry) for choice in choices for entry in choice.entries)
    so_far = 0
    with tempfile.TemporaryDirectory(prefix="tidelake-sniff-") as folder:
        for choice in choices:
            reads, share = list[ReadObject](), -(-most // max(1, len(choice.entries)))
            for entry in choice.entries:
                reads.append(_read(store, entry, Path(folder), share))
                so_far += _size(entry)
                if done:
                    done(so_far, total)
            yield reads


def _read(store: Store, entry: Entry, folder: Path, most: int) -> ReadObject:
    """Copy and read one object, then remove the copy."""
    path = folder / entry.key.rpartition("/")[2]
    siblings = [Sibling(view, info.key, info.size, info.etag) for view, info in sorted(entry.siblings.items())]
    said = entry.said
    source = SourceObject(said.topic, said.partition, entry.key, said.number or 0, entry.info.size, entry.info.etag, tuple(siblings))
    copies = {path: entry.key} | {beside(path, s.view): s.key for s in siblings}
    try:
        for copy, key in copies.items():
            _copy(store, key, copy)
        return read(path, source, most)
    except StorageError as e:  # removed since it was listed, or access denied
        return ReadObject(source=source, form=UNREAD, problem=f"{e.code}: {e.message}")
    finally:
        for copy in copies:
            copy.unlink(missing_ok=True)


def _copy(store: Store, key: str, path: Path) -> None:
    """Copy at most LARGEST bytes, because an object may have grown since it was listed."""
    with store.open(key) as stream, path.open("wb") as out:
        left = LARGEST
        while left and (data := stream.read(min(CHUNK, left))):
            out.write(data)
            left -= len(data)
