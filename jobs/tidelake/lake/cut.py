"""Models of a cut and of its publication: the documents below publish/, cuts/ and runs/ (docs/architecture.md 8.5)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

from pydantic import BaseModel, ConfigDict

from tidelake.history.incarnations import Catalog
from tidelake.history.window import LedgerEntry
from tidelake.io.documents import Document


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TableCut(_Document):
    """A physical table at a cut. identifier: its name as of the cut; uuid: renames do not change it."""

    identifier: str
    uuid: str
    snapshot_id: int
    rows: int = 0
    buckets: int = 1


class ProvenFile(_Document):
    """A data file or a position delete file of a table.

    path: as Iceberg's metadata spells it; sha256: in hex, None if it was not computed when the file was written; size: bytes; rows: rows of
    the file, of a delete file the rows that it deletes.
    """

    path: str
    sha256: str | None
    size: int
    rows: int
    deletes: bool = False


class FilesChange(_Document):
    """The files that were added to a table and removed from it between two snapshots. removed: paths."""

    base: int
    to: int
    added: list[ProvenFile] = []
    removed: list[str] = []


class FilesDigest(_Document):
    """The files of a table at a cut: what their list in the lake holds (lake/proof/stored_lists.py).

    sha256: of the list; files: their number; size: bytes of all files; rows: rows of the table; unproven: number of files without a sha256.
    """

    model_config = ConfigDict(frozen=True)

    sha256: str
    files: int
    size: int
    rows: int
    unproven: int = 0


class BinlogNames(_Document):
    """The names (history/source_names.py) that the changes of one partition had, of one binlog.

    newest: of the last change; spans: (low, high) of names between which all of them lie, ascending.
    """

    newest: str
    spans: list[tuple[str, str]]


class Reason(_Document):
    """Why a cut is incomplete (order/incomplete.py). cut, hour: the first cut that the reason concerns, and its hour."""

    code: str
    detail: str
    cut: int
    hour: str


class Cut(Document, _Document):
    """Every snapshot table of a feed at one resolved ts, with all state that the next run needs."""

    feed: str
    seq: int
    seeded_ts: int = 0  # TSO of the full export that seeded the feed's tables, 0 without one
    parent_seq: int | None = None  # the parent cut of a rollback or redo; None: the cut with the number before
    hour: str
    first_hour: str = ""  # first hour that the feed's cuts hold; "" if unknown, as in cuts of earlier versions
    applied_ts: int
    resolved_ts: int
    run: str
    version: str
    published_at_ms: int = 0
    events_snapshot_id: int | None = None
    prefixes: dict[str, dict[int, tuple[int, int]]] = {}  # topic → partition → gap-free offsets from the first landed one
    watermarks: dict[str, dict[int, int]] = {}  # topic → partition → largest resolved ts up to the hour
    names: dict[str, dict[int, list[BinlogNames]]] = {}  # topic → partition → names that its changes had up to the hour, by binlog
    checkpoint_at_ms: int | None = None  # when the checkpoint equal to resolved_ts was first recorded
    open_hours: list[str] = []  # hours that hold rows or statements after resolved_ts
    generations: dict[str, int] = {}  # hour → generation number of its manifest, for the window's hours
    incomplete: bool = False
    incomplete_because: list[Reason] = []  # reasons of this window and of earlier cuts; empty where an earlier version marked the cut
    accepted: list[str] = []  # coordinates of messages of this window whose loss was accepted
    catalog: Catalog = Catalog()
    snapshots: dict[str, TableCut] = {}  # incarnation → snapshot table; tables without key have none
    changelogs: dict[str, TableCut] = {}
    past: dict[str, str] = {}  # uuid → identifier, of tables that only earlier cuts need
    files: dict[str, FilesDigest] = {}  # uuid → the files of the table, for tables whose files are listed
    metadata: dict[str, str] = {}  # uuid → location of its Iceberg metadata when the cut was published, for the same tables
    ledger: list[LedgerEntry] = []

    def copied(self) -> Cut:
        """Return a copy with dicts and lists of its own. What these hold is shared, because nobody changes it in place: with 3,000 tables
        all of it takes 31 MB and 0.8 s.
        """
        return self.model_copy(update={name: copy(held) for name, held in self if isinstance(held, dict | list)})

    @property
    def is_seed(self) -> bool:
        """Whether the cut holds only the export's rows and no later change."""
        return self.seeded_ts > 0 and self.seeded_ts == self.resolved_ts


class Reshape(_Document):
    """Columns of a snapshot table that are renamed or dropped when the cut is published, by source column id."""

    renamed: dict[int, str] = {}
    dropped: list[int] = []


class Advance(_Document):
    """Move of a table's main branch from base to the staged snapshot."""

    identifier: str
    uuid: str
    base: int
    to: int
    branch: str
    incarnation: str
    buckets: int = 1
    reshape: Reshape | None = None
    files: FilesChange | None = None  # until the intent is declared; None: its files are found in the table's metadata


class Return(_Document):
    """Move of a table's main branch from base back to a snapshot of an earlier cut, with that snapshot's columns."""

    identifier: str
    uuid: str
    base: int
    to: int


class Move(_Document):
    """Rename of a table by way of a temporary name, so that two tables can swap names."""

    uuid: str
    source: str
    parking: str
    target: str


class Intent(Document, _Document):
    """The recorded intent to publish a cut. After it, a run is only rolled forward. cut: holds the staged snapshot ids."""

    cut: Cut
    advances: list[Advance] = []
    returns: list[Return] = []
    moves: list[Move] = []
    certificate: dict[str, Any] = {}  # the members known before publishing


