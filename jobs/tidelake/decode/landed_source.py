"""Reads landed objects in workers, decodes them, and returns events or writes files of them."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel

from tidelake.config.options import SinkOptions
from tidelake.config.policy import HandleOnly
from tidelake.decode.batch_numbers import PROTOCOL as NUMBERED
from tidelake.decode.batch_numbers import numbered
from tidelake.decode.event_files import FILES, EventsPlace, write_events
from tidelake.decode.known import KnownTables, columns_of
from tidelake.decode.late_cells import PROTOCOLS
from tidelake.decode.masker import MaskNames, masker
from tidelake.decode.positions import Origins, placed
from tidelake.decode.selected_rows import in_one, selected
from tidelake.decode.shelf import LakeShelf
from tidelake.history.event import EVENT, MESSAGE
from tidelake.io.avro_schemas import handed_over, schema_source
from tidelake.io.storage import open_store
from tidelake.land.store.landed import read_landed
from tidelake.land.store.manifest import Landed
from tidelake.protocols import Context, decode
from tidelake.protocols.claim_files import claim_files
from tidelake.protocols.frozen_schemas import frozen_schemas
from tidelake.spark.part_reader import PartReader
from tidelake.spark.worker_secrets import Secrets
from tidelake.wire.statements import may_hold_statements

BATCH_BYTES = 8 << 20
BATCH_MESSAGES = 10_000


class DecodeJob(BaseModel):
    """Description of a decode run for workers: the feed's landed objects, as in their manifest, and the decoding options."""

    lake_uri: str
    feed: str
    objects: list[Landed]
    protocol: str
    options: SinkOptions
    avro_schemas: str | None = None  # the location for messages
    avro_here: dict[str, str] | None = None  # its schemas, if only the driver's machine may have it
    claim_check: str | None = None
    handle_only: HandleOnly = "quarantine"
    time_zone: str = "UTC"
    tables: KnownTables = []
    refuse_mismatches: bool = False
    origins: Origins | None = None  # for a feed whose commit ts come from offsets
    masks: MaskNames = MaskNames()  # the key is in the secrets
    statements_only: bool = False  # read only the statements, unmasked
    parts: list[list[str]] = []  # keys by the task that reads them; empty: a task per object


class LandedReader(PartReader[Sequence[str]]):
    """Reads EVENT rows. With `into` it writes them to files, and its rows describe the files (event_files.FILES).

    The files belong to no table until they are committed. A part is an object, or one of `into` or of the job.
    """

    def __init__(self, job: DecodeJob, into: EventsPlace | None = None) -> None:
        parts = into.parts if into else job.parts or [[o.key] for o in job.objects]
        super().__init__(parts, FILES if into else EVENT)
        self.job, self.into = job, into
        self._landed = {o.key: o for o in job.objects}

    def rows(self, part: Sequence[str], secrets: Secrets) -> Iterator[pa.RecordBatch]:
        events = chain.from_iterable(self._events(key, secrets) for key in part)
        return events if self.into is None else write_events(events, self.into)

    def _events(self, key: str, secrets: Secrets) -> Iterator[pa.RecordBatch]:
        if self.job.statements_only:
            yield from self._statements(key)
            return
        context, masked = context_of(self.job), masker(self.job.masks, secrets.mask_key.encode())
        seen: set[int] = set()
        for messages in _messages(_opened(self.job, self._landed[key])):
            events = decoded(self.job.protocol, messages, context, self.job.origins)
            yield _only_new_schemas(masked(_incomplete_rejected(events, messages, self.job.handle_only)), seen)

    def _statements(self, key: str) -> Iterator[pa.RecordBatch]:
        context, parquet = context_of(self.job), _opened(self.job, self._landed[key])
        for messages in _messages(parquet):
            some = may_hold_statements(self.job.protocol, messages, self.job.options)
            events = decoded(self.job.protocol, some, context, self.job.origins)
            yield events.filter(pc.equal(events.column("kind"), "ddl"))


def decoded(protocol: str, messages: pa.RecordBatch, context: Context, begins: Origins | None) -> pa.RecordBatch:
    """Return the EVENT rows of messages. begins: of a feed ordered by offsets; then messages of one topic and partition, in order."""
    events = decode(protocol, messages, context)
    if begins is None:
        return events
    return placed(numbered(events, messages) if protocol == NUMBERED else events, begins)


