"""Describes an export's tables for the workers that read their files, and finds the tables that cannot be loaded before any starts."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tidelake.config.feed import Feed
from tidelake.decode.masker import MaskNames
from tidelake.errors import ConfigError, ContractError
from tidelake.history.ddl.changes import TableDef
from tidelake.history.event import RowSchema, SchemaColumn
from tidelake.history.incarnations import ALWAYS, Incarnation
from tidelake.io.storage import open_store
from tidelake.lake.columns.cells import NAMES_SENT
from tidelake.lake.tables import bucket_column, key_columns, value_rules
from tidelake.order.arrow.table_jobs import arrow_columns
from tidelake.order.change_sequence import sequence_of
from tidelake.order.table_rows import TableRows
from tidelake.seed.export_source import ExportJob, reading_of
from tidelake.seed.exports.dialect import Dialect
from tidelake.seed.exports.export_files import ExportTable
from tidelake.seed.exports.export_rows import check_columns
from tidelake.wire.masks import marks_of, masked_schema

Refusal = ConfigError | ContractError


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportAt:
    """An export: its URI, its TSO, and the format of its text files."""

    source: str
    ts: int
    dialect: Dialect


def export_job(feed: Feed, export: ExportAt, t: ExportTable, i: Incarnation, run: str = "", first: int = 0) -> ExportJob:
    """Return what workers need to read a table's files.

    Args:
        feed: The feed.
        export: The export.
        t: The table in it.
        i: The table as its definition makes it.
        run: Name of the run.
        first: Number of the table's first file.

    Raises:
        ConfigError: A column cannot have its mask.
        ContractError: UNKNOWN_TYPE: no lake type for a column.
    """
    table = _table_rows(feed, i)
    table.clear_cells()  # none: all masks are applied while the files are read
    return ExportJob(
        export_uri=export.source,
        lake_uri=feed.lake.uri,
        feed=feed.name,
        run=run,
        ts=export.ts,
        database=t.database,
        table=t.table,
        row_schema=_row_schema(i).json,
        may_lack=[c.name for c in i.columns if value_rules(feed, i, c).mask == "drop"],
        files=list(t.files),
        first=first,
        dialect=export.dialect,
        time_zone=feed.time_zone,
        names_sent=feed.protocol in NAMES_SENT,
        columns=arrow_columns(table, {c.id: c.lake_name for c in i.columns}),
        key=list(i.key),
        masks=MaskNames(marks=marks_of(feed)),
    )


def refusals(
    feed: Feed, export: ExportAt, tables: Mapping[str, tuple[Incarnation, ExportTable]], defined: Mapping[str, TableDef]
) -> list[Refusal]:
    """Return why tables cannot be loaded, one error for each such table.

    Args:
        feed: The feed.
        export: The export.
        tables: The tables by name, `db.table`.
        defined: Their definitions by name.
    """
    out: list[Refusal] = []
    for name, (i, t) in tables.items():
        try:
            job = export_job(feed, export, t, i)
            if any(c.stored and c.name not in job.may_lack for c in defined[name].columns):
                _check_columns(job)
        except ConfigError as e:
            out.append(e)
        except ContractError as e:
            out.append(ContractError(f"{name}: {e.message}", code=e.code, remedy=e.remedy))
    return out


def _check_columns(job: ExportJob) -> None:
    """Raise what a worker would raise for the columns of the first file."""
    for file in job.files[:1]:
        with tempfile.TemporaryDirectory(prefix="tidelake-seed-") as folder:
            path = Path(folder) / "file"
            open_store(job.export_uri).download(file.key, path)
            check_columns(path, file, reading_of(job))


def _table_rows(feed: Feed, i: Incarnation) -> TableRows:
    """Description of the export's rows, as for a window's rows. They are at the TSO at which the table begins for later rows."""
    masked = masked_schema(_row_schema(i), marks_of(feed), i.names[0].database, i.names[0].table)
    born = replace(i, segments=(replace(i.segments[0], after_ts=ALWAYS),))
    return TableRows(
        feed=feed,
        incarnation=born,
        names=i.names,
        row_schemas=(masked,),
        bucket=bucket_column(key_columns(feed, i, i.columns)),
        buckets=1,
        sequence=sequence_of(0, 0, 0, by_arrival=False),  # an export makes no changes
    )


def _row_schema(i: Incarnation) -> RowSchema:
    """RowSchema of the rows: all columns of CREATE TABLE."""
    return RowSchema(
        tuple(SchemaColumn(c.name, c.type.name, c.id in i.key, full_type=c.type.sql, elements=c.type.elements) for c in i.columns)
    )
