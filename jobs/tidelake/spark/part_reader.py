"""Runs readers in Spark's workers: a task per part (object, file, bucket) returns Arrow batches, and sends its errors to the driver.

A Python Data Source would do the same, with two more processes per job: one that creates the source and one that plans it.

Constraints (docs/reference/platform.md 6, 15): no dictionaries, no implicit casts; readers are importable in workers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

from tidelake.spark.worker_secrets import Handed, Secrets, handed
from tidelake.spark.workers import worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Part = TypeVar("Part")


class PartReader(Generic[Part]):
    """Reads parts in workers.

    Attributes:
        parts: The parts.
        schema: Schema of the rows.
    """

    def __init__(self, parts: Sequence[Part], schema: pa.Schema) -> None:
        self.parts, self.schema = parts, schema

    @abstractmethod
    def rows(self, part: Part, secrets: Secrets) -> Iterator[pa.RecordBatch]:
        """Yield batches of a part's rows."""


@dataclass(frozen=True, slots=True)
class PartTask:
    """The function that Spark calls in a worker, with the numbers of the parts to read."""

    reader: PartReader[Any]
    handed: Handed

    def __call__(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        secrets = self.handed.secrets()
        with worker(secrets):
            for batch in numbers:
                for number in batch.column(0).to_pylist():
                    yield from self.reader.rows(self.reader.parts[number], secrets)


def read_parts(spark: SparkSession, reader: PartReader[Any]) -> DataFrame:
    """Return a frame of the rows of all parts. Each part is read by a task of its own."""
    from pyspark.sql.pandas.types import from_arrow_schema

    count = len(reader.parts)
    return spark.range(0, count, 1, max(count, 1)).mapInArrow(PartTask(reader, handed(spark)), from_arrow_schema(reader.schema))
