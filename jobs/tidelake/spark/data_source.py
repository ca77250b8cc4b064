"""Base classes of Tidelake's Python Data Sources: Arrow batches, one input partition per part (object, file), errors sent to the driver.

Constraints (docs/reference/platform.md 6, 15): no dictionaries, no implicit casts, never `pushFilters`; importable in workers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa
from pydantic import BaseModel
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tidelake.history.event import EVENT
from tidelake.spark.worker_secrets import NONE, OPTION, Handed, Secrets, is_client, place_of
from tidelake.spark.workers import settle, worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Part = TypeVar("Part")
_KNOWN: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()  # session → names of the sources registered in it
_REGISTERING = Lock()


def read_source(spark: SparkSession, source: type[EventSource], **options: BaseModel) -> DataFrame:
    """Return a frame of the source's rows. The first use registers the source in the session and hands the workers their secrets.

    Args:
        spark: The session.
        source: One of Tidelake's Python Data Sources.
        options: The source's options, one JSON document each.
    """
    _register(spark, source)
    reader = spark.read.format(source.FORMAT).option(OPTION, place_of(spark))
    for name, value in options.items():
        reader = reader.option(name, value.model_dump_json())
    return reader.load()


def _register(spark: SparkSession, source: type[EventSource]) -> None:
    """Register the source once per session. Spark refuses a name that the active session has, so this session is made active first.

    Several threads may read at once: the tables of a seed are filled side by side.
    """
    with _REGISTERING:
        known = _KNOWN.setdefault(spark, set())
        if source.FORMAT in known:
            return
        if not is_client(spark):
            jvm: Any = spark._jvm  # PySpark reads the active session from here
            jvm.SparkSession.setActiveSession(spark._jsparkSession)
        spark.dataSource.register(source)
        known.add(source.FORMAT)


class EventSource(DataSource):
    """A source whose rows `read_source` returns."""

    FORMAT: ClassVar[str]

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        settle()  # Spark creates the source in a lookup worker, its reader in a planning worker

    @classmethod
    def name(cls) -> str:
        return cls.FORMAT

    def schema(self) -> StructType:
        return from_arrow_schema(EVENT)

    @property
    def secrets(self) -> Secrets:
        """The workers' secrets, read where the source is planned."""
        return Handed(self.options.get(OPTION, "")).secrets()


class EventReader(DataSourceReader, Generic[Part]):
    """Reader that plans one partition per part and reads it in a worker."""

    def __init__(self, parts: Sequence[Part], secrets: Secrets = NONE) -> None:
        self.parts, self.secrets = parts, secrets
        settle()

    @abstractmethod
    def rows(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Yield batches of the source's rows."""

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(part) for part in self.parts]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if partition is None:
            return  # Spark calls this once with None where there are no partitions: an hour without objects, a table without files
        with worker(self.secrets):
            yield from self.rows(partition.value)
