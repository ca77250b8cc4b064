"""What a report shows of one hour: plain numbers, gathered from manifest, decode record, verdict and certificate."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from tidelake.validate.quality.verdict import Check


class BeforeImageFacts(BaseModel):
    """Old values of changes beside the rows that stood in the lake: of `compared` keys, changes that do not fit (lake/images.py)."""

    compared: int = 0
    differs: int = 0
    missing: int = 0
    duplicate_inserts: int = 0


class TableFacts(BaseModel):
    """One table in one window. events: row events in the window, repeats included; changes: changelog rows written."""

    events: int = 0
    duplicates: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    upserts: int = 0
    changes: int = 0
    rows_before: int | None = None
    rows_after: int | None = None
    written: str = ""  # what of the snapshot was rewritten
    nulled_zero_dates: dict[str, int] = {}  # column → zero dates that became NULL by policy
    masked: dict[str, dict[str, int]] = {}  # column → mask → values, NULL and repeats included
    repaired: dict[str, int] = {}  # column → texts with invalid UTF-8, replaced
    invalid_values: dict[str, int] = {}  # column → cells that did not fit their type
    nulled_values: dict[str, int] = {}  # column → the same, NULL by policy
    ambiguous: dict[str, int] = {}  # column → values that read like another: docs/types.md
    unsettled: int = 0
    checksums: dict[str, int] = {}  # verified, mismatch, unverifiable → row events
    untrusted: list[str] = []  # FLOAT columns that came by Craft
    partial: int = 0  # rows of which only the key was sent
    before_images: BeforeImageFacts | None = None


class DdlFacts(BaseModel):
    """A statement and what was done about it. commit_ts: TSO. why: it was ignored."""

    commit_ts: int
    query: str
    effect: str
    why: str = ""


class FindingFacts(BaseModel):
    """A finding of landing."""

    code: str
    severity: str
    where: str
    detail: str
    remedy: str


class RejectedFacts(BaseModel):
    """Messages that could not be decoded, by code; examples as `topic[partition]@offset: reason`."""

    code: str
    messages: int
    accepted: int = 0
    examples: list[str] = []


class HourFacts(BaseModel):
    """One hour of one feed. status: how far it came; error: why it stopped, as the user saw it."""

    feed: str
    hour: str
    status: Literal["landed", "decoded", "ordered", "validated", "published", "blocked", "failed"]
    error: str | None = None
    cut: int | None = None
    incomplete: bool = False
    incomplete_because: list[str] = []
    applied_ts: int | None = None
    resolved_ts: int | None = None
    lag_seconds: float | None = None  # end of the hour − time of the resolved ts
    messages: int = 0
    message_bytes: int = 0
    events: dict[str, int] = {}  # by kind: row, ddl, resolved, rejected
    late_events: int = 0  # from before the window
    late: dict[str, dict[str, int]] = {}  # table → what these are: replays, conflicts, late (order/late.py)
    waiting_events: int = 0  # after the resolved ts, for a later window
    tables: dict[str, TableFacts] = {}
    ddl: list[DdlFacts] = []
    findings: list[FindingFacts] = []
    rejected: list[RejectedFacts] = []
    refused: str = ""  # where most messages were: how many, and what they decode as
    checks: list[Check] = []
    seconds: dict[str, float] = {}  # by stage
    version: str = ""
    run: str = ""
