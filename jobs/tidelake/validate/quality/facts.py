"""Facts that a report shows of one hour: plain numbers from manifest, decode record, verdict and certificate."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from tidelake.io.documents import Document
from tidelake.validate.quality.verdict import Check


class BeforeImageFacts(BaseModel):
    """Old values of changes compared with the rows in the lake: number of keys, and of changes that do not fit (lake/folding/images.py)."""

    compared: int = 0
    differs: int = 0
    missing: int = 0
    duplicate_inserts: int = 0


class TableFacts(BaseModel):
    """One table in one window. events: row events including repeats; changes: changelog rows written."""

    events: int = 0
    duplicates: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    upserts: int = 0
    changes: int = 0
    rows_before: int | None = None
    rows_after: int | None = None
    written: str = ""  # which part of the snapshot was rewritten
    nulled_zero_dates: dict[str, int] = {}  # column → zero dates that became NULL by policy
    masked: dict[str, dict[str, int]] = {}  # column → mask → number of values, including NULL and repeats
    repaired: dict[str, int] = {}  # column → texts with invalid UTF-8, replaced
    invalid_values: dict[str, int] = {}  # column → cells that did not fit their type
    nulled_values: dict[str, int] = {}  # column → cells that did not fit their type and became NULL by policy
    ambiguous: dict[str, int] = {}  # column → ambiguous values: docs/types.md
    unsettled: int = 0
    checksums: dict[str, int] = {}  # verified, mismatch, unverifiable → row events
    untrusted: list[str] = []  # FLOAT columns that were sent with Craft
    partial: int = 0  # rows that were sent with their key only
    before_images: BeforeImageFacts | None = None


class DdlFacts(BaseModel):
    """A statement and its effect. commit_ts: TSO; why: why it was ignored."""

    commit_ts: int
    query: str
    effect: str
    why: str = ""


class FindingFacts(BaseModel):
    """A finding of the land stage."""

    code: str
    severity: str
    where: str
    detail: str
    remedy: str


class DecisionFacts(BaseModel):
    """A person's decision to accept a loss. reason: empty if none was given."""

    by: str
    reason: str
    decided_at_ms: int


class RejectedFacts(BaseModel):
    """Messages that could not be decoded, by code; examples as `topic[partition]@offset: reason`. decisions: of the first accepted ones."""

    code: str
    messages: int
    accepted: int = 0
    decisions: list[DecisionFacts] = []
    examples: list[str] = []


class RedoneTable(BaseModel):
    """Rows of one table that differ between a redo's cut and the cut that it replaced. table: 1 if only one of the two has the table."""

    added: int = 0
    removed: int = 0
    changed: int = 0
    table: int = 0


class RedoFacts(BaseModel):
    """What a redo changed. replaces: the newest cut that it replaced; parent: the cut that it continues, 0 for none; tables: those that
    differ.
    """

    replaces: int
    parent: int
    tables: dict[str, RedoneTable] = {}


class HourFacts(Document, BaseModel):
    """One hour of one feed. status: last stage reached; error: why the run stopped, as shown to the user; superseded_by, superseded_hour:
    the cut of a redo that replaced this one, and its hour.
    """

    feed: str
    hour: str
    status: Literal["landed", "decoded", "ordered", "validated", "published", "blocked", "failed"]
    error: str | None = None
    cut: int | None = None
    superseded_by: int | None = None
    superseded_hour: str | None = None
    redo: RedoFacts | None = None
    incomplete: bool = False
    incomplete_because: list[str] = []
    applied_ts: int | None = None
    resolved_ts: int | None = None
    lag_seconds: float | None = None  # end of the hour − time of the resolved ts
    messages: int = 0
    message_bytes: int = 0
    events: dict[str, int] = {}  # by kind: row, ddl, resolved, rejected
    late_events: int = 0  # row events before the window
    late: dict[str, dict[str, int]] = {}  # table → verdicts on them: replays, conflicts, late (order/late)
    waiting_events: int = 0  # row events after the resolved ts, for a later window
    tables: dict[str, TableFacts] = {}
    ddl: list[DdlFacts] = []
    findings: list[FindingFacts] = []
    rejected: list[RejectedFacts] = []
    refused: str = ""  # set if most messages were rejected: how many, and what they decode as
    checks: list[Check] = []
    seconds: dict[str, float] = {}  # by stage
    version: str = ""
    run: str = ""
