"""A Python Data Source that hands finished EVENT batches from Arrow files to Spark: what a decoder that costs nothing would do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tidelake.event import EVENT

FORMAT = "benchmark-arrow"


class ArrowFiles(DataSource):
    """`spark.read.format("benchmark-arrow").option("files", paths as a JSON list)`: one input partition a file."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return from_arrow_schema(EVENT)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(json.loads(self.options["files"]))


class _Reader(DataSourceReader):
    def __init__(self, files: list[str]) -> None:
        self.files = files

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(file) for file in self.files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(partition.value) as mapped:
            reader = pa.ipc.open_file(mapped)
            for i in range(reader.num_record_batches):
                yield reader.get_batch(i)
