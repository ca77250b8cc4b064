"""Facts of published hours, from the certificates of their cuts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tidelake.lake.cut_documents import find_certificate
from tidelake.lake.cut_hours import HourCut, cuts_by_hour
from tidelake.lake.opened import Lake
from tidelake.tso import parse_hour, physical_ms
from tidelake.validate.quality.facts import DdlFacts, FindingFacts, HourFacts, RedoFacts, RedoneTable, RejectedFacts, TableFacts
from tidelake.validate.quality.trends import HOURS, outline


class CutFacts:
    """Facts of the cut that counts for an hour: the newest one, also if a redo replaced it."""

    def __init__(self, lake: Lake) -> None:
        self._store, self._feed = lake.store, lake.feed.name
        self._cuts = cuts_by_hour(lake.catalog, self._feed)
        self._outlines: dict[str, HourFacts | None] = {}

    def of(self, hour: str) -> HourFacts | None:
        """Return the facts of the cut that ends with the hour; None if there is none, or its certificate is lost."""
        cut = self._cuts.get(hour)
        certificate = find_certificate(self._store, self._feed, cut.seq) if cut is not None else None
        return _of_certificate(certificate, cut) if cut is not None and certificate is not None else None

    def before(self, hour: str) -> list[HourFacts]:
        """Return what plots show of the last hours before this one, oldest first: their facts with all tables in one."""
        for h in (earlier := sorted(h for h in self._cuts if h < hour)[-HOURS:]):
            if h not in self._outlines:
                facts = self.of(h)
                self._outlines[h] = outline(facts) if facts is not None else None
        return [facts for h in earlier if (facts := self._outlines[h]) is not None]


def table_facts(counts: dict[str, Any]) -> TableFacts:
    """Return a table's facts from the counts of a window; other members are ignored."""
    return TableFacts.model_validate({k: v for k, v in counts.items() if k in TableFacts.model_fields})


def lag_seconds(hour: str, resolved_ts: int) -> float:
    """Return the time of the resolved ts before the end of the hour, in seconds."""
    end = parse_hour(hour) + timedelta(hours=1)
    return round(end.timestamp() - physical_ms(resolved_ts) / 1000, 3)


def _of_certificate(c: dict[str, Any], cut: HourCut) -> HourFacts:
    return HourFacts(
        feed=c["feed"],
        hour=c["hour"],
        status="published",
        cut=c["cut"],
        superseded_by=cut.superseded_by[0] if cut.superseded_by else None,
        superseded_hour=cut.superseded_by[1] if cut.superseded_by else None,
        redo=_redo(c),
        incomplete=c["incomplete"],
        incomplete_because=[f"{r['code']}: {r['detail']} (cut {r['cut']}, hour {r['hour']})" for r in c.get("incomplete_because", [])],
        applied_ts=c["applied_ts"],
        resolved_ts=c["resolved_ts"],
        lag_seconds=lag_seconds(c["hour"], c["resolved_ts"]) if "seed" not in c else None,
        messages=c["messages"],
        message_bytes=c["message_bytes"],
        events=c["events"],
        late_events=c["late_events"],
        late=c.get("late", {}),
        waiting_events=c["waiting_events"],
        tables={name: table_facts(rows) for name, rows in c["rows"].items()},
        ddl=[DdlFacts.model_validate(d) for d in c["ddl"]],
        rejected=[RejectedFacts(code=code, messages=n) for code, n in c["rejected"].items()],
        findings=[FindingFacts.model_validate(f) for f in c.get("findings", [])],
        checks=c["expectations"]["checks"],
        seconds=c["seconds"],
        version=c["version"],
        run=c["run"],
    )


def _redo(c: dict[str, Any]) -> RedoFacts | None:
    """What a redo changed; None for other cuts. A rollback's certificate repeats that of the cut to which it goes back."""
    if "redo" not in c or "rollback" in c:
        return None
    return RedoFacts(
        replaces=c["redo"]["replaces"],
        parent=c["redo"]["parent_seq"],
        tables={name: RedoneTable.model_validate(counts) for name, counts in c["redo"]["tables"].items()},
    )