class Abandoned(Document, _Document):
    """Marker in place of a cut's document: its publication was abandoned (publish/abandon.py). undone: all its moves are reverted."""

    feed: str
    seq: int
    hour: str
    run: str
    abandoned_at_ms: int
    by: str  # host and process
    undone: bool = False


class InvalidValue(_Document):
    """A cell that does not fit its type, as it was sent or under its mask, with the key of its row and its event."""

    cell: str | None
    key: dict[str, str | None]  # source's name of each key column → cell; empty for tables without key
    topic: str
    partition: int
    offset: int
    ordinal: int
    commit_ts: int


class TableCounts(_Document):
    """Counts of one table's rows in a window. Events are row events, changes are changelog rows."""

    events: int = 0  # in the window, repeats included
    duplicates: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    upserts: int = 0
    key_changes: int = 0  # updates that moved a row to another key
    changes: int = 0  # rows written to the changelog
    exchanged_in: int = 0  # rows that EXCHANGE PARTITION added, or that began a life with another key
    exchanged_out: int = 0  # rows that EXCHANGE PARTITION removed
    updates_without_before_image: int = 0  # updates without the old row
    partial: int = 0  # rows for which only the handle was sent
    undated: int = 0  # Avro deletes, which have no commit ts of their own
    invalid_values: dict[str, int] = {}  # column → cells that did not fit their type
    invalid_value_examples: dict[str, list[InvalidValue]] = {}  # column → the first invalid cells
    nulled_values: dict[str, int] = {}  # column → invalid cells that became NULL by policy
    ambiguous: dict[str, int] = {}  # column → ambiguous values: docs/types.md
    repaired: dict[str, int] = {}  # column → texts with invalid UTF-8, replaced by U+FFFD
    nulled_zero_dates: dict[str, int] = {}  # column → zero dates that became NULL by policy
    masked: dict[str, dict[str, int]] = {}  # column → mask → values, NULL and repeats included
    unsettled: int = 0  # Avro deletes whose position relative to the cut is uncertain
    checksums: dict[str, int] = {}  # event.CHECKSUMS → row events of the window that carry a checksum
    untrusted: list[str] = []  # FLOAT columns sent by Craft, whose encoder damages them (docs/reference/protocols.md 3.8)
    key_only_deletes: bool = False  # deletes carry only their key, other changes the row

    def __add__(self, other: TableCounts) -> TableCounts:
        """The counts of two tables together."""
        return TableCounts.model_validate({name: _sum(getattr(self, name), getattr(other, name)) for name in TableCounts.model_fields})


def _sum(a: Any, b: Any) -> Any:
    """Two numbers or marks together, two lists one after the other, two dictionaries member by member."""
    if isinstance(a, dict):
        return {k: _sum(a[k], b[k]) if k in a and k in b else a.get(k, b.get(k)) for k in a | b}
    if isinstance(a, list):
        return a + [x for x in b if x not in a]
    return a or b if isinstance(a, bool) else a + b


def by_name(counts: Mapping[str, TableCounts], catalog: Catalog) -> dict[str, TableCounts]:
    """Return counts by the tables' last names. Several lives may have had one in a window. counts: by incarnation."""
    out: dict[str, TableCounts] = {}
    for i, c in counts.items():
        name = catalog.incarnations[i].name
        out[name] = out[name] + c if name in out else c
    return out


class ImageCounts(_Document):
    """Differences between the old rows that a table's changes carry and the rows of the snapshot (lake/folding/images.py)."""

    compared: int = 0  # keys that were compared; in tables without key, deletes and updates
    differs: int = 0  # the old row differs from the snapshot's row
    missing: int = 0  # update or delete of a row that is missing from the snapshot
    duplicate_inserts: int = 0  # insert of a row that the snapshot holds
    columns: dict[str, int] = {}  # column → number of changes in which it differs
    examples: list[str] = []

    @property
    def found(self) -> int:
        """Number of changes that do not match the snapshot."""
        return self.differs + self.missing + self.duplicate_inserts


class LateCounts(_Document):
    """Row events of one table at or before applied_ts that arrived in the window's hours (order/late)."""

    replays: int = 0  # events that equal the published change
    conflicts: int = 0  # events for which another change of the same row and commit ts was published
    late: int = 0  # events without a published change: the tables lack them


class Staged(Document, _Document):
    """The result of order, which validate and compact read."""

    cut: Cut  # the cut to publish; its snapshots are still those of the last cut
    changelogs: dict[str, Advance] = {}
    counts: dict[str, TableCounts] = {}  # by incarnation
    window_events: int = 0  # row events in the window that have a commit ts
    seeded_events: int = 0  # row events at or before seeded_ts in the window's hours: the export holds their effect
    late_events: int = 0  # row events at or before applied_ts that arrived in the window's hours
    late: dict[str, LateCounts] = {}  # late_events by table name as sent
    waiting_events: int = 0  # row events after resolved_ts, left for a later window
    earlier_generations: dict[str, int] = {}  # hour → generation of its manifest, of hours before the window's that were read again
    undated_events: int = 0  # row events without a commit ts, whose neighbours place them
    quarantined: dict[str, int] = {}  # row events of the window that fit no schema, by table
    repeated: dict[str, int] = {}  # row events of the window that the producer had sent before under lower offsets, by table name as sent
    messages: int = 0  # messages landed in the window's hours
    message_bytes: int = 0
    kinds: dict[str, int] = {}  # events of the window's hours, by kind
    rejected: dict[str, int] = {}  # messages that could not be decoded, by code
    findings: list[dict[str, str]] = []  # findings of the window: members of validate.quality.facts.FindingFacts
    started_at_ms: int = 0
    seconds: dict[str, float] = {}
