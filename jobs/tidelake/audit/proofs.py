"""Reads the certificates of a feed, with their bytes' sha256."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from tidelake.audit.findings import Findings
from tidelake.config.lake_paths import certificate_key, certificates, seq_of
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
        content: Its bytes.
        certificate: What it says; None for one of the version before, and for one that cannot be read.
        old: It is of the version before: without a chain.
        resolved_ts: The end of its window (TSO); None if it cannot be read.
        offsets: The offsets that are complete.
    """

    seq: int
    key: str
    content: bytes
    certificate: Certificate | None
    old: bool
    resolved_ts: int | None
    offsets: Offsets

    @property
    def sha256(self) -> str:
        """The sha256 of the bytes."""
        return hashlib.sha256(self.content).hexdigest()

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
        audited: Those that are audited.
        before: The one before the first of them, if there is one. It is only compared with.
        start: Number from which on certificates are audited.
    """

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
        return self.audited.get(seq := self.continued(proof)) or (self.before if self.before and self.before.seq == seq else None)


def read_chain(store: Store, feed: str, start: int, findings: Findings) -> Chain:
    """Read the certificates from a cut on. start: number of the cut.

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
    found = _read(store, feed, [*earlier[-1:], *wanted], findings)
    before = found.pop(earlier[-1]) if earlier else None
    return Chain(audited=found, before=before, start=start)


def _read(store: Store, feed: str, seqs: Iterable[int], findings: Findings) -> dict[int, StoredCertificate]:
    with ThreadPoolExecutor(READERS) as pool:
        contents = pool.map(lambda seq: (seq, store.read(certificate_key(feed, seq))), seqs)
        return {seq: _proof(seq, certificate_key(feed, seq), content, findings) for seq, content in contents}


def _proof(seq: int, key: str, content: bytes, findings: Findings) -> StoredCertificate:
    try:
        certificate = Certificate.model_validate_json(content)
    except ValidationError as e:
        return _other(seq, key, content, e, findings)
    said = certificate.predicate
    return StoredCertificate(
        seq=seq, key=key, content=content, certificate=certificate, old=False, resolved_ts=said.resolved_ts, offsets=said.offsets
    )


def _other(seq: int, key: str, content: bytes, wrong: ValidationError, findings: Findings) -> StoredCertificate:
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
    return StoredCertificate(seq=seq, key=key, content=content, certificate=None, old=old, resolved_ts=resolved_ts, offsets=offsets)
