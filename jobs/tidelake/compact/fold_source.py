"""Folds units of all tables of a window in workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pydantic import BaseModel

from tidelake.compact.fold_files import FOLDED, TableJob, fold_units
from tidelake.lake.folding.units import Unit
from tidelake.spark.part_reader import PartReader
from tidelake.spark.worker_secrets import Secrets


class FoldJob(BaseModel):
    """What to fold. tables: by number; parts: units by the task that folds them."""

    tables: dict[int, TableJob]
    parts: list[list[Unit]]


class FoldReader(PartReader[Sequence[Unit]]):
    """Folds when it reads: it writes files and returns rows that describe them (fold_files.FOLDED).

    The files belong to no table until they are committed.
    """

    def __init__(self, job: FoldJob) -> None:
        super().__init__(job.parts, FOLDED)
        self.tables = job.tables

    def rows(self, part: Sequence[Unit], secrets: Secrets) -> Iterator[pa.RecordBatch]:
        return fold_units(self.tables, part)
