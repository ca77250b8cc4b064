"""The frame of our Python Data Sources: Arrow batches, one input partition for each part (an object, a file), errors told to the driver.

Facts that bind (reference: Spark's Arrow border): no dictionaries, no implicit casts, never `pushFilters`; importable in workers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, Generic, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tidelake.event import EVENT
from tidelake.lake import s3_access
from tidelake.lake.workers import worker

MASK_KEY = "mask_secret"  # the word `secret` is what Spark's redaction looks for

Part = TypeVar("Part")


class EventSource(DataSource):
    """`spark.read.format(FORMAT).option(…).option(MASK_KEY, …).option(s3_access.OPTION, …)`. Spark shows no options of such names."""

    FORMAT: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.FORMAT

    def schema(self) -> StructType:
        return from_arrow_schema(EVENT)

    @property
    def mask_key(self) -> bytes:
        """Empty where there is none."""
        return self.options.get(MASK_KEY, "").encode()

    @property
    def s3(self) -> str:
        """How workers reach S3, as `s3_access.given` says; empty as this process does."""
        return self.options.get(s3_access.OPTION, "")


class EventReader(DataSourceReader, Generic[Part]):
    """Plans one partition per part and reads it in a worker."""

    def __init__(self, parts: Sequence[Part], s3: str = "") -> None:
        self.parts, self.s3 = parts, s3

    @abstractmethod
    def rows(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Batches of the source's rows."""

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(part) for part in self.parts]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if partition is None:
            return  # Spark reads nothing once where there are no partitions: an hour without objects, a table without files
        with worker(self.s3):
            yield from self.rows(partition.value)
