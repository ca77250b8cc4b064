"""The manifest of a landed hour: immutable, one JSON object per generation (docs/architecture.md 7, 9).

It is a function of the archive's objects and the feed's settings: landing the same objects again gives the same bytes. The docstrings of
the models are the descriptions in schemas/manifest.schema.json.
"""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict

from tidelake.config.finding_kinds import Severity
from tidelake.config.lake_paths import manifest_key, manifests
from tidelake.io.documents import Document, read_document, schema_of
from tidelake.io.storage import Store
from tidelake.land.store.ranges import Ranges, union

_KEY = re.compile(r"hour=(?P<hour>\d{4}-\d{2}-\d{2}T\d{2})/(?P<generation>\d+)\.json")


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SourceFile(_Record):
    """What was read: an archived object, or offsets of a live topic (`kafka:<topic>/<partition>/<first>-<last>`).

    size: bytes in the archive, of a live topic's keys and values. etag, sha256: of the object, None for a live topic.
    """

    key: str
    size: int
    etag: str | None = None
    sha256: str | None = None


class Landed(_Record):
    """A canonical object. first, last: offsets; size: bytes of the object; bytes: of the messages' keys and values."""

    key: str
    topic: str
    partition: int
    first: int
    last: int
    count: int
    bytes: int
    size: int
    sha256: str


class LandedWatermarks(_Record):
    """Resolved events among the landed messages: how many, their largest resolved ts (TSO, as int64) and the first offset that has it."""

    count: int
    resolved_ts: int
    offset: int


class PartitionFacts(_Record):
    """What the hour holds of one topic and partition.

    ranges: landed offsets; gaps: offsets between them; duplicates: records that occur more than once with the same content, not
    counting the one that stayed; conflicts: offsets with different contents, of which nothing is landed, and the objects that hold them.

    legal_gaps: offsets of which a live topic, or objects of `tidelake archive`, say that the log holds no message there (transaction
    markers, aborted messages, compaction).

    Of a live topic, and of an archive whose paths have no hours: start, next: the hour's offsets, from the first up to, not including, the
    one where the next hour goes on, null while no message of a later hour was in the archive. Of a live topic, each of them is in ranges,
    in legal_gaps or in expired (retention deleted it before it was landed).

    lacking: how many of the objects that were read have no headers, no timestamps or no keys at all, of layouts that may leave them out.

    watermarks: null where there is no resolved event, or none that is seen without decoding (wire.resolved_ts).

    statements: of a feed whose columns are masked by decode, how many messages may hold a DDL statement (wire.statements); else null.
    """

    first: int | None
    last: int | None
    count: int
    bytes: int
    ranges: Ranges
    gaps: Ranges
    duplicates: int = 0
    conflicts: Ranges = ()
    conflict_sources: tuple[str, ...] = ()
    min_timestamp_ms: int | None
    max_timestamp_ms: int | None
    start: int | None = None
    next: int | None = None
    legal_gaps: Ranges = ()
    expired: Ranges = ()
    watermarks: LandedWatermarks | None = None
    statements: int | None = None
    lacking: dict[str, int] = {}

    @property
    def covered(self) -> Ranges:
        """The offsets of which nothing is missing: those that are landed, and those that never held a message."""
        return union([self.ranges, self.legal_gaps]) if self.legal_gaps else self.ranges


class Finding(_Record):
    """Something a person should know. code: one of findings.CODES; topic and partition where it concerns one."""

    code: str
    severity: Severity
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    detail: str
    remedy: str


class Manifest(Document, _Record):
    """One generation of one hour. findings: as they were when the hour was landed; topic_ids: of live topics, as Kafka gives them, those of
    earlier hours with them: a topic that is recreated under its name has another one."""

    feed: str
    hour: str
    generation: int
    protocol: str
    layout: str
    sources: tuple[SourceFile, ...]
    objects: tuple[Landed, ...]
    partitions: dict[str, dict[int, PartitionFacts]]
    findings: tuple[Finding, ...]
    topic_ids: dict[str, str] = {}

    def to_json(self) -> bytes:
        """Return the manifest as it is stored."""
        return self.model_dump_json(indent=1).encode()


def json_schema() -> bytes:
    """Return the JSON Schema of manifests: schemas/manifest.schema.json."""
    return schema_of(Manifest)


def newest(store: Store, feed: str, hour: str) -> Manifest | None:
    """Return the newest generation of an hour (`2026-01-05T10`), None if the hour is not landed."""
    found = generations(store, feed, hour)
    return _read(store, feed, hour, found[hour]) if found else None


def all_newest(store: Store, feed: str, *, since: str = "", until: str | None = None) -> dict[str, Manifest]:
    """Return the newest generation of every landed hour from `since` up to and including `until`, ascending. Lists once, reads each."""
    found = generations(store, feed).items()
    return {hour: _read(store, feed, hour, n) for hour, n in found if since <= hour and (until is None or hour <= until)}


def generations(store: Store, feed: str, hour: str | None = None) -> dict[str, int]:
    """Return the number of the newest generation of every landed hour, ascending, or of one hour only."""
    prefix = manifests(feed)
    newest_of: dict[str, int] = {}
    for info in store.objects(prefix if hour is None else f"{prefix}hour={hour}/"):
        if found := _KEY.fullmatch(info.key.removeprefix(prefix)):
            newest_of[found["hour"]] = max(newest_of.get(found["hour"], 0), int(found["generation"]))
    return dict(sorted(newest_of.items()))


def _read(store: Store, feed: str, hour: str, generation: int) -> Manifest:
    return read_document(store, manifest_key(feed, hour, generation), Manifest)