def context_of(job: DecodeJob) -> Context:
    """Return the decoders' context for a job."""
    plain = Context(
        options=job.options,
        columns=columns_of(job.tables),
        types_later=job.protocol in PROTOCOLS,
        time_zone=job.time_zone,
        refuse_mismatches=job.refuse_mismatches,
    )
    if not job.avro_schemas:
        files = claim_files(job.claim_check) if job.claim_check else None
        return replace(plain, claim_file=files, shelf=LakeShelf(open_store(job.lake_uri), job.feed))
    here = job.avro_here
    source = schema_source(job.avro_schemas, Path()) if here is None else handed_over(job.avro_schemas, here)
    return replace(plain, avro_schema=frozen_schemas(source, job.lake_uri, job.feed))


def _opened(job: DecodeJob, landed: Landed) -> pq.ParquetFile:
    """Return a landed object. Raises OrderError (LANDED_DAMAGED)."""
    return pq.ParquetFile(io.BytesIO(read_landed(open_store(job.lake_uri), job.feed, landed)))


def _messages(parquet: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    """Yield the MESSAGE batches of a landed object, cut by bytes as well as by rows."""
    for batch in parquet.iter_batches(_at_once(parquet.metadata), columns=MESSAGE.names):
        start = 0
        for end in _cuts(batch):
            yield batch.slice(start, end - start)
            start = end


def _at_once(metadata: pq.FileMetaData) -> int:
    """The number of messages to read at once, about BATCH_BYTES of average ones: Parquet's reader copies what it has to grow."""
    size = sum(metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups))
    return max(1, min(BATCH_MESSAGES, BATCH_BYTES * int(metadata.num_rows) // max(int(size), 1)))


def _cuts(batch: pa.RecordBatch) -> list[int]:
    sizes = pc.add(*(pc.fill_null(pc.cast(pc.binary_length(batch.column(c)), pa.int64()), 0) for c in ("key", "value")))
    parts = pc.divide(pc.cumulative_sum(sizes), BATCH_BYTES).to_numpy(zero_copy_only=False)
    ends = [i + 1 for i in range(len(parts) - 1) if parts[i] != parts[i + 1]] if len(parts) and parts[0] != parts[-1] else []
    return [*ends, batch.num_rows]


def _incomplete_rejected(events: pa.RecordBatch, messages: pa.RecordBatch, policy: HandleOnly) -> pa.RecordBatch:
    """Reject rows for which the message carries only the handle, with all events of their message. With the policy `accept`, reject only
    rows whose claim-check file could not be fetched.
    """
    incomplete = pc.is_valid(events.column("claim_check"))
    if policy == "quarantine":
        incomplete = pc.or_(incomplete, pc.fill_null(events.column("handle_only"), False))
    if not pc.any(incomplete).as_py():
        return events
    bad = pc.unique(events.filter(incomplete).column("offset"))
    kept = events.filter(pc.invert(pc.and_(pc.is_valid(events.column("offset")), pc.is_in(events.column("offset"), bad))))
    rows = messages.filter(pc.is_in(messages.column("offset"), bad))
    claims = events.filter(pc.is_valid(events.column("claim_check")))
    files = dict(zip(claims.column("offset").to_pylist(), claims.column("claim_check").to_pylist(), strict=True))
    rejected = [_incomplete(m, files.get(m["offset"])) for m in rows.to_pylist()]
    return pa.concat_batches([kept, pa.RecordBatch.from_pylist(rejected, schema=EVENT)])


def _incomplete(message: dict[str, object], file: str | None) -> dict[str, object]:
    why = "is not in the message, only its handle key (large-message-handle-option)"
    if file is not None:
        why = f"is in the claim-check file {file}; set [source] claim_check in feed.toml to the location of such files"
    return {
        **{name: message[name] for name in ("topic", "partition", "offset", "timestamp_ms")},
        "ordinal": 0,
        "kind": "rejected",
        "handle_only": False,
        "error_code": "CLAIM_CHECK" if file is not None else "HANDLE_ONLY",
        "error": f"the row {why}",
        "raw_key": message["key"],
        "raw_value": message["value"],
    }


def _only_new_schemas(events: pa.RecordBatch, seen: set[int]) -> pa.RecordBatch:
    """Drop schemas that the object has sent before."""
    row_schemas = events.filter(pc.equal(events.column("kind"), "row_schema")).column("row_schema").to_pylist()
    known = pa.array([s for s in row_schemas if s in seen], pa.int64())
    seen.update(row_schemas)
    if not len(known):
        return events
    old = pc.and_(pc.equal(events.column("kind"), "row_schema"), pc.is_in(events.column("row_schema"), known))
    return in_one(selected(events, pc.invert(old)))
