"""The decode stage: writes the landed objects of an hour as rows of the events table, in one atomic overwrite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import decoded_key
from tidelake.decode.event_files import place
from tidelake.decode.known import known_tables, opening
from tidelake.decode.landed_source import DecodeJob, LandedReader
from tidelake.decode.mask_names import mask_names
from tidelake.decode.masker import MaskNames
from tidelake.decode.positions import Origins, origins
from tidelake.decode.record import DecodeRecord, decoder_id, read_record, record_of
from tidelake.decode.refused import most_refused
from tidelake.decode.sink_schemas import version_schemas
from tidelake.decode.statements import WITHOUT_DDL, since
from tidelake.decode.waiting import has_come
from tidelake.errors import OrderError, StorageError
from tidelake.history.event import EVENT
from tidelake.io.avro_schemas import schemas_here
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Cut
from tidelake.lake.cuts import base_of, newest_cut
from tidelake.lake.data_files import WrittenFile, file_schema, replace_files
from tidelake.lake.events import control_rows, ensure_events
from tidelake.lake.opened import Lake
from tidelake.land.store.manifest import Landed, Manifest, all_newest, generations, newest
from tidelake.spark.part_reader import read_parts
from tidelake.spark.spread import in_parts
from tidelake.spark.worker_errors import errors_of_workers
from tidelake.tso import MOST, format_hour, last_of, parse_hour
from tidelake.wire.masks import marks_of

if TYPE_CHECKING:
    pass


_DDL = ["commit_ts", "database", "ddl"]
_HOUR = pa.field("hour", pa.string())
SCHEMAS_BY_MESSAGE = frozenset({"simple-json", "simple-avro"})  # protocols whose rows refer to a schema that another message carries


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeReport:
    """Result of a decode run. changed is False where the same decoder had decoded the same generation already.

    again: earlier hours that were decoded again, because the table schema that their rows waited for has arrived.
    """

    record: DecodeRecord
    changed: bool
    tables: dict[str, int] = field(default_factory=dict)
    again: tuple[str, ...] = ()


def decode_hour(lake: Lake, hour: datetime, *, redo: bool = False) -> DecodeReport:
    """Decode the newest generation of an hour. Decode earlier open hours again if their waiting rows can be decoded now.

    Args:
        lake: The feed's opened lake.
        hour: First instant of the hour, UTC.
        redo: Decode again even if the same decoder decoded the same generation.

    Raises:
        OrderError: NOT_LANDED; LANDED_DAMAGED for a landed object whose bytes changed.
    """
    feed, store, name = lake.feed, lake.store, format_hour(hour)
    manifest = newest(store, feed.name, name)
    if manifest is None:
        raise OrderError(f"hour {name} of feed {feed.name} is not landed", code="NOT_LANDED", remedy=_land_first(feed, name))
    before = read_record(store, feed.name, name)
    same = before is not None and (before.generation, before.decoder) == (manifest.generation, decoder_id(feed))
    if before is not None and same and not redo and not has_come(store, feed.name, before.waiting):
        report = DecodeReport(record=before, changed=False)
    else:
        report = DecodeReport(record=_decoded(lake, name, manifest), changed=True)
    again = _decode_waiting(lake, name) if feed.protocol in SCHEMAS_BY_MESSAGE else []
    return replace(report, again=tuple(again))


def _decoded(lake: Lake, hour: str, manifest: Manifest) -> DecodeRecord:
    """Decode an hour; decode it a second time if its own messages bring schemas that its other rows wait for."""
    feed, catalog, store = lake.feed, lake.catalog, lake.store
    table, decoder = ensure_events(catalog, feed), decoder_id(feed)
    _overwrite(lake, hour, manifest, table, decoder)
    record = record_of(catalog.load(table.identifier), manifest, hour, decoder)
    if has_come(store, feed.name, record.waiting):
        _overwrite(lake, hour, manifest, table, decoder)
        record = record_of(catalog.load(table.identifier), manifest, hour, decoder)
    messages = sum(p.count for numbers in manifest.partitions.values() for p in numbers.values())
    found = most_refused(feed, catalog.load(table.identifier), hour, messages, record.rejected)
    record = record.model_copy(update={"refused": found})
    store.write(decoded_key(feed.name, hour), record.model_dump_json(indent=1).encode())
    return record


def _decode_waiting(lake: Lake, before: str) -> list[str]:
    """Decode earlier open hours again if a table schema that they wait for has arrived, and return them."""
    feed, store = lake.feed, lake.store
    cut = newest_cut(lake.catalog, store, feed.name)
    since = min([*cut.open_hours, cut.hour]) if cut else ""
    manifests = all_newest(store, feed.name, since=since, until=before)
    open_hours = {h for h in manifests if h < before and (cut is None or h > cut.hour or h in cut.open_hours)}
    again = []
    for hour in sorted(open_hours):
        record = read_record(store, feed.name, hour)
        if record is not None and has_come(store, feed.name, record.waiting):
            _decoded(lake, hour, manifests[hour])
            again.append(hour)
    return again


def _overwrite(lake: Lake, hour: str, manifest: Manifest, events: LakeTable, decoder: str) -> None:
    """Let the workers write the hour's files, then replace the hour's earlier files in one commit."""
    feed, spark = lake.feed, lake.spark
    versions = version_schemas(feed, [s.key for s in manifest.sources])
    job = decode_job(feed, manifest.objects, versions, origins(manifest) if feed.by_offsets else None)
    parts = in_parts(spark, {o.key: o.size for o in manifest.objects})
    if job.objects and job.masks.marks:
        asking = job.model_copy(update={"masks": MaskNames(), "statements_only": True, "parts": parts})
        job = job.model_copy(update={"masks": _mask_names(lake, parse_hour(hour), asking, events)})
    into = place(events.table.location(), file_schema(events, pa.schema([_HOUR, *EVENT])), hour, parts)
    with errors_of_workers():
        rows = read_parts(spark, LandedReader(job, into)).collect() if job.objects else []
    files = [WrittenFile(path=r["path"], partition=(hour, r["kind"]), size=r["size"], footer=bytes(r["footer"])) for r in rows]
    said = {"hour": hour, "generation": str(manifest.generation), "decoder": decoder}
    replace_files(lake.catalog, events.identifier, {"hour": hour}, files, {f"tidelake.{k}": v for k, v in said.items()})


def _mask_names(lake: Lake, hour: datetime, asking: DecodeJob, events: LakeTable) -> MaskNames:
    """Return the masked names of an hour's rows: those of the tables of the cut before it, and of the statements since then.

    asking: the job that reads the hour's statements. Raises OrderError for a statement about a masked table that cannot be followed.
    """
    feed, store, name = lake.feed, lake.store, format_hour(hour)
    cut = newest_cut(lake.catalog, store, feed.name)
    if cut is not None and cut.hour >= name:
        cut = _cut_before(lake, name, cut)
    rows: list[dict[str, Any]] = []
    if feed.protocol not in WITHOUT_DDL:
        with errors_of_workers():
            found = read_parts(lake.spark, LandedReader(asking)).select(_DDL).collect()
        first = min([*cut.open_hours, cut.hour]) if cut else ""
        earlier = [h for h in generations(store, feed.name) if first <= h < name]
        rows = [*control_rows(events, "ddl", earlier, _DDL), *(r.asDict() for r in found)]
    until = last_of(hour + timedelta(hours=1)) if feed.watermark.source == "metadata" else MOST
    return mask_names(feed, opening(feed, cut), since(feed, cut, rows, until))


def _cut_before(lake: Lake, hour: str, newest: Cut) -> Cut | None:
    """Return the cut that a published hour continues; the newest cut if that one is not retained."""
    try:
        return base_of(lake.catalog, lake.store, lake.feed.name, hour).cut
    except StorageError:
        return newest


def decode_job(
    feed: Feed, objects: Sequence[Landed], versions: Sequence[tuple[str, str, str]] = (), begins: Origins | None = None
) -> DecodeJob:
    """Return the description of a decode run that workers need.

    Args:
        feed: The feed's settings.
        objects: The landed objects to decode.
        versions: Column schemas that the archive itself records.
        begins: First offset of each partition, for a feed ordered by offsets.

    Raises:
        ContractError, ConfigError: Avro schemas on this machine are missing.
    """
    location, base = feed.avro.schemas if feed.avro else None, feed.folder.resolve()
    here = schemas_here(location, base) if location else None
    return DecodeJob(
        lake_uri=feed.lake.uri,
        feed=feed.name,
        objects=list(objects),
        protocol=feed.protocol,
        options=feed.options,
        avro_schemas=str(base / location) if location and "://" not in location else location,
        avro_here=here,
        claim_check=feed.source.claim_check,
        handle_only=feed.policy.handle_only,
        time_zone=feed.time_zone,
        tables=[*known_tables(feed), *versions],
        refuse_mismatches=feed.policy.checksum == "quarantine",
        origins=begins,
        masks=MaskNames(marks=marks_of(feed) if feed.policy.mask_at == "decode" else []),
    )


def _land_first(feed: Feed, hour: str) -> str:
    return f"run `tidelake land --feed {feed.name} --hour {hour}` first"
