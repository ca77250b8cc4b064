"""Assign files of TiCDC's storage sink to hours (docs/reference/protocols.md 9.5, docs/reference/archives.md 6).

Paths contain a table version and at most the day on which the sink wrote, never an hour. The rule: an hour is landed once the sink's
checkpoint has passed its end. It takes, from every folder, the files after those of earlier hours, up to the last file with a commit ts
before the hour's end.

Every row that was committed in the hour is therefore in it or in an earlier one, because all rows up to the checkpoint are in files. To a
landed hour only a file is added that was missing between its others. Later files (a restarted changefeed writes rows again) belong to the
next hour that is landed, where rows published already are repeats. Hours are landed in order.

How far an hour takes the folders is written once, before its manifest, so that every later landing takes the same files.

A file that an index names after all others of its folder, and that does not exist, is lost in two cases. The checkpoint has passed the
moment when the index was written, so that the file's rows are older. Or the index is older than SINK_PATIENCE: the sink does not take that
long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.compute as pc
from pydantic import BaseModel

from tidelake.archives import Layout, Listing, Lost, SourceObject
from tidelake.archives.storage_sink import OFFSET_BITS, Absent, DataFile, checkpoint, commit_ts, list_sink
from tidelake.config.feed import Feed
from tidelake.config.finding_kinds import KINDS
from tidelake.config.lake_paths import sink_key
from tidelake.errors import Coordinates, LeaseError, OrderError, StorageError
from tidelake.io.documents import Document, find_document
from tidelake.io.storage import Store
from tidelake.io.texts import plural
from tidelake.land.frozen_sink import freeze_schemas
from tidelake.land.store.manifest import generations
from tidelake.land.timed import WholeObjects
from tidelake.tso import end_ts, format_hour, physical_ms, show

SINK_PATIENCE = timedelta(minutes=15)  # longest time between an index and the file that it names
LOST_FOR = timedelta(hours=24)  # an hour that ends this long after an index cannot lack the file that it names

_MS = 1000


class Fact(BaseModel):
    """Fact about a file: its smallest commit ts (TSO), None if no line has one."""

    etag: str
    first_ts: int | None


class SinkState(Document, BaseModel):
    """State after an hour: the number of the last landed file of every folder (topic/sequence), and what is known of files after it.

    schemas_frozen: the lake has all schema files that the sink had written up to the hour's end.
    """

    folders: dict[str, int] = {}
    ahead: dict[str, Fact] = {}
    schemas_frozen: bool = False


class SinkHour(WholeObjects):
    """The listing of one hour. `record` keeps what it took, before the manifest is written.

    Raises:
        StorageError: HOUR_OPEN while the checkpoint has not passed the hour.
        OrderError: HOUR_ORDER for an hour before a landed one; GAP where the last files of a folder are lost and that blocks the feed.
        LeaseError: LANDED_MEANWHILE, from `record`, if another run took other files.
    """

    def __init__(self, feed: Feed, archive: Store, lake: Store, hour: datetime, layout: Layout) -> None:
        self._feed, self._archive, self._lake, self._layout = feed, archive, lake, layout
        self._hour, self._end_ts = format_hour(hour), end_ts(hour)
        landed = list(generations(lake, feed.name))
        if landed and landed[-1] > self._hour and self._hour not in landed:
            raise OrderError(
                f"hour {self._hour} of feed {feed.name} was not landed before hour {landed[-1]}, which contains its files",
                code="HOUR_ORDER",
                remedy="hours of a storage sink are landed in order: continue after the last one",
            )
        before = max((h for h in landed if h < self._hour), default="")
        self._before = sink_state(lake, feed.name, before) or SinkState()
        self._after = sink_state(lake, feed.name, self._hour)
        self._facts = dict(self._before.ahead)
        self._state = SinkState()
        self._schema_files: tuple[str, ...] = ()

    def __call__(self) -> Listing:
        """Return the hour's files as they are now."""
        if self._after is None:
            self._refuse_open()
        self._state, objects = SinkState(folders=dict(self._before.folders), schemas_frozen=True), list[SourceObject]()
        partitions: dict[tuple[str, int], str] = {}
        sink = list_sink(self._archive, self._feed.source.date_separator)
        self._schema_files = sink.schema_files
        for (topic, sequence), files in groupby(self._wanted(sink.files), lambda f: (f.topic, f.sequence)):
            several = list(files)
            if (other := partitions.setdefault((topic, several[0].partition), sequence)) != sequence:
                raise StorageError(f"{topic}: the folders {other} and {sequence} have the same number", code="BAD_OBJECT")
            objects += map(_source, self._taken(several, f"{topic}/{sequence}"))
        lost = {absent: self._lost(absent) for absent in sink.absent if self._is_lost(absent, sink.checkpoint_ts)}
        self._refuse(list(lost.values()))
        doubts = (*sink.index_problems, *(str(absent) for absent in sink.absent if absent not in lost))
        return Listing(objects=tuple(sorted(objects)), doubts=doubts, lost=tuple(lost.values()))

    def record(self) -> None:
        """Write what the hour took, and the schema files."""
        if self._after is not None:
            return
        freeze_schemas(self._archive, self._lake, self._feed.name, self._schema_files)
        key, content = sink_key(self._feed.name, self._hour), self._state.model_dump_json().encode()
        if not self._lake.put_if_absent(key, content) and self._lake.read(key) != content:
            raise LeaseError(
                f"{self._lake.uri_of(key)}: another run took other files for hour {self._hour} at the same time",
                code="LANDED_MEANWHILE",
                remedy="land the hour again: it takes the files that the other run took",
            )

    def _is_lost(self, absent: Absent, checkpoint_ts: int | None) -> bool:
        """Whether the file is lost, and may hold rows of this hour or of one that ended recently."""
        passed = max(physical_ms(checkpoint_ts or 0), _now_ms() - _MS * SINK_PATIENCE.total_seconds())
        taken = (self._after or self._state).folders.get(f"{absent.file.topic}/{absent.file.sequence}", 0)
        recent = absent.since_ms >= physical_ms(self._end_ts) - _MS * LOST_FOR.total_seconds()
        return any(self._wanted([replace(absent.file, size=1)])) and taken >= absent.above and recent and absent.since_ms <= passed

    def _lost(self, absent: Absent) -> Lost:
        file = absent.file
        return Lost(topic=file.topic, partition=file.partition, first=absent.above + 1, last=file.number, said=str(absent))

    def _refuse(self, lost: Sequence[Lost]) -> None:
        """Refuse an hour that is not landed and write nothing. A file that comes back belongs to it, and a landed hour takes no more."""
        policy = self._feed.policy
        if lost and self._after is None and policy.severity("GAP", policy.gap_severity) == "critical":
            first = lost[0]
            raise OrderError(
                f"hour {self._hour}: {first.said}" + (f" (and {plural(len(lost) - 1, 'more folder')})" if len(lost) > 1 else ""),
                code="GAP",
                at=Coordinates(first.topic, first.partition, first.first << OFFSET_BITS),
                remedy=f"{KINDS['GAP'].remedy}; if the sink was stopped before it wrote the file, correct its index to name the "
                "existing file",
            )

    def _refuse_open(self) -> None:
        ts = checkpoint(self._archive)
        if ts is None or ts < self._end_ts:
            raise StorageError(
                f"the storage sink at {self._archive.uri} has its checkpoint at {'no time yet' if ts is None else show(ts)}, "
                f"before the end of hour {self._hour}",
                code="HOUR_OPEN",
                remedy="run again when the changefeed has passed the hour; is it running?",
            )

    def _wanted(self, files: Sequence[DataFile]) -> Iterator[DataFile]:
        pattern = self._feed.topic_pattern
        for f in files:
            if f.size and (pattern.fullmatch(f.topic) if pattern else f.topic in self._feed.topics):
                yield f

    def _taken(self, files: Sequence[DataFile], folder: str) -> Sequence[DataFile]:
        """Return the hour's files of one folder. files: in order of their numbers."""
        last = self._before.folders.get(folder, 0)
        new = [f for f in files if f.number > last]
        if self._after is not None:
            return [f for f in new if f.number <= self._after.folders.get(folder, last)]
        facts = [self._fact(f) for f in new]
        count = max((i for i, fact in enumerate(facts, 1) if fact.first_ts is not None and fact.first_ts <= self._end_ts), default=0)
        if count:
            self._state.folders[folder] = new[count - 1].number
        self._state.ahead |= {f.key: fact for f, fact in zip(new[count:], facts[count:], strict=True)}
        return new[:count]

    def _fact(self, f: DataFile) -> Fact:
        known = self._facts.get(f.key)
        if known is None or known.etag != f.etag:
            with TemporaryDirectory(prefix="tidelake-sink-") as folder:
                path = Path(folder) / "source"
                self._archive.download(f.key, path)
                known = self._facts[f.key] = Fact(etag=f.etag, first_ts=self._first_ts(path, _source(f)))
        return known

    def _first_ts(self, path: Path, source: SourceObject) -> int | None:
        found = (pc.min(commit_ts(b.column("value"), source, self._feed.options)).as_py() for b in self._layout.read(path, source))
        return min((ts for ts in found if ts is not None), default=None)


def sink_state(lake: Store, feed: str, hour: str) -> SinkState | None:
    """Return the state after an hour, None if it is not landed."""
    return find_document(lake, sink_key(feed, hour), SinkState)


def _now_ms() -> float:
    return datetime.now(UTC).timestamp() * _MS


def _source(f: DataFile) -> SourceObject:
    return SourceObject(f.topic, f.partition, f.key, f.number, f.size, f.etag)
