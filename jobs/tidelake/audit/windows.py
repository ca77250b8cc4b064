"""Checks that the windows of the cuts adjoin, and that cuts of the same window have the same rows."""

from __future__ import annotations

from tidelake.audit.findings import Findings
from tidelake.audit.proofs import Chain, StoredCertificate


def check_window(chain: Chain, proof: StoredCertificate, before: StoredCertificate | None, findings: Findings) -> None:
    """Compare the window of a cut with that of the cut that it continues. proof: whole; before: the certificate before it, whole."""
    parent = chain.parent(proof)
    continues = chain.continued(proof)
    if parent is None and continues:
        if continues < chain.start:
            findings.skip(f"window of cut {proof.seq}", f"it continues cut {continues}, which is before the first audited one")
        return
    findings.checked["windows"] += 1
    wrong = _wrong(proof, parent)
    findings.expect(wrong is None, proof.seq, proof.key, wrong or "")
    if parent is not None and proof.says.kind in ("rollback", "rewrite"):
        _check_same(proof, before if before is not None and before.seq == parent.seq else chain.whole(parent), findings)


def _check_same(proof: StoredCertificate, parent: StoredCertificate, findings: Findings) -> None:
    """A rollback has the files of the cut that it restores, a rewrite the rows of the cut before it."""
    if proof.says.kind == "rewrite":
        _check_rewrite(proof, parent, findings)
        return
    earlier = {s.annotations.uuid: s for s in parent.subjects}
    for s in proof.subjects:
        was = earlier.get(s.annotations.uuid, s)
        findings.expect(s.digest == was.digest, proof.seq, proof.key, f"{s.name}: it has other files than at cut {parent.seq}")


def _check_rewrite(proof: StoredCertificate, before: StoredCertificate, findings: Findings) -> None:
    """Every table of the cut before has its rows, less those that the certificate says were removed."""
    let_go, now = proof.says.let_go, {s.annotations.uuid: s for s in proof.subjects}
    removed = {name: gone.rows for name, gone in let_go.tables.items()} if let_go else {}
    for was in before.subjects:
        s, at = now.get(was.annotations.uuid), was.annotations
        if s is None:
            dropped = let_go is not None and at.kind == "changelog" and at.incarnation in let_go.dropped
            findings.expect(dropped, proof.seq, proof.key, f"{was.name}: it is missing, cut {before.seq} has it")
            continue
        rows, gone = s.annotations.rows, removed.get(s.name, 0)
        what = f"{s.name}: {rows:,} rows and {gone:,} removed, {at.rows:,} at cut {before.seq}"
        findings.expect(rows + gone == at.rows, proof.seq, proof.key, what)


def _wrong(proof: StoredCertificate, parent: StoredCertificate | None) -> str | None:
    """What is wrong with a window; None if nothing is. parent: the certificate of the cut that it continues."""
    said = proof.says
    window = f"its window is after {said.applied_ts} up to {said.resolved_ts}"
    if said.kind in ("rollback", "rewrite"):
        if parent is None:
            return f"it is a {said.kind} of nothing"
        again = parent.certificate is None or (parent.says.applied_ts, parent.says.resolved_ts) == (said.applied_ts, said.resolved_ts)
        return None if again and parent.resolved_ts == said.resolved_ts else f"{window}, but not that of cut {parent.seq}"
    end = parent.resolved_ts if parent else 0
    if said.kind == "seed" and parent is not None:
        return "it is a seed, but not the first cut"
    if end is not None and said.applied_ts != end:
        where = f"cut {parent.seq}, which it continues, ends at {end}" if parent else "it continues nothing"
        return f"{window}, but {where}"
    return None if said.resolved_ts > said.applied_ts else f"{window}: it is empty"
