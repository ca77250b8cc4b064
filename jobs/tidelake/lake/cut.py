"""What a cut is, and what must be done to publish one: the documents below publish/, cuts/ and runs/ (docs/architecture.md 8.5)."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from tidelake.history.incarnations import Catalog
from tidelake.history.window import LedgerEntry


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TableCut(_Document):
    """A physical table at a cut. identifier: its name as of the cut; uuid stays through renames."""

    identifier: str
    uuid: str
    snapshot_id: int
    rows: int = 0
    buckets: int = 1


class Reason(_Document):
    """Why a cut is incomplete (order/incomplete.py). cut, hour: of the first cut that it concerns."""

    code: str
    detail: str
    cut: int
    hour: str


class Cut(_Document):
    """Every snapshot table of a feed at one resolved ts, and all that the next run needs to know."""

    feed: str
    seq: int
    seeded_ts: int = 0  # of the full export that the feed's tables began with, 0 for none
    parent_seq: int | None = None  # the cut that it goes on from, where that is not the one numbered before: of a rollback or redo
    hour: str
    first_hour: str = ""  # the first hour that the feed's cuts hold, where it is known; cuts of earlier versions do not say it
    applied_ts: int
    resolved_ts: int
    run: str
    version: str
    published_at_ms: int = 0
    events_snapshot_id: int | None = None
    prefixes: dict[str, dict[int, tuple[int, int]]] = {}  # topic → partition → gap-free offsets from the first landed one
    watermarks: dict[str, dict[int, int]] = {}  # topic → partition → the largest resolved ts up to the hour
    checkpoint_at_ms: int | None = None  # when the checkpoint that is resolved_ts was recorded first
    open_hours: list[str] = []  # hours that hold rows or statements after resolved_ts
    generations: dict[str, int] = {}  # of the manifests of the window's hours
    incomplete: bool = False
    incomplete_because: list[Reason] = []  # of this window and of cuts before it; empty where an earlier version marked the cut
    accepted: list[str] = []  # coordinates of messages whose loss was accepted, in this window
    catalog: Catalog = Catalog()
    snapshots: dict[str, TableCut] = {}  # incarnation → its snapshot table; none for tables without key
    changelogs: dict[str, TableCut] = {}
    past: dict[str, str] = {}  # uuid → identifier of tables that only earlier cuts need
    ledger: list[LedgerEntry] = []

    @property
    def is_seed(self) -> bool:
        """Whether it holds the export's rows and no change after them."""
        return self.seeded_ts > 0 and self.seeded_ts == self.resolved_ts


class Reshape(_Document):
    """Columns of a snapshot table that take their final names, or leave, when the cut is published. By source column id."""

    renamed: dict[int, str] = {}
    dropped: list[int] = []


class Advance(_Document):
    """main of a table moves from base to the staged snapshot."""

    identifier: str
    uuid: str
    base: int
    to: int
    branch: str
    incarnation: str
    buckets: int = 1
    reshape: Reshape | None = None


class Return(_Document):
    """main of a table goes from base to a snapshot of an earlier cut, with the columns of then."""

    identifier: str
    uuid: str
    base: int
    to: int


class Move(_Document):
    """A table takes another name, by way of a name of its own, so that swaps work."""

    uuid: str
    source: str
    parking: str
    target: str


class Intent(_Document):
    """The point of no return: from here on a run is only ever rolled forward. cut holds the staged snapshot ids."""

    cut: Cut
    advances: list[Advance] = []
    returns: list[Return] = []
    moves: list[Move] = []
    certificate: dict[str, Any] = {}  # all of it that is known before publishing


class Abandoned(_Document):
    """In place of a cut's document: its publishing was given up (publish/abandon.py). undone: all that it had moved is back."""

    feed: str
    seq: int
    hour: str
    run: str
    abandoned_at_ms: int
    by: str  # host and process
    undone: bool = False


class TableCounts(_Document):
    """What happened to one table's rows in a window; events are row events, changes are changelog rows."""

    events: int = 0  # in the window, repeats included
    duplicates: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    upserts: int = 0
    key_changes: int = 0  # updates that moved a row to another key
    changes: int = 0  # rows written to the changelog
    exchanged_in: int = 0  # rows that EXCHANGE PARTITION brought
    exchanged_out: int = 0  # rows that it took away
    updates_without_before_image: int = 0  # updates that came without the row before
    partial: int = 0  # rows of which only the handle was sent
    undated: int = 0  # Avro deletes, which have no commit ts of their own
    invalid_values: dict[str, int] = {}  # column → cells that did not fit their type
    invalid_value_examples: dict[str, list[str]] = {}  # column → some of these, each with its row's key and coordinates
    nulled_values: dict[str, int] = {}  # column → those that are NULL by policy
    ambiguous: dict[str, int] = {}  # column → values that read like another: docs/types.md
    repaired: dict[str, int] = {}  # column → texts with invalid UTF-8, replaced by U+FFFD
    nulled_zero_dates: dict[str, int] = {}  # column → zero dates that became NULL by policy
    masked: dict[str, dict[str, int]] = {}  # column → mask → values, NULL and repeats included
    unsettled: int = 0  # Avro deletes whose place relative to the cut is not certain
    checksums: dict[str, int] = {}  # event.CHECKSUMS → row events in the window, of those that carry a checksum
    untrusted: list[str] = []  # FLOAT columns that came by Craft, whose encoder damages them (docs/reference/protocols.md 3.8)
    key_only_deletes: bool = False  # deletes carry their key alone, other changes do not


class ImageCounts(_Document):
    """What became of the old values that one table's changes carry (lake/images.py): of `compared` keys, changes that do not fit."""

    compared: int = 0  # keys; without a key, deletes and updates
    differs: int = 0  # the old row is another than the one that stood here
    missing: int = 0  # an update or delete of a row that did not stand here
    duplicate_inserts: int = 0  # an insert of a row that stood here
    columns: dict[str, int] = {}  # those that differ → in so many changes
    examples: list[str] = []

    @property
    def found(self) -> int:
        """Changes that do not fit."""
        return self.differs + self.missing + self.duplicate_inserts


class LateCounts(_Document):
    """Row events of one table at or before applied_ts that came in the window's hours (order/late.py)."""

    replays: int = 0  # as they were published
    conflicts: int = 0  # another change of the same row and commit ts was published
    late: int = 0  # no such change was published: the tables lack them


class Staged(_Document):
    """What order hands to validate and compact."""

    cut: Cut  # of the window to come; snapshots are still those of the last cut
    changelogs: dict[str, Advance] = {}
    counts: dict[str, TableCounts] = {}  # by incarnation
    window_events: int = 0  # row events in the window that have a commit ts
    seeded_events: int = 0  # row events at or before seeded_ts in the window's hours: the export holds what they say
    late_events: int = 0  # row events at or before applied_ts that arrived in the window's hours
    late: dict[str, LateCounts] = {}  # what these are, by table as sent
    waiting_events: int = 0  # row events after resolved_ts, left for a later window
    messages: int = 0  # landed in the window's hours
    message_bytes: int = 0
    kinds: dict[str, int] = {}  # events of the window's hours, by kind
    rejected: dict[str, int] = {}  # messages that could not be decoded, by code
    findings: list[dict[str, str]] = []  # of the window: members of validate.quality.facts.FindingFacts
    started_at_ms: int = 0
    seconds: dict[str, float] = {}
