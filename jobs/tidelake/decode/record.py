"""The record of what decode found in an hour, for order, status and reports: without Spark, and without the decoders."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from tidelake import __version__
from tidelake.config.feed import Feed
from tidelake.config.lake_paths import decoded_key
from tidelake.decode.known import known_tables, needs_tables
from tidelake.decode.refused import RefusedMessages
from tidelake.decode.waiting import CODE as WAITING
from tidelake.decode.waiting import WaitingFor, waiting_for
from tidelake.errors import OrderError
from tidelake.history.contract import read_recorded_ddl
from tidelake.io.documents import Document, find_document
from tidelake.io.storage import Store
from tidelake.io.texts import plural
from tidelake.lake.catalog import LakeTable
from tidelake.lake.events import control_batches, control_rows
from tidelake.land.store.manifest import Manifest
from tidelake.wire.masks import marks_of

WRONG_PROTOCOL = "WRONG_PROTOCOL"


class PartitionWatermark(BaseModel):
    """The largest resolved ts (TSO) of one topic and partition in one hour, and its offset."""

    resolved_ts: int
    offset: int


class DecodeRecord(Document, BaseModel):
    """Result of decoding an hour. Written after the events, read by order and status. Decoding again recreates a lost record."""

    hour: str
    generation: int
    decoder: str
    snapshot_id: int
    counts: dict[str, int]  # kind → rows
    max_commit_ts: int | None  # of row events and statements
    max_timestamp_ms: int | None
    watermarks: dict[str, dict[int, PartitionWatermark]]  # topic → partition
    rejected: dict[str, int] = {}  # by error code
    waiting: list[WaitingFor] = []  # table schemas that rejected rows wait for, with counts
    refused: RefusedMessages | None = None  # set if at least half of the messages were refused

    @property
    def quarantined(self) -> str:
        """The number of refused messages by code, as a message; empty without one."""
        if self.refused is not None:
            return str(self.refused)
        codes = ", ".join(f"{count:,} {code}" for code, count in sorted(self.rejected.items()))
        return f"{plural(sum(self.rejected.values()), 'message')} quarantined: {codes}" if codes else ""


def read_record(store: Store, feed: str, hour: str) -> DecodeRecord | None:
    """Return what decode found in an hour, None if it was not decoded."""
    return find_document(store, decoded_key(feed, hour), DecodeRecord)


def decoder_id(feed: Feed) -> str:
    """Return a hash that changes whenever the same bytes may decode differently: version, protocol, options, facts that messages lack."""
    said = [__version__, feed.protocol, feed.options.model_dump(), feed.avro and feed.avro.schemas]
    unsaid = [feed.time_zone, known_tables(feed)] if needs_tables(feed) else []
    others: list[str] = [feed.policy.checksum] if feed.policy.checksum != "warn" else []
    others += [feed.source.claim_check] if feed.source.claim_check else []
    others += [feed.policy.handle_only] if feed.policy.handle_only != "quarantine" else []
    others += [feed.watermark.source] if feed.by_offsets else []
    if feed.policy.mask_at == "decode" and marks_of(feed):
        others += [str(marks_of(feed)), str([(d.commit_ts, d.database, d.query) for d in read_recorded_ddl(feed.folder)])]
    return hashlib.sha256(json.dumps(said + unsaid + others, sort_keys=True).encode()).hexdigest()[:16]


def record_of(events: LakeTable, manifest: Manifest, hour: str, decoder: str) -> DecodeRecord:
    """Return the record of an hour's current events."""
    snapshot = events.main
    counts, max_ts, max_ms = _file_facts(events, hour, snapshot)
    rejected = Counter(r["error_code"] for r in control_rows(events, "rejected", [hour], ["error_code"], snapshot))
    return DecodeRecord(
        hour=hour,
        generation=manifest.generation,
        decoder=decoder,
        snapshot_id=snapshot,
        counts=counts,
        max_commit_ts=max_ts,
        max_timestamp_ms=max_ms,
        watermarks=_watermarks(control_batches(events, "resolved", [hour], ["topic", "partition", "offset", "commit_ts"], snapshot)),
        rejected=dict(rejected),
        waiting=waiting_for(events, hour, snapshot) if rejected[WAITING] else [],
    )


def _file_facts(events: LakeTable, hour: str, snapshot: int) -> tuple[dict[str, int], int | None, int | None]:
    """Return rows by kind, the largest commit ts of the hour's row events and statements, and the largest timestamp of row events, from the
    files' metrics alone.
    """
    counts: Counter[str] = Counter()
    largest: dict[str, list[int]] = {"commit_ts": [], "timestamp_ms": []}
    kinds = {"commit_ts": ("row", "ddl"), "timestamp_ms": ("row",)}
    for file in events.files({"hour": hour}, list(largest), snapshot):
        kind = file.partition[1]
        counts[kind] += file.rows
        for name, found in largest.items():
            found += [file.upper[name]] if kind in kinds[name] and name in file.upper else []
    return dict(counts), max(largest["commit_ts"], default=None), max(largest["timestamp_ms"], default=None)


def _watermarks(batches: Any) -> dict[str, dict[int, PartitionWatermark]]:
    out: dict[str, dict[int, PartitionWatermark]] = {}
    for batch in batches:
        best = pa.table(batch).group_by(["topic", "partition"]).aggregate([("commit_ts", "max")])
        for row in best.to_pylist():
            at = batch.filter(
                pc.and_(
                    pc.and_(pc.equal(batch.column("topic"), row["topic"]), pc.equal(batch.column("partition"), row["partition"])),
                    pc.equal(batch.column("commit_ts"), row["commit_ts_max"]),
                )
            )
            new = PartitionWatermark(resolved_ts=row["commit_ts_max"], offset=pc.min(at.column("offset")).as_py())
            of_topic = out.setdefault(row["topic"], {})
            old = of_topic.get(row["partition"])
            if old is None or (new.resolved_ts, -new.offset) > (old.resolved_ts, -old.offset):
                of_topic[row["partition"]] = new
    return out


@contextmanager
def refusals_named(records: Mapping[str, DecodeRecord]) -> Iterator[None]:
    """Name refused messages as the cause when an hour blocks: an OrderError inside the block becomes one that begins with them."""
    try:
        yield
    except OrderError as e:
        refused = next((r.refused for _, r in sorted(records.items(), reverse=True) if r.refused is not None), None)
        if refused is None or e.code == WRONG_PROTOCOL:
            raise
        if refused.protocol is None:
            raise OrderError(f"{refused}: {e.message}", code=e.code, at=e.at, remedy=e.remedy) from e
        raise OrderError(str(refused), code=WRONG_PROTOCOL, remedy=refused.remedy) from e
