"""State of an hour in a calendar, from the beginning of its quality document: no more of a document is read for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel
from pydantic_core import from_json

from tidelake.config.lake_paths import quality_key
from tidelake.errors import DamageError
from tidelake.io.documents import parsed, read_document
from tidelake.io.storage import Store

HEAD_BYTES = 2048
_AFTER = "message_bytes"  # member that follows those of a head: they are whole if it is there


class HourHead(BaseModel):
    """The first members of an hour's quality document (validate/quality/facts.py). status: damaged if it cannot be read, with the error."""

    hour: str
    status: Literal["landed", "decoded", "ordered", "validated", "published", "blocked", "failed", "damaged"]
    error: str | None = None
    cut: int | None = None
    superseded_by: int | None = None
    incomplete: bool = False
    resolved_ts: int | None = None
    lag_seconds: float | None = None
    messages: int = 0


def read_head(store: Store, feed: str, hour: str) -> HourHead:
    """Return the head of an hour's quality document. Raises StorageError (NOT_FOUND)."""
    try:
        return _read(store, quality_key(feed, hour))
    except DamageError as e:
        return HourHead(hour=hour, status="damaged", error=str(e))


def _read(store: Store, key: str) -> HourHead:
    begin = store.read(key, 0, HEAD_BYTES)
    try:
        found = from_json(begin, allow_partial=True)
    except ValueError:
        found = {}
    if not isinstance(found, dict) or _AFTER not in found:  # a long error, or a redo of many tables, stands before it
        return read_document(store, key, HourHead)
    return parsed(store, key, begin, lambda _: HourHead.model_validate(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class HourKind:
    """A state of hours. letter: in the calendar; tone: colour of the page."""

    letter: str
    word: str
    tone: Literal["good", "warn", "bad", "open", "soft"]


HOUR_KINDS = {
    "published": HourKind(letter="P", word="published", tone="good"),
    "within": HourKind(letter="W", word="published within the cut of a later hour", tone="good"),
    "incomplete": HourKind(letter="I", word="published, incomplete", tone="warn"),
    "superseded": HourKind(letter="S", word="superseded: a redo replaced its cut", tone="soft"),
    "blocked": HourKind(letter="B", word="blocked", tone="bad"),
    "failed": HourKind(letter="F", word="failed", tone="bad"),
    "damaged": HourKind(letter="X", word="report cannot be read", tone="bad"),
    "landed": HourKind(letter="L", word="landed", tone="open"),
    "decoded": HourKind(letter="D", word="decoded", tone="open"),
    "ordered": HourKind(letter="O", word="ordered", tone="open"),
    "validated": HourKind(letter="V", word="validated", tone="open"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HourState:
    """State of an hour. kind: key of HOUR_KINDS; head: of its report, None without one."""

    hour: str
    kind: str
    head: HourHead | None = None

    @property
    def shown(self) -> HourKind:
        """Letter, word and colour."""
        return HOUR_KINDS[self.kind]


def state_of(hour: str, head: HourHead | None, *, decoded: bool, held: bool) -> HourState:
    """Return the state of an hour. decoded: it is decoded; held: the cuts hold the hour, as their last one or before it."""
    return HourState(hour=hour, kind=_kind(head, decoded=decoded, held=held), head=head)


def _kind(head: HourHead | None, *, decoded: bool, held: bool) -> str:
    if head is not None and head.status == "published":
        return "superseded" if head.superseded_by is not None else "incomplete" if head.incomplete else "published"
    if head is not None and head.status == "damaged":
        return head.status
    if held and (head is None or head.cut is None):
        return "within"  # also an hour that was blocked alone
    return head.status if head is not None else "decoded" if decoded else "landed"
