"""Checks the documents of the retained cuts against their certificates."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tidelake.audit.findings import Findings
from tidelake.audit.proofs import READERS, Chain, StoredCertificate
from tidelake.config.lake_paths import cut_key, cuts, seq_of
from tidelake.errors import StorageError
from tidelake.io.storage import Store
from tidelake.lake.cut import Abandoned, Cut
from tidelake.lake.cut_documents import find_outcome

_SAME = ("feed", "hour", "applied_ts", "resolved_ts", "run", "version", "published_at_ms", "incomplete", "parent_seq")


def check_cuts(store: Store, feed: str, chain: Chain, findings: Findings) -> list[StoredCertificate]:
    """Compare the documents of cuts with their certificates.

    Returns:
        The certificates of the cuts that the lake still has.
    """
    there = {seq_of(o.key) for o in store.objects(cuts(feed))}
    newest = max(chain.audited)
    retained = [p for p in chain.audited.values() if p.seq in there]
    findings.expect(newest in there, newest, cut_key(feed, newest), "it is missing; the newest cut is always retained")
    findings.skip(
        "cuts", "maintenance let go of them: their snapshots are gone", len(chain.audited) - len(retained) - (newest not in there)
    )
    with ThreadPoolExecutor(READERS) as pool:
        for proof, cut in zip(retained, pool.map(lambda p: _read(store, feed, p), retained), strict=True):
            findings.checked["cuts"] += 1
            if isinstance(cut, str):
                findings.expect(False, proof.seq, cut_key(feed, proof.seq), cut)
            elif proof.certificate is not None:
                _compare(proof, cut, findings)
    return [p for p in retained if p.certificate is not None]


def _read(store: Store, feed: str, proof: StoredCertificate) -> Cut | str:
    """A cut's document, or what is wrong with it."""
    try:
        found = find_outcome(store, feed, proof.seq)
    except StorageError as e:
        return e.message
    if isinstance(found, Abandoned):
        return "it says that the cut was abandoned, but there is a certificate of it"
    return found if found is not None else "it is missing"


def _compare(proof: StoredCertificate, cut: Cut, findings: Findings) -> None:
    said, key = proof.says, cut_key(proof.says.feed, proof.seq)
    for name in _SAME:
        mine, theirs = getattr(cut, name), getattr(said, name)
        findings.expect(mine == theirs, proof.seq, key, f"{name} is {mine!r}, the certificate says {theirs!r}")
    findings.expect(cut.seq == said.cut, proof.seq, key, f"seq is {cut.seq}, the certificate says {said.cut}")
    for what, here, there in (("snapshots", cut.snapshots, said.tables), ("changelogs", cut.changelogs, said.changelogs)):
        different = sorted(i for i in here.keys() | there.keys() if here.get(i) != there.get(i))
        findings.expect(not different, proof.seq, key, f"{what} differ from the certificate: {', '.join(different)}")
    lists = {s.annotations.uuid: s.digest.sha256 for s in proof.subjects}
    different = sorted(u for u, sha256 in lists.items() if u not in cut.files or cut.files[u].sha256 != sha256)
    findings.expect(not different, proof.seq, key, f"files differ from the certificate: {', '.join(different)}")
