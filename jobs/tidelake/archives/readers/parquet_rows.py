"""Read Parquet objects, row group by row group, in batches of about BATCH_BYTES, whatever the decoded size of their pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidelake.archives.readers.layout import BATCH_BYTES, SourceObject, damaged, refused, unreadable
from tidelake.archives.readers.parquet_pages import most_rows
from tidelake.history.event import HEADERS

_BYTES = (pa.binary(), pa.string(), pa.large_binary(), pa.large_string())


def row_batches(path: Path, source: SourceObject, choose: Callable[[pa.Schema], list[str]]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield batches of the columns that `choose` returns, each with the number of records before it.

    Raises what `choose` raises, OrderError (DAMAGED_OBJECT), StorageError (BAD_OBJECT).
    """
    record = 0
    try:
        with pa.memory_map(str(path)) as content, pq.ParquetFile(path, memory_map=True) as file:
            columns, data = choose(file.schema_arrow), memoryview(content.read_buffer()).cast("B")
            for number in range(file.num_row_groups):
                group = file.metadata.row_group(number)
                rows = min(_rows(group), most_rows(data, group, columns))
                for batch in _joined(file.iter_batches(rows, [number], columns, use_threads=False)):
                    yield record, batch
                    record += len(batch)
    except (pa.ArrowException, OSError, ValueError) as e:
        if record == 0:
            raise unreadable(source, f"not readable as Parquet: {e}") from e
        raise damaged(source, f"after record {record}", f"not readable as Parquet: {e}") from e


def _rows(group: pq.RowGroupMetaData) -> int:
    """Return the number of rows of a group for a batch, by its plain size."""
    rows, size = int(group.num_rows), int(group.total_byte_size)
    return max(1, min(rows, BATCH_BYTES * rows // max(size, 1)))


def _joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join small batches until they have about BATCH_BYTES."""
    held, size = list[pa.RecordBatch](), 0
    for batch in batches:
        if held and size + batch.nbytes > BATCH_BYTES:
            yield _one(held)
            held, size = [], 0
        held.append(batch)
        size += batch.nbytes
    if held:
        yield _one(held)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def check_columns(layout: str, schema: pa.Schema, source: SourceObject, needed: tuple[str, ...], remedy: str) -> None:
    """Raise ConfigError (ARCHIVE_LAYOUT) for missing columns, keys or values that are not bytes, or offsets that are not integers."""
    missing = [name for name in needed if name not in schema.names]
    if missing:
        raise refused(source, layout, f"it has no column {' and no column '.join(missing)}", remedy)
    for name in {"key", "value", "offset"} & set(schema.names):
        found = schema.field(name).type
        if name == "offset" and not pa.types.is_integer(found):
            raise refused(source, layout, f"column offset is {found}, not an integer", remedy)
        if name != "offset" and found not in _BYTES:
            raise refused(source, layout, f"column {name} is {found}, not bytes", remedy)


def are_headers(found: pa.DataType) -> bool:
    """Return whether a type is a map of bytes by name."""
    return pa.types.is_map(found) and found.key_type == pa.string() and found.item_type in _BYTES


def headers_of_maps(maps: pa.Array) -> pa.Array:
    """Convert maps to HEADERS."""
    pairs = pa.StructArray.from_arrays([maps.keys, maps.items.cast(pa.binary())], names=["key", "value"])
    return pa.ListArray.from_arrays(maps.offsets, pairs, mask=maps.is_null() if maps.null_count else None).cast(HEADERS)


def headers_of_structs(structs: pa.Array) -> pa.Array:
    """Convert records with one member per header to HEADERS. Null members are left out."""
    names = [structs.type.field(i).name for i in range(structs.type.num_fields)]
    if not names:
        return pa.array([[]] * len(structs), HEADERS)
    columns = [pc.struct_field(structs, i).cast(pa.binary()) for i in range(len(names))]
    there = np.stack([column.is_valid().to_numpy(zero_copy_only=False) for column in columns], axis=1)
    rows, fields = np.nonzero(there)
    values = pa.concat_arrays(columns).take(pa.array(fields * len(structs) + rows))
    offsets = np.zeros(len(structs) + 1, np.int32)
    np.cumsum(there.sum(axis=1), out=offsets[1:])
    pairs = pa.StructArray.from_arrays([pa.array(names).take(pa.array(fields)), values], names=["key", "value"])
    return pa.ListArray.from_arrays(pa.array(offsets), pairs).cast(HEADERS)
