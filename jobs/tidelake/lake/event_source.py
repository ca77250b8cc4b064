"""The frame of our Python Data Sources: Arrow batches, one input partition for each part (an object, a file), errors told to the driver.

Facts that bind (docs/reference/platform.md 6, 15): no dictionaries, no implicit casts, never `pushFilters`; importable in workers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import pyarrow as pa
from pydantic import BaseModel
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tidelake.event import EVENT
from tidelake.lake.worker_secrets import NONE, OPTION, Handed, Secrets, place_of
from tidelake.lake.workers import settle, worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Part = TypeVar("Part")


def asked(spark: SparkSession, source: str, **options: BaseModel) -> DataFrame:
    """What a source of ours gives for these options, with the secrets that were handed to the session."""
    reader = spark.read.format(source).option(OPTION, place_of(spark))
    for name, value in options.items():
        reader = reader.option(name, value.model_dump_json())
    return reader.load()


class EventSource(DataSource):
    """`asked(spark, FORMAT, …)`."""

    FORMAT: ClassVar[str]

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        settle()  # it is made in a worker that looks up sources, its reader in one that plans

    @classmethod
    def name(cls) -> str:
        return cls.FORMAT

    def schema(self) -> StructType:
        return from_arrow_schema(EVENT)

    @property
    def secrets(self) -> Secrets:
        """Read where the source is planned."""
        return Handed(self.options.get(OPTION, "")).secrets()


class EventReader(DataSourceReader, Generic[Part]):
    """Plans one partition per part and reads it in a worker."""

    def __init__(self, parts: Sequence[Part], secrets: Secrets = NONE) -> None:
        self.parts, self.secrets = parts, secrets
        settle()

    @abstractmethod
    def rows(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Batches of the source's rows."""

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(part) for part in self.parts]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if partition is None:
            return  # Spark reads nothing once where there are no partitions: an hour without objects, a table without files
        with worker(self.secrets):
            yield from self.rows(partition.value)
