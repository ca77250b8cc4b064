"""Python Data Source `tidelake_fold`: folds units of all tables of a window in workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pydantic import BaseModel
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tidelake.compact.fold_files import FOLDED, TableJob, fold_units
from tidelake.lake.folding.units import Unit
from tidelake.spark.data_source import EventReader, EventSource
from tidelake.spark.worker_secrets import NONE, Secrets


class FoldJob(BaseModel):
    """What to fold. tables: by number; parts: units by the task that folds them."""

    tables: dict[int, TableJob]
    parts: list[list[Unit]]


class FoldSource(EventSource):
    """Data source that folds when it is read: `read_source(spark, FoldSource, job=FoldJob)`.

    Reading it writes files and returns rows that describe them (fold_files.FOLDED). The files belong to no table until they are committed.
    """

    FORMAT = "tidelake_fold"

    def schema(self) -> StructType:
        return from_arrow_schema(FOLDED)

    def reader(self, schema: StructType) -> FoldReader:
        return FoldReader(FoldJob.model_validate_json(self.options["job"]), self.secrets)


class FoldReader(EventReader[Sequence[Unit]]):
    """Reader with one partition per part."""

    def __init__(self, job: FoldJob, secrets: Secrets = NONE) -> None:
        super().__init__(job.parts, secrets)
        self.tables = job.tables

    def rows(self, part: Sequence[Unit]) -> Iterator[pa.RecordBatch]:
        return fold_units(self.tables, part)
