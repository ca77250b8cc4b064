"""Checks that the numbers of a certificate add up."""

from __future__ import annotations

from typing import Any

from tidelake.audit.findings import Findings
from tidelake.audit.proofs import StoredCertificate
from tidelake.lake.proof.model import EventCounts, Predicate

_OPERATIONS = ("duplicates", "inserts", "updates", "deletes", "upserts")


def check_counts(proof: StoredCertificate, before: StoredCertificate | None, findings: Findings) -> None:
    """Add up the numbers of a certificate. proof: whole; before: the one before it, whole."""
    said = proof.says
    _check_rows(proof, findings)
    if said.counts is None:
        findings.skip(f"counts of cut {proof.seq}", f"it is a {said.kind} of a cut that an earlier version of Tidelake published")
        return
    findings.checked["tables' counts"] += len(said.counts.tables)
    for name, c in said.counts.tables.items():
        total = c.out + c.duplicate + c.late + c.quarantined
        what = f"{name}: {c.in_:,} events in, but {c.out:,} out + {c.duplicate:,} duplicate + {c.late:,} late + {c.quarantined:,} "
        findings.expect(c.in_ == total, proof.seq, proof.key, f"{what}quarantined = {total:,}")
    if said.kind in ("hour", "redo"):
        _check_window(proof, said, said.counts, findings)
        _check_growth(proof, before, said.counts, findings)


def _check_rows(proof: StoredCertificate, findings: Findings) -> None:
    """Events by operation, and the changes that they make."""
    for name, row in proof.says.rows.items():
        n = {k: v for k, v in row.items() if isinstance(v, int)}
        events, sums = n.get("events", 0), sum(n.get(k, 0) for k in _OPERATIONS)
        findings.expect(events == sums, proof.seq, proof.key, f"rows.{name}: {events:,} events, but {sums:,} by operation")
        if proof.says.kind in ("hour", "redo"):
            made, changes = _changes(n), n.get("changes", 0)
            findings.expect(made == changes, proof.seq, proof.key, f"rows.{name}: {changes:,} changes, but its operations make {made:,}")


def _changes(n: dict[str, Any]) -> int:
    """Number of changelog rows that operations make."""
    plain = sum(n.get(k, 0) for k in ("inserts", "deletes", "upserts", "exchanged_in", "exchanged_out"))
    return int(plain + 2 * n.get("updates", 0) - n.get("updates_without_before_image", 0))


def _check_window(proof: StoredCertificate, said: Predicate, counts: EventCounts, findings: Findings) -> None:
    """The sums over the tables are the numbers of the first look at the window."""
    late = sum(c.late for c in counts.tables.values())
    what = f"{counts.window.late:,} late events, but {late:,} by table"
    findings.expect(late == counts.window.late, proof.seq, proof.key, what)
    if counts.window.undated:
        findings.skip(f"events of cut {proof.seq}", "deletes without a commit ts: their neighbours place them, perhaps in another window")
        return
    inside = sum(c.out + c.duplicate + c.quarantined for c in counts.tables.values())
    what = f"{counts.window.in_:,} events in the window, but {inside:,} by table"
    findings.expect(inside == counts.window.in_, proof.seq, proof.key, what)


def _check_growth(proof: StoredCertificate, last: StoredCertificate | None, counts: EventCounts, findings: Findings) -> None:
    """The changelogs have grown by the changes."""
    said = proof.says
    before = last if said.previous is not None and last is not None and last.seq == said.previous.cut else None
    known = before is None or (before.certificate is not None and not before.says.uncovered)
    if said.kind != "hour" or said.uncovered or not known or (said.previous is not None and before is None):
        return
    rows = {s.annotations.uuid: s.annotations.rows for s in (before.subjects if before else ())}
    grown = sum(s.annotations.rows - rows.get(s.annotations.uuid, 0) for s in proof.subjects if s.annotations.kind == "changelog")
    changes = sum(c.changes for c in counts.tables.values())
    findings.checked["changelogs' growth"] += 1
    findings.expect(
        grown == changes, proof.seq, proof.key, f"the tables have {changes:,} changes, but the changelogs grew by {grown:,} rows"
    )
