"""Headline of a report: the result of the hour in one sentence, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tidelake.io.texts import lag, moment, plural
from tidelake.validate.quality.facts import HourFacts, RedoFacts

_NEXT = {"landed": "decode", "decoded": "order", "ordered": "validate", "validated": "compact"}
_CODE = re.compile(r"([A-Z][A-Z0-9_]+)((?: [^\s:]+)?): ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The headline of a report.

    Attributes:
        tone: Colour of the verdict.
        word: The verdict.
        sentence: Its explanation.
        notes: What limits the verdict.
        error_code: Code of the error.
        error: Text of the error.
        commands: Commands to run.
        standing: What readers see.
    """

    tone: Literal["good", "warn", "bad", "open"]
    word: str
    sentence: str
    notes: Sequence[str] = ()
    error_code: str = ""
    error: str = ""
    commands: Sequence[str] = ()
    standing: str = ""


def headline(current: HourFacts, history: Sequence[HourFacts]) -> Headline:
    """Return the headline of an hour. history: facts of earlier hours."""
    if current.status == "published":
        return _superseded(current) if current.superseded_by is not None else _published(current)
    if current.status in ("blocked", "failed"):
        return _stopped(current, history)
    return Headline(
        tone="open",
        word=current.status.capitalize(),
        sentence=f"feed {current.feed} has processed the hour up to this stage and published nothing of it yet; "
        f"the next stage is {_NEXT[current.status]}.",
        error=current.error or "",
        standing=_standing(current, history),
    )


def _published(f: HourFacts) -> Headline:
    warnings = sum(not c.success for c in f.checks)
    notes = [*_notes(f), *([f"{plural(warnings, 'warning')} below."] if warnings else [])]
    redo = [_redone(f.redo)] if f.redo is not None else []
    many = sum(t.rows_after is not None for t in f.tables.values()) or len(f.tables)  # dropped tables have no rows_after
    tables = f"all {many:,} tables" if many > 1 else "its table" if many else "no tables"
    where = f" at {moment(f.resolved_ts)}" if f.resolved_ts is not None else ""
    late = f", {lag(f.lag_seconds)}" if f.lag_seconds is not None else ""
    return Headline(
        tone="warn" if notes else "good",
        word="Published, incomplete" if f.incomplete else "Published",
        sentence=f"cut {f.cut if f.cut is not None else '?'} of feed {f.feed}; {tables}{where}{late}.",
        notes=[*redo, *notes],
        error=f.error or "",
    )


def _redone(r: RedoFacts) -> str:
    """What a redo replaced, and how many tables differ."""
    several = f"the cuts after cut {r.parent} up to cut {r.replaces}" if r.parent else f"all cuts up to cut {r.replaces}"
    replaced = f"cut {r.replaces}" if r.replaces == r.parent + 1 else several
    found = f"{plural(len(r.tables), 'table')} {'differs' if len(r.tables) == 1 else 'differ'}" if r.tables else "no table differs"
    return f"A redo: it replaces {replaced}; {found}."


def _superseded(f: HourFacts) -> Headline:
    return Headline(
        tone="warn",
        word=f"Superseded by cut {f.superseded_by}",
        sentence=f"a redo replaced cut {f.cut} of feed {f.feed}. The numbers below are those of cut {f.cut}; readers see cut "
        f"{f.superseded_by} or a later one.",
        notes=list(_notes(f)),
        error=f.error or "",
    )


def _notes(f: HourFacts) -> Iterator[str]:
    if f.incomplete_because:
        yield f"Incomplete for {plural(len(f.incomplete_because), 'reason')}: {'; '.join(f.incomplete_because)}."
    elif f.incomplete:
        yield "Messages that could not be decoded, or columns that were not sent, are missing from this cut or from one before it."
    for word, what in (("late", "are missing"), ("conflicts", "contradict published rows")):
        found = {name: n for name, counts in f.late.items() if (n := counts.get(word, 0))}
        if found:
            where = ", ".join(f"{name} ({n:,})" for name, n in found.items())
            yield f"Rows arrived after the cut that should contain them, and some {what}: {where}; see `tidelake late --feed {f.feed}`."
    if passed := [d for d in f.ddl if d.effect == "ignored"]:
        said = "ignored by policy, tables may differ from the source"
        yield f"{plural(len(passed), 'DDL statement')} {said}: see `tidelake ddl --feed {f.feed}`."
    unsettled = sum(t.unsettled for t in f.tables.values())
    if unsettled:
        yield f"{plural(unsettled, 'delete')} without commit ts may belong before or after this cut."
    differ = sum(t.checksums.get("mismatch", 0) for t in f.tables.values())
    if differ:
        yield f"{plural(differ, 'row event')} arrived damaged: TiCDC's checksum does not match the row."
    images = [t.before_images for t in f.tables.values() if t.before_images]
    lost = sum(i.differs + i.missing + i.duplicate_inserts for i in images)
    if lost:
        yield f"{plural(lost, 'change')} did not match the row it replaces: changes were probably lost."
    partial = sum(t.partial for t in f.tables.values())
    if partial:
        yield f"{plural(partial, 'row')} arrived with only the key: the other columns keep their previous values, or NULL for a new row."


def _stopped(f: HourFacts, history: Sequence[HourFacts]) -> Headline:
    blocked = f.status == "blocked"
    found = _CODE.match(f.error or "")
    code, text = (found[1], (f.error or "")[found.end() :]) if found else ("", f.error or "No error was recorded.")
    place = f"{found[2].strip()}: " if found and found[2] else ""
    decide = "no data is lost, a decision is needed" if blocked else "the run can be repeated at any time"
    still = f"superseded by cut {f.superseded_by}" if f.superseded_by is not None else "still published"
    outcome = (
        f"nothing of the hour is published in feed {f.feed}"
        if f.cut is None
        else f"cut {f.cut} of feed {f.feed} is {still}, a later run stopped"
    )
    return Headline(
        tone="bad",
        word="Blocked" if blocked else "Failed",
        sentence=f"{outcome}; {decide}.",
        error_code=code,
        error=place + text,
        commands=_commands(f, code),
        standing=_standing(f, history) if f.cut is None else "",
    )


def _commands(f: HourFacts, code: str) -> list[str]:
    again = f"tidelake run --feed {f.feed} --hour {f.hour}"
    return [*quarantine_commands(f.feed), again] if code == "UNDECIDED" else [again]


def quarantine_commands(feed: str, hour: str = "") -> list[str]:
    """Return the commands for messages that could not be decoded, of an hour or of all hours."""
    which = f"--feed {feed}" + (f" --hour {hour}" if hour else "")
    return [
        f"tidelake quarantine list {which}",
        f"tidelake quarantine replay {which}",
        f'tidelake quarantine accept {which} --all --reason "…"',
    ]


def _standing(f: HourFacts, history: Sequence[HourFacts]) -> str:
    published = [h for h in history if h.status == "published" and h.superseded_by is None and h.hour < f.hour]
    if not published:
        return "Nothing of this feed is published yet."
    newest = max(published, key=lambda h: h.hour)
    at = f", at {moment(newest.resolved_ts)}" if newest.resolved_ts is not None else ""
    return f"Readers still see cut {newest.cut}{at}."
