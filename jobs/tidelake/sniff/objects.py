"""Reads objects of an archive. The layout is the one whose reader reads the object, with its name and the objects beside it.

Two forms are understood without being a layout: bare lines (values only, one per line) and lines of base64 (Aiven's default fields: only
the value).
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidelake.archives import SourceObject, absent, layout_of
from tidelake.archives.readers.base64_text import is_base64
from tidelake.archives.readers.layout import message_batch
from tidelake.archives.readers.lines import blocks
from tidelake.archives.readers.raw_records import lines
from tidelake.errors import TidelakeError
from tidelake.sniff.containers import (
    BARE,
    BARE_LINES,
    FORMATS,
    INSPECT,
    PLAIN_CSV,
    READING,
    first_line,
    has_keys,
    is_empty,
    is_plain_csv,
    recognised,
)

VALUES_ONLY, UNREAD, EMPTY = "lines of base64 values", "objects that were not read", "objects without a record"
MOST_BYTES = 64 << 20  # maximum size of one object's messages
_RAW = {
    "bin": ("confluent-bin-open", "confluent-bin"),
    "json": ("confluent-json-nested",),
}  # by extension, because the content does not show it

_DAMAGED = "DAMAGED_OBJECT"

Batches = Iterator[pa.RecordBatch]


@dataclass(slots=True, kw_only=True)
class ReadObject:
    """An object that was read.

    Attributes:
        form: The layout, BARE_LINES, VALUES_ONLY, or what else the content is.
        layout: The layout; None if it is none of tidelake.archives.
        offsets: Offsets of all records.
        timestamps: Timestamps of all records.
        messages: MESSAGE batches of the first records.
        whole: It was read up to its end.
        problem: Why it was not.
        covers: First and last offset between which it has all messages of the log; None if it does not state them.
        lacks: What no record has, for layouts that can omit it.
    """

    source: SourceObject
    form: str
    layout: str | None = None
    offsets: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    timestamps: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    messages: list[pa.RecordBatch] = field(default_factory=list)
    whole: bool = False
    problem: str = ""
    covers: tuple[int, int] | None = None
    lacks: frozenset[str] = frozenset()


def read(path: Path, source: SourceObject, most: int) -> ReadObject:
    """Read a local copy of an object, with its siblings beside it. Raises OSError only.

    A layout that finds the object damaged has recognised it; one that refuses the object has not. most: number of messages to keep.
    """
    if is_empty(path):
        return ReadObject(source=source, form=EMPTY, whole=True)
    first: ReadObject | None = None
    for form in _candidates(path, source.key):
        found = ReadObject(source=source, form=form, layout=None if form in _FOREIGN else form)
        _fill(found, _reader(form)(path, source), most)
        if found.whole and found.layout and (covers := layout_of(found.layout).covers):
            found.covers = covers(path)
        if len(found.offsets) or not found.problem or found.problem.startswith(_DAMAGED):
            return found
        first = first or found
    return ReadObject(source=source, form=BARE, problem=first.problem if first else "its format is unknown")


def _candidates(path: Path, key: str) -> list[str]:
    """Possible layouts, the likeliest first: by content, then by extension."""
    with path.open("rb") as file:
        start = file.read(8)
    for mark, layouts in FORMATS.items():
        if start.startswith(mark):
            return [name for name in layouts if name != "confluent-parquet" or not has_keys(path)]
    container = recognised(path, 1).container
    if container in (BARE, BARE_LINES) and is_plain_csv(path):
        return [PLAIN_CSV]
    extensions = key.rpartition("/")[2].lower().split(".")
    raw = list(chain.from_iterable(forms for word, forms in _RAW.items() if word in extensions))
    if container in (BARE, BARE_LINES, INSPECT):
        return [*raw, VALUES_ONLY, BARE_LINES]
    return [container, *raw]


def _reader(form: str) -> Callable[[Path, SourceObject], Batches]:
    return _FOREIGN[form] if form in _FOREIGN else layout_of(form).read


def _fill(found: ReadObject, batches: Batches, most: int) -> None:
    offsets, stamps, kept, size = list[np.ndarray](), list[np.ndarray](), 0, 0
    lacks = list[frozenset[str]]()
    try:
        for batch in batches:
            offsets.append(batch.column("offset").to_numpy())
            stamps.append(batch.column("timestamp_ms").drop_null().to_numpy())
            lacks += [absent(batch)] if len(batch) else []
            if kept < most and len(batch):
                found.messages.append(batch.slice(0, most - kept))
                kept += len(found.messages[-1])
            size += batch.nbytes
            if size > MOST_BYTES:
                break
        else:
            found.whole = True
    except TidelakeError as e:
        found.problem = f"{e.code}: {e.message.removeprefix(f'{found.source.key}: ')}"
    except READING as e:  # what readers raise for files of other formats
        found.problem = first_line(e)
    found.offsets = np.concatenate(offsets) if offsets else found.offsets
    if lacks and found.layout:
        found.lacks = layout_of(found.layout).optional.intersection(*lacks)
    found.timestamps = np.concatenate(stamps) if stamps else found.timestamps


def _bare_lines(path: Path, source: SourceObject) -> Batches:
    """Read lines of JSON objects."""
    for first, values in _counted(lines(path, source)):
        if not first and not all(value.startswith(b"{") and value.endswith(b"}") for value in _sample(values)):
            raise ValueError("its lines are not JSON objects")
        yield _batch(source, first, values)


def _plain_csv(path: Path, source: SourceObject) -> Batches:
    """Return no messages: the end of a value cannot be found."""
    return iter(())


def _values_only(path: Path, source: SourceObject) -> Batches:
    """Read lines of base64. An empty line is an empty or a null value."""
    done = 0
    for block in blocks(path, source):
        texts = block.split()
        if not all(map(is_base64, texts)) or not any(texts):
            raise ValueError("its lines are not base64")
        yield _batch(source, done, pa.array([b64decode(text) or None for text in texts], pa.binary()))
        done += len(texts)


def _counted(arrays: Iterator[pa.Array]) -> Iterator[tuple[int, pa.Array]]:
    done = 0
    for values in arrays:
        yield done, values
        done += len(values)


def _sample(values: pa.Array) -> Sequence[bytes]:
    return [value for value in values.slice(0, 5).to_pylist() if value]


def _batch(source: SourceObject, first: int, values: pa.Array) -> pa.RecordBatch:
    return message_batch(source, pa.array(np.arange(first, first + len(values), dtype=np.int64)), values)


_FOREIGN: dict[str, Callable[[Path, SourceObject], Batches]] = {
    VALUES_ONLY: _values_only,
    BARE_LINES: _bare_lines,
    PLAIN_CSV: _plain_csv,
}
