"""Position delete files: which rows of a table's data files are deleted, read and written in workers (Iceberg spec, position delete files).

file := (file_path, pos)*, sorted by both
file_path: location of a data file, as the table's metadata spells it; pos: number of a row in it, from 0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidelake.io.object_store import Store
from tidelake.spark.parquet_files import OpenFile, fetched
from tidelake.wire.kernels.arrays import Longs

PATH_ID, POS_ID = 2147483546, 2147483545  # reserved field ids (Iceberg spec)
POSITION_DELETES = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": str(PATH_ID)}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": str(POS_ID)}),
    ]
)
GROUP_ROWS = 1 << 16  # rows of a row group, and of a batch when reading


def deleted_positions(store: Store, keys: Iterable[str], data_path: str) -> Longs:
    """Return which rows of a data file are deleted. Row groups without the file's path are not read.

    Args:
        store: Store of the delete files.
        keys: Keys of the delete files that apply to the data file (FileFacts.deletes, below the store).
        data_path: Location of the data file, as the table's metadata spells it (FileFacts.path).

    Returns:
        Row numbers from 0, ascending, each once, even if several delete files have it.

    Raises:
        StorageError: NOT_FOUND: a delete file is missing.

    Source: Iceberg spec, "Position Delete Files".
    """
    found = [np.empty(0, np.int64)]
    with TemporaryDirectory(prefix="tidelake-deletes-") as folder:
        for key in keys:
            with fetched(store, key, Path(folder)) as file:
                found.extend(_positions(file, data_path))
    positions = np.sort(np.concatenate(found))  # np.unique hashes, which takes twenty times as long
    return positions[np.diff(positions, prepend=-1) > 0]


def _positions(file: pq.ParquetFile, data_path: str) -> Iterator[Longs]:
    bounds = {g: _path_bounds(file.metadata.row_group(g)) for g in range(file.num_row_groups)}
    whole = [g for g, found in bounds.items() if found == (data_path, data_path)]  # paths need not be compared
    mixed = [g for g, found in bounds.items() if g not in whole and (found is None or found[0] <= data_path <= found[1])]
    for batch in file.iter_batches(GROUP_ROWS, whole, ["pos"], use_threads=False):
        yield batch.column("pos").to_numpy(zero_copy_only=False)
    for batch in file.iter_batches(GROUP_ROWS, mixed, ["file_path", "pos"], use_threads=False):
        same = pc.equal(batch.column("file_path"), data_path)
        yield batch.column("pos").filter(same).to_numpy(zero_copy_only=False)


def _path_bounds(group: pq.RowGroupMetaData) -> tuple[str, str] | None:
    """The lowest and highest path of a row group, from its statistics; None without them."""
    columns = (group.column(n) for n in range(group.num_columns))
    paths = next(c for c in columns if c.path_in_schema == "file_path").statistics
    return (paths.min, paths.max) if paths is not None and paths.has_min_max else None


def write_position_deletes(path: Path, found: Iterable[tuple[str, Longs]]) -> int:
    """Write a position delete file on this machine's disk. Holds one row group in memory, and the positions of one data file.

    parquet_files.footer() gives its metadata for the commit, as for a data file.

    Args:
        path: The file to write.
        found: Pairs (location of a data file, numbers of its deleted rows from 0). Locations ascend by code point, positions ascend, and
            both occur once.

    Returns:
        Number of deleted rows.

    Raises:
        ValueError: Locations or positions do not ascend. The file is then not usable.

    Source: Iceberg spec, "Position Delete Files".
    """
    with OpenFile(path, POSITION_DELETES, plain=["pos"]) as file:
        for group in _groups(_ascending(found)):
            file.write(group)
        return file.rows


def _ascending(found: Iterable[tuple[str, Longs]]) -> Iterator[tuple[str, Longs]]:
    last = ""
    for data_path, positions in found:
        if data_path <= last:
            raise ValueError(f"{data_path} comes after {last}: the paths of a delete file must ascend")
        if len(positions) and (positions[0] < 0 or np.any(positions[1:] <= positions[:-1])):
            raise ValueError(f"{data_path}: positions must ascend from 0")
        yield data_path, positions
        last = data_path


def _groups(found: Iterable[tuple[str, Longs]]) -> Iterator[pa.Table]:
    """Yield row groups of GROUP_ROWS; only the last one may be smaller."""
    waiting: list[pa.Table] = []
    rows = 0
    for data_path, positions in found:
        for first in range(0, len(positions), GROUP_ROWS):
            waiting.append(_table(data_path, positions[first : first + GROUP_ROWS]))
            rows += waiting[-1].num_rows
            if rows >= GROUP_ROWS:
                full = pa.concat_tables(waiting)
                yield full.slice(0, GROUP_ROWS)
                waiting, rows = [full.slice(GROUP_ROWS)], rows - GROUP_ROWS
    if rows:
        yield pa.concat_tables(waiting)


def _table(data_path: str, positions: Longs) -> pa.Table:
    return pa.Table.from_arrays([pa.repeat(data_path, len(positions)), pa.array(positions)], schema=POSITION_DELETES)
