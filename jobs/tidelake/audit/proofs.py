"""Reads the certificates of a feed, with their bytes' sha256.

Certificates are never removed, so their number grows with the hours. Each is read once and given whole to the checks that need its numbers
by table, together with the one before. What stays in memory of it has a line for each table only if its cut is retained.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tidelake.audit.findings import Findings
from tidelake.config.lake_paths import certificate_key, certificates, cuts, seq_of
from tidelake.errors import ConfigError
from tidelake.io.storage import Store
from tidelake.lake.proof.model import Certificate, Predicate, Subject

READERS = 8  # documents read concurrently

Offsets = Mapping[str, Mapping[int, tuple[int, int]]]  # topic → partition → first and last
_OFFSETS = TypeAdapter(dict[str, dict[int, tuple[int, int]]])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCertificate:
    """A certificate as it is stored.

    Attributes:
        seq: Number of the cut, from the key.
        key: Its key.
        sha256: Of its bytes.
        certificate: What it says; None for one of the version before, and for one that cannot be read.
        old: It is of the version before: without a chain.
        resolved_ts: The end of its window (TSO); None if it cannot be read.
        offsets: The offsets that are complete.
    """

    seq: int
    key: str
    sha256: str
    certificate: Certificate | None
    old: bool
    resolved_ts: int | None
    offsets: Offsets

    @property
    def says(self) -> Predicate:
        """The members. Only of a certificate that can be read."""
        assert self.certificate is not None
        return self.certificate.predicate

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """The tables. None of a certificate that has none or cannot be read."""
        return self.certificate.subject if self.certificate else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Certificates by the number of their cut, ascending.

    Attributes:
        store: The lake's store.
        audited: Those that are audited, as far as they are read.
        before: The one before the first of them, if there is one. It is only compared with.
        start: Number from which on certificates are audited.
    """

    store: Store
    audited: dict[int, StoredCertificate]
    before: StoredCertificate | None
    start: int

    @property
    def every(self) -> dict[int, StoredCertificate]:
        """The audited ones and the one before."""
        return ({self.before.seq: self.before} if self.before else {}) | self.audited

    @property
    def readable(self) -> list[StoredCertificate]:
        """The audited ones of the present form that can be read."""
        return [p for p in self.audited.values() if p.certificate is not None]

    @property
    def changes_after(self) -> int:
        """The TSO after which changelogs have all changes, 0 if they have all. A cut at or before it may lack its changelogs."""
        return max((p.says.let_go.changelog_retained_after for p in self.readable if p.says.let_go), default=0)

    def continued(self, proof: StoredCertificate) -> int:
        """Return the number of the cut that a certificate's continues, 0 for nothing."""
        said = proof.says
        return said.parent_seq if said.parent_seq is not None else said.previous.cut if said.previous else 0

    def parent(self, proof: StoredCertificate) -> StoredCertificate | None:
        """Return the certificate of the cut that a certificate's continues; None for nothing, and if it is not read."""
        seq = self.continued(proof)
        return self.before if self.before is not None and self.before.seq == seq else self.audited.get(seq)

    def whole(self, proof: StoredCertificate) -> StoredCertificate:
        """Return a certificate with its numbers by table. Reads it again."""
        return _proof(proof.seq, proof.key, self.store.read(proof.key), Findings())


OnWhole = Callable[[Chain, StoredCertificate, StoredCertificate | None], None]


def read_chain(store: Store, feed: str, start: int, findings: Findings, check: OnWhole | None = None) -> Chain:
    """Read the certificates from a cut on.

    Args:
        store: The lake's store.
        feed: The feed.
        start: Number of the cut.
        findings: Gets what cannot be read.
        check: Called with each audited certificate and the one before, both whole, in the order of the cuts. The chain has all up to it.

    Raises:
        ConfigError: NOT_PUBLISHED: the feed has no certificate; NOT_A_CUT: it has none of that number.
    """
    seqs = [seq_of(o.key) for o in store.objects(certificates(feed))]
    if not seqs:
        raise ConfigError(f"feed {feed} has no certificate in {store.uri}", code="NOT_PUBLISHED", remedy=f"`tidelake run --feed {feed}`")
    if start > max(seqs):
        raise ConfigError(f"feed {feed} has no cut {start}", code="NOT_A_CUT", remedy=f"its newest certificate is of cut {max(seqs)}")
    wanted = [seq for seq in seqs if seq >= start]
    earlier = [seq for seq in seqs if seq < start]
    retained = {seq_of(o.key) for o in store.objects(cuts(feed))}
    chain = Chain(store=store, audited={}, before=None, start=start)
    last: StoredCertificate | None = None
    for proof in _read(store, feed, [*earlier[-1:], *wanted], findings):
        kept = _kept(proof, retained=proof.seq in retained)
        if proof.seq < start:
            chain = replace(chain, before=kept)
        else:
            chain.audited[proof.seq] = kept
            if check is not None:
                check(chain, proof, last)
        last = proof
    return chain


def _read(store: Store, feed: str, seqs: Sequence[int], findings: Findings) -> Iterator[StoredCertificate]:
    """Yield certificates whole."""
    with ThreadPoolExecutor(READERS) as pool:
        for first in range(0, len(seqs), READERS):
            keys = {seq: certificate_key(feed, seq) for seq in seqs[first : first + READERS]}
            for (seq, key), content in zip(keys.items(), pool.map(store.read, keys.values()), strict=True):
                yield _proof(seq, key, content, findings)


def _kept(proof: StoredCertificate, *, retained: bool) -> StoredCertificate:
    """A certificate without its numbers by table and its statements; without its tables, too, unless its cut is retained."""
    if proof.certificate is None:
        return proof
    counts = proof.says.counts and proof.says.counts.model_copy(update={"tables": {}})
    left: dict[str, Any] = {"rows": {}, "late": {}, "ddl": (), "expectations": {}, "decisions": (), "counts": counts}
    left |= {} if retained else {"uncovered": (), "tables": {}, "changelogs": {}}
    of_certificate = {"predicate": proof.says.model_copy(update=left)} | ({} if retained else {"subject": ()})
    return replace(proof, certificate=proof.certificate.model_copy(update=of_certificate))


def _proof(seq: int, key: str, content: bytes, findings: Findings) -> StoredCertificate:
    sha256 = hashlib.sha256(content).hexdigest()
    try:
        certificate = Certificate.model_validate_json(content)
    except ValidationError as e:
        return _other(seq, key, content, sha256, e, findings)
    said = certificate.predicate
    return StoredCertificate(
        seq=seq, key=key, sha256=sha256, certificate=certificate, old=False, resolved_ts=said.resolved_ts, offsets=said.offsets
    )


def _other(seq: int, key: str, content: bytes, sha256: str, wrong: ValidationError, findings: Findings) -> StoredCertificate:
    """A certificate of the version before, or one that cannot be read."""
    resolved_ts, offsets, old = None, dict[str, dict[int, tuple[int, int]]](), False
    first = wrong.errors(include_url=False, include_input=False)[0]
    what = f"cannot be read: {'.'.join(map(str, first['loc']))}: {first['msg']}"
    try:
        document = json.loads(content)
        old = isinstance(document, dict) and "_type" not in document
        if old:
            resolved_ts, offsets = int(document["resolved_ts"]), _OFFSETS.validate_python(document["offsets"])
    except (ValueError, KeyError, TypeError) as e:
        old, what = False, f"cannot be read: {type(e).__name__}: {e}"
    findings.expect(old, seq, key, what)
    return StoredCertificate(seq=seq, key=key, sha256=sha256, certificate=None, old=old, resolved_ts=resolved_ts, offsets=offsets)
