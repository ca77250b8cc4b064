"""Checks that the certificates are one chain: none is missing, exchanged or changed."""

from __future__ import annotations

import hashlib
from itertools import pairwise

from tidelake.audit.findings import Findings
from tidelake.audit.proofs import Chain, StoredCertificate
from tidelake.config.lake_paths import certificate_key, cuts, intents, seq_of
from tidelake.io.documents import find_document
from tidelake.io.storage import Store
from tidelake.lake.cut import Cut, Intent
from tidelake.lake.cut_documents import certificate, find_outcome

_NO_CERTIFICATE = "its intent has no certificate: it is not published yet or was abandoned, or its certificate is gone"


def check_chain(store: Store, feed: str, chain: Chain, findings: Findings) -> None:
    """Compare every certificate with the one before it, and the newest one with the documents that it was made from."""
    proofs = list(chain.every.values())
    for proof in chain.readable:
        said = proof.says
        same = (said.feed, said.cut) == (feed, proof.seq)
        findings.expect(same, proof.seq, proof.key, f"it says that it is of cut {said.cut} of feed {said.feed}")
    if chain.before is None:
        _check_first(feed, proofs[0], findings)
    for before, proof in pairwise(proofs):
        _check_link(feed, before, proof, findings)
    findings.checked["certificates"] += len(chain.audited)
    findings.skip("certificates", "an earlier version of Tidelake wrote them, without a chain", sum(p.old for p in chain.audited.values()))
    _check_end(store, feed, proofs[-1], findings)


def _check_first(feed: str, first: StoredCertificate, findings: Findings) -> None:
    if first.certificate is None:
        return
    previous = first.says.previous
    if previous is not None:
        key = certificate_key(feed, previous.cut)
        findings.expect(False, previous.cut, key, f"it is missing: the certificate of cut {first.seq} names it as the one before")


def _check_link(feed: str, before: StoredCertificate, proof: StoredCertificate, findings: Findings) -> None:
    if proof.certificate is None:
        findings.expect(not proof.old or before.old, proof.seq, proof.key, "it has no chain, but the certificate before it has one")
        return
    said = proof.says
    previous = said.previous
    if previous is None:
        findings.expect(False, proof.seq, proof.key, f"it says that it is the first, but there is one of cut {before.seq}")
        return
    if previous.cut != before.seq:
        lost = previous.cut > before.seq
        cut, key = (previous.cut, certificate_key(feed, previous.cut)) if lost else (proof.seq, proof.key)
        what = "it is missing: " if lost else ""
        findings.expect(False, cut, key, f"{what}the certificate of cut {proof.seq} names cut {previous.cut} as the one before")
        return
    numbers = list(range(previous.cut + 1, said.cut))
    findings.expect(list(said.abandoned) == numbers, proof.seq, proof.key, f"cuts {numbers} are missing; it names {list(said.abandoned)}")
    if previous.sha256 is None:
        findings.skip(f"certificate of cut {before.seq}", "it was lost when the next cut was published, so that one has no sum of it")
        return
    wanted = f"its sha256 is {before.sha256}; the certificate of cut {proof.seq} says {previous.sha256}"
    findings.expect(before.sha256 == previous.sha256, before.seq, before.key, wanted)


def _check_end(store: Store, feed: str, newest: StoredCertificate, findings: Findings) -> None:
    """No certificate names the newest one. It is compared with the intent and the cut that it was made from."""
    for prefix in (cuts(feed), intents(feed)):
        for seq in sorted(s for o in store.objects(prefix) if (s := seq_of(o.key)) > newest.seq):
            _check_after(store, feed, seq, prefix, findings)
    cut = find_outcome(store, feed, newest.seq)
    intent = find_document(store, f"{intents(feed)}{newest.seq:08d}.json", Intent)
    if not isinstance(cut, Cut) or intent is None:
        findings.skip(f"certificate of cut {newest.seq}", "it is the newest one, and its cut or intent is missing: nothing names its sum")
        return
    made = hashlib.sha256(certificate(intent, cut)).hexdigest()
    findings.expect(made == newest.sha256, newest.seq, newest.key, "it differs from what its intent and its cut's document say")


def _check_after(store: Store, feed: str, seq: int, prefix: str, findings: Findings) -> None:
    """Of a number after the newest certificate there is no cut."""
    if prefix == intents(feed):
        if not isinstance(find_outcome(store, feed, seq), Cut):
            findings.skip(f"cut {seq}", _NO_CERTIFICATE)
    elif isinstance(find_outcome(store, feed, seq), Cut):
        key = certificate_key(feed, seq)
        findings.expect(False, seq, key, f"it is missing: {cuts(feed)}{seq:08d}.json says that the cut is published")
