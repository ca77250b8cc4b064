"""Checks the signatures of the certificates."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tidelake.audit.findings import Findings
from tidelake.audit.proofs import READERS, Chain, StoredCertificate
from tidelake.config.lake_paths import seq_of, signature_key, signatures
from tidelake.io.signing import PublicKeys
from tidelake.io.storage import Store


def check_signatures(store: Store, feed: str, chain: Chain, keys: PublicKeys | None, findings: Findings) -> None:
    """Compare the signatures with the certificates. keys: those that count.

    From the first signed certificate on every one must be signed; those before it are not checked.
    """
    signed = {seq_of(o.key) for o in store.objects(signatures(feed))}
    mine = {seq: p for seq, p in chain.audited.items() if seq >= min(signed, default=seq + 1)}
    if keys is None:
        findings.skip("signatures", "--public-key gives the keys that count", len(mine.keys() & signed))
        return
    findings.skip("certificates", "they are not signed", len(chain.audited) - len(mine))
    with ThreadPoolExecutor(READERS) as pool:
        for proof, wrong in zip(mine.values(), pool.map(lambda p: _wrong(store, feed, p, keys), mine.values()), strict=True):
            findings.checked["signatures"] += 1
            findings.expect(wrong is None, proof.seq, signature_key(feed, proof.seq), wrong or "")


def _wrong(store: Store, feed: str, proof: StoredCertificate, keys: PublicKeys) -> str | None:
    """What is wrong with a signature, None if nothing is."""
    envelope = store.read_if_present(signature_key(feed, proof.seq))
    return "it is missing" if envelope is None else keys.wrong(envelope, store.read(proof.key))
