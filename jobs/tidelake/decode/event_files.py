"""Write EVENT batches to data files of the events table, in the worker that decoded them: one file per kind and task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from tidelake.decode.selected_rows import selected
from tidelake.io.storage import open_store
from tidelake.spark.parquet_files import OpenFile, footer, kept_if_whole

ROW_GROUP_BYTES = 32 << 20  # Arrow bytes that a worker holds per kind, and that a reader reads at once
_LISTS = frozenset({"after", "before"})
_LONG = frozenset({"offset", "ddl", "columns", "error", "raw_key", "raw_value", "source"})  # columns whose values hardly repeat

FILES = pa.schema([("kind", pa.string()), ("path", pa.string()), ("size", pa.int64()), ("footer", pa.binary())])


class EventsPlace(BaseModel):
    """Destination of events. location: of the table; columns: schema of its files, with field ids, as hex of Arrow's IPC; hour: of all
    rows; parts: the landed objects' keys, by task.
    """

    location: str
    columns: str
    hour: str
    parts: list[list[str]]

    @property
    def schema(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.BufferReader(bytes.fromhex(self.columns)))


def place(location: str, columns: pa.Schema, hour: str, parts: list[list[str]]) -> EventsPlace:
    """Return the destination of events for a schema of data files."""
    return EventsPlace(location=location, columns=columns.serialize().to_pybytes().hex(), hour=hour, parts=parts)


def write_events(events: Iterable[pa.RecordBatch], place: EventsPlace) -> Iterator[pa.RecordBatch]:
    """Write all events to files and yield a FILES batch with a row per file. After an error, uploaded files are removed."""
    store = open_store(place.location)
    with TemporaryDirectory(prefix="tidelake-decode-") as folder, kept_if_whole(store) as keys:
        files: dict[str, _KindFile] = {}
        with ExitStack() as open_files:
            for batch in events:
                for kind in pc.unique(batch.column("kind")).to_pylist():
                    if kind not in files:
                        files[kind] = open_files.enter_context(_opened(Path(folder) / kind, place))
                    for rows in selected(batch, pc.equal(batch.column("kind"), kind)):
                        files[kind].add(rows)
            for file in files.values():
                file.flush()
        rows = []
        for kind, file in files.items():
            keys.append(f"data/hour={place.hour}/kind={kind}/{uuid4()}.parquet")
            path = file.file.path
            store.upload(keys[-1], path)
            rows.append({"kind": kind, "path": keys[-1], "size": path.stat().st_size, "footer": footer(path)})
        yield pa.RecordBatch.from_pylist(rows, schema=FILES)


@dataclass(slots=True)
class _KindFile:
    """An open file of one kind."""

    file: OpenFile
    hour: str
    held: list[pa.RecordBatch] = field(default_factory=list)
    held_bytes: int = 0

    def add(self, events: pa.RecordBatch) -> None:
        self.held.append(events)
        self.held_bytes += events.nbytes
        if self.held_bytes >= ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the held events as a row group."""
        if not self.held:
            return
        rows = pa.Table.from_batches(self.held)
        self.held, self.held_bytes = [], 0
        self.file.write(rows.append_column("hour", pa.repeat(pa.scalar(self.hour), rows.num_rows)))


@contextmanager
def _opened(path: Path, place: EventsPlace) -> Iterator[_KindFile]:
    with OpenFile(path, place.schema, sorted(_LISTS | _LONG)) as file:
        yield _KindFile(file=file, hour=place.hour)
