"""The certificate of a cut: input, output, and what was checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidelake.compact.fold_target import Folded
from tidelake.history.incarnations import Incarnation
from tidelake.lake.cut import Cut, Staged, TableCut, by_name
from tidelake.validate.quality.verdict import Verdict


def proof_of(
    staged: Staged, verdict: Verdict, folded: dict[str, Folded], previous: Cut | None, cut: Cut, seconds: dict[str, float]
) -> dict[str, Any]:
    """Return the certificate's content except the tables' final snapshot ids.

    Args:
        staged: The staged window.
        verdict: Its verdict.
        folded: Folded tables, by incarnation.
        previous: The previous cut, if any.
        cut: The new cut.
        seconds: Seconds by stage.
    """
    tables = {i.id: i for i in cut.catalog.incarnations.values()}
    before = previous.snapshots if previous else {}
    rows: dict[str, Any] = {name: c.model_dump(exclude_defaults=True) for name, c in by_name(staged.counts, cut.catalog).items()}
    for i, t in cut.snapshots.items():
        stood = {"rows_before": _rows_before(tables, tables[i], before), "rows_after": t.rows}
        rows[tables[i].name] = rows.get(tables[i].name, {}) | stood | (_of_fold(folded[i]) if i in folded else {})
    return {
        "feed": cut.feed,
        "cut": cut.seq,
        "hour": cut.hour,
        "applied_ts": cut.applied_ts,
        "resolved_ts": cut.resolved_ts,
        "incomplete": cut.incomplete,
        "incomplete_because": [r.model_dump() for r in cut.incomplete_because],
        "accepted": cut.accepted,
        "run": cut.run,
        "version": cut.version,
        "generations": cut.generations,
        "earlier_generations": staged.earlier_generations,
        "resolved_ts_by_partition": cut.watermarks,
        "offsets": cut.prefixes,
        "messages": staged.messages,
        "message_bytes": staged.message_bytes,
        "events": staged.kinds,
        "rejected": staged.rejected,
        "seeded_events": staged.seeded_events,
        "late_events": staged.late_events,
        "late": {name: c.model_dump(exclude_defaults=True) for name, c in staged.late.items()},
        "waiting_events": staged.waiting_events,
        "counts": _counts(staged, tables),
        "rows": rows,
        "ddl": [{"commit_ts": e.commit_ts, "query": e.query, "effect": e.effect, "why": e.why} for e in cut.ledger],
        "expectations": verdict.summary(),
        "seconds": seconds,
    }


def _rows_before(tables: Mapping[str, Incarnation], i: Incarnation, before: Mapping[str, TableCut]) -> int:
    """Number of rows at the last cut; of a table that got another key since, those of its former life."""
    while i.id not in before and i.former in tables:
        i = tables[i.former]
    return before[i.id].rows if i.id in before else 0


def _counts(staged: Staged, tables: Mapping[str, Incarnation]) -> dict[str, Any]:
    """Where the row events of the window and the late ones went, by table.

    The window's numbers are those of the first look at the events; a table's are those of the workers that wrote its changelog.
    """
    empty = {"in": 0, "out": 0, "duplicate": 0, "late": 0, "quarantined": 0, "changes": 0}
    found: dict[str, dict[str, int]] = {}

    def add(table: str, **numbers: int) -> None:
        of_table = found.setdefault(table, dict(empty))
        for kind, n in numbers.items():
            of_table[kind] += n
            of_table["in"] += n

    for i, c in staged.counts.items():
        add(tables[i].name, out=c.events - c.duplicates, duplicate=c.duplicates)
        found[tables[i].name]["changes"] += c.changes
    for name, late in staged.late.items():
        add(name, late=late.replays + late.conflicts + late.late)
    for name, n in staged.quarantined.items():
        add(name, quarantined=n)
    for name, n in staged.repeated.items():
        add(name, duplicate=n)
    window = {
        "in": staged.window_events + staged.undated_events + sum(staged.quarantined.values()) + sum(staged.repeated.values()),
        "late": staged.late_events,
        "undated": staged.undated_events,
    }
    return {"window": window, "tables": dict(sorted(found.items()))}


def _of_fold(f: Folded) -> dict[str, Any]:
    images = {"before_images": f.images.model_dump(exclude_defaults=True)} if f.images and f.images.compared else {}
    return {"written": f.written, "missing": f.missing} | images
