"""Runs readers of parts: in Spark's workers, or in this process if the parts are small. Both call the same functions.

Starting Spark takes longer than the work of a small hour.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidelake.spark.fetch import PartsInFiles, fetched, writes_here
from tidelake.spark.part_reader import PartReader, PartTask, read_parts
from tidelake.spark.spread import tasks
from tidelake.spark.worker_errors import errors_of_workers
from tidelake.spark.worker_secrets import Handed, Secrets, handed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL_BYTES = 16 << 20  # of files; this process reads them before a Spark application is up
_OPEN_BYTES = 64 << 10  # a smaller file costs as much

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]  # takes batches and yields others
Row = dict[str, Any]


class Workers(ABC):
    """Where parts are read. tasks: number of tasks that work is spread over."""

    tasks: int

    @abstractmethod
    def rows(self, reader: PartReader[Any], columns: Sequence[str] | None = None) -> list[Row]:
        """Return these columns (default: all) of the rows of all parts. Raises what the reader raises."""

    def stream(self, reader: PartReader[Any], folder: Path) -> pa.RecordBatchReader:
        """Return the rows of all parts as a stream over files. Raises what the reader raises.

        folder: empty, and kept until the stream is read.
        """
        files = PartsInFiles(reader, folder)
        self.rows(files)
        return files.written()

    @abstractmethod
    def exchanged(self, reader: PartReader[Any], many: int, task: Callable[[Handed], Task], schema: pa.Schema) -> list[Row]:
        """Give the rows of all parts to tasks, and return what these yield. Raises what the reader and the tasks raise.

        Args:
            reader: Its rows have a column `task`: the number of the task that takes them.
            many: Number of tasks.
            task: Makes the function of a task. It is called with the secrets that it may need.
            schema: Of what tasks yield.
        """


WorkersFor = Callable[[Iterable[int]], Workers]  # for parts with files of these sizes, in bytes


class SparkWorkers(Workers):
    """Spark's workers."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.tasks = tasks(spark)

    def rows(self, reader: PartReader[Any], columns: Sequence[str] | None = None) -> list[Row]:
        found = read_parts(self._spark, reader)
        with errors_of_workers():
            return [r.asDict() for r in (found if columns is None else found.select(list(columns))).collect()]

    def stream(self, reader: PartReader[Any], folder: Path) -> pa.RecordBatchReader:
        if writes_here(self._spark):
            return super().stream(reader, folder)
        with errors_of_workers():
            return fetched(read_parts(self._spark, reader), folder)

    def exchanged(self, reader: PartReader[Any], many: int, task: Callable[[Handed], Task], schema: pa.Schema) -> list[Row]:
        from pyspark.sql.pandas.types import from_arrow_schema

        sent = read_parts(self._spark, reader).repartitionById(many, "task")
        with errors_of_workers():
            return [r.asDict() for r in sent.mapInArrow(task(handed(self._spark)), from_arrow_schema(schema)).collect()]


class ThisProcess(Workers):
    """This process, as one task."""

    tasks = 1

    def __init__(self, secrets: Secrets) -> None:
        self._handed = Handed(known=secrets)

    def rows(self, reader: PartReader[Any], columns: Sequence[str] | None = None) -> list[Row]:
        with errors_of_workers():
            return _rows(b if columns is None else b.select(list(columns)) for b in self._read(reader))

    def exchanged(self, reader: PartReader[Any], many: int, task: Callable[[Handed], Task], schema: pa.Schema) -> list[Row]:
        if many != 1:
            raise ValueError(f"{many} tasks in one process")
        with errors_of_workers():
            return _rows(task(self._handed)(self._read(reader)))

    def _read(self, reader: PartReader[Any]) -> Iterator[pa.RecordBatch]:
        numbers = pa.RecordBatch.from_pydict({"id": range(len(reader.parts))})
        return PartTask(reader, self._handed)([numbers])


def is_small(sizes: Iterable[int]) -> bool:
    """Return whether files of these sizes, in bytes, are read sooner by one process than Spark starts."""
    return sum(max(size, _OPEN_BYTES) for size in sizes) <= SMALL_BYTES


def _rows(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    return list(chain.from_iterable(b.to_pylist() for b in batches))
