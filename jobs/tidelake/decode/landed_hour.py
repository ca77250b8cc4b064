"""Decodes one landed hour: its events replace those of an earlier run in one commit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from tidelake.config.feed import Feed
from tidelake.config.lake_paths import decoded_key
from tidelake.decode.event_files import place
from tidelake.decode.known import known_tables, opening
from tidelake.decode.landed_source import DecodeJob, LandedReader
from tidelake.decode.mask_names import mask_names
from tidelake.decode.masker import MaskNames
from tidelake.decode.positions import Origins, origins
from tidelake.decode.record import DecodeRecord, decoder_id, record_of
from tidelake.decode.refused import most_refused
from tidelake.decode.sink_schemas import version_schemas
from tidelake.decode.statements import since
from tidelake.decode.waiting import has_come
from tidelake.errors import StorageError
from tidelake.history.event import EVENT
from tidelake.io.avro_schemas import schemas_here
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Cut
from tidelake.lake.cuts import base_of, newest_cut
from tidelake.lake.data_files import WrittenFile, file_schema, replace_files
from tidelake.lake.events import control_rows, ensure_events
from tidelake.lake.opened import Lake
from tidelake.land.store.manifest import Landed, Manifest, generations
from tidelake.spark.run_parts import Workers
from tidelake.spark.spread import in_parts
from tidelake.tso import MOST, format_hour, last_of, parse_hour
from tidelake.wire.masks import marks_at_decode
from tidelake.wire.statements import WITHOUT_DDL

_DDL = ["commit_ts", "database", "ddl"]
_HOUR = pa.field("hour", pa.string())


def decode_landed(lake: Lake, hour: str, manifest: Manifest) -> DecodeRecord:
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


def _overwrite(lake: Lake, hour: str, manifest: Manifest, events: LakeTable, decoder: str) -> None:
    """Let the workers write the hour's files, then replace the hour's earlier files in one commit."""
    feed, workers = lake.feed, lake.workers([o.size for o in manifest.objects])
    versions = version_schemas(feed, [s.key for s in manifest.sources])
    job = decode_job(feed, manifest.objects, versions, origins(manifest) if feed.by_offsets else None)
    parts = in_parts(workers.tasks, {o.key: o.size for o in manifest.objects})
    if job.objects and job.masks.marks:
        asked = [o for o in manifest.objects if _may_hold_statements(feed, manifest, o)]
        of_tasks = in_parts(workers.tasks, {o.key: o.size for o in asked})
        asking = job.model_copy(update={"masks": MaskNames(), "statements_only": True, "objects": asked, "parts": of_tasks})
        job = job.model_copy(update={"masks": _mask_names(lake, workers, parse_hour(hour), asking, events)})
    into = place(events.table.location(), file_schema(events, pa.schema([_HOUR, *EVENT])), hour, parts)
    rows = workers.rows(LandedReader(job, into)) if job.objects else []
    files = [WrittenFile(path=r["path"], partition=(hour, r["kind"]), size=r["size"], footer=bytes(r["footer"])) for r in rows]
    said = {"hour": hour, "generation": str(manifest.generation), "decoder": decoder}
    replace_files(lake.catalog, events.identifier, {"hour": hour}, files, {f"tidelake.{k}": v for k, v in said.items()})


def _may_hold_statements(feed: Feed, manifest: Manifest, landed: Landed) -> bool:
    """Whether a landed object may hold a statement, by what landing counted in its partition."""
    counted = manifest.partitions[landed.topic][landed.partition].statements
    return counted != 0 or manifest.protocol != feed.protocol or feed.options.large_message_handle_compression != "none"


def _mask_names(lake: Lake, workers: Workers, hour: datetime, asking: DecodeJob, events: LakeTable) -> MaskNames:
    """Return the masked names of an hour's rows: those of the tables of the cut before it, and of the statements since then.

    workers: they read the hour's statements, with the job `asking`. Raises OrderError for a statement about a masked table that cannot be
    followed.
    """
    feed, store, name = lake.feed, lake.store, format_hour(hour)
    cut = newest_cut(lake.catalog, store, feed.name)
    if cut is not None and cut.hour >= name:
        cut = _cut_before(lake, name, cut)
    rows: list[dict[str, Any]] = []
    if feed.protocol not in WITHOUT_DDL:
        found = workers.rows(LandedReader(asking), _DDL) if asking.objects else []
        first = min([*cut.open_hours, cut.hour]) if cut else ""
        earlier = [h for h in generations(store, feed.name) if first <= h < name]
        rows = [*control_rows(events, "ddl", earlier, _DDL), *found]
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
        masks=MaskNames(marks=marks_at_decode(feed)),
    )
