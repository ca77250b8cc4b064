"""Lines of `kcat -C -J` (docs/reference/archives.md 7).

    {"topic":"t","partition":0,"offset":7,"tstype":"create","ts":1767607200000,"broker":0,"headers":["k","v"],"key":"k","payload":"v"}

Key and payload are text, so only protocols of text may be archived this way. One list holds names and values of headers. An object must
hold one partition (`kcat -p`), the one in its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.archives.readers.json_records import first_damage, parse, unlike
from tidelake.archives.readers.layout import TEXT_PROTOCOLS, Layout, SourceObject, check_place, damaged, message_batch, refused, sound
from tidelake.archives.readers.lines import Block, blocks
from tidelake.history.event import HEADERS

_NAME = "kcat"
_MEMBERS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("ts", pa.int64()),
        ("headers", pa.list_(pa.string())),
        ("key", pa.string()),
        ("payload", pa.string()),
    ]
)


def read(path: Path, source: SourceObject) -> Iterator[pa.RecordBatch]:
    """Yield an object's messages as MESSAGE batches.

    Raises ConfigError (ARCHIVE_LAYOUT), OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    for block in blocks(path, source):
        if block.first == 1 and unlike(block, ("topic", "partition", "offset", "payload")):
            raise refused(source, _NAME, "its lines are not what kcat -J writes", "write it with kcat -C -J -t TOPIC -p PARTITION")
        yield _batch(block, source)


def _batch(block: Block, source: SourceObject) -> pa.RecordBatch:
    try:
        rows = parse(block.data, _MEMBERS)
        rows.validate(full=True)
        found = {name: rows.column(name).combine_chunks() for name in _MEMBERS.names}
        headers = _headers(found["headers"])
    except (pa.ArrowInvalid, UnicodeDecodeError) as e:
        raise damaged(source, *first_damage(block, ("offset",), (), str(e))) from e
    if len(rows) != block.lines or not sound(found["offset"]):
        raise damaged(source, *first_damage(block, ("offset",), (), f"{len(rows)} records"))
    check_place(_NAME, found["topic"], found["partition"], source)
    key, value = (found[name].cast(pa.binary()) for name in ("key", "payload"))
    stamps = pc.if_else(pc.less(found["ts"], 0), pa.scalar(None, pa.int64()), found["ts"])
    return message_batch(source, found["offset"], value, timestamp_ms=stamps, key=key, headers=headers)


def _headers(column: pa.Array) -> pa.Array:
    """Convert flat lists of names and values to HEADERS. A record without names has none. Raises ArrowInvalid."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    if (lengths % 2).any():
        raise pa.ArrowInvalid("a header without a value")
    flat = column.flatten()
    names, values = (flat.take(pa.array(np.arange(start, len(flat), 2))) for start in (0, 1))
    offsets = np.zeros(len(column) + 1, np.int32)
    np.cumsum(lengths // 2, out=offsets[1:])
    pairs = pa.StructArray.from_arrays([names, values.cast(pa.binary())], names=["key", "value"])
    return pa.ListArray.from_arrays(pa.array(offsets), pairs).cast(HEADERS)


LAYOUT = Layout(
    read=read,
    extensions=frozenset({"jsonl", "json", "ndjson"}),
    protocols=TEXT_PROTOCOLS,
    losses={"NOT_BINARY_SAFE": "keys, values and headers that are not UTF-8 block"},
)
