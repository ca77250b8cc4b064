"""Checks the input of the cuts: manifests, landed objects, and that the offsets are contiguous."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

from pydantic import ValidationError

from tidelake.archives import layout_of
from tidelake.audit.findings import Findings, OnRead
from tidelake.audit.objects import NamedObject, check_objects
from tidelake.audit.proofs import READERS, Chain, Offsets, StoredCertificate
from tidelake.config.source import LayoutName
from tidelake.io.storage import Store
from tidelake.lake.proof.model import ManifestDigest
from tidelake.land.store.coverage import coverage
from tidelake.land.store.manifest import Manifest


class Manifests:
    """The manifests that certificates name. They are read when they are needed, because their number grows with the hours.

    Args:
        store: The lake's store.
        findings: Gets what is wrong, once for each manifest.

    Attributes:
        sizes: Bytes of the landed objects of each manifest that was read, by key.
    """

    def __init__(self, store: Store, findings: Findings) -> None:
        self._store, self._findings = store, findings
        self._first = dict[str, tuple[int, ManifestDigest]]()  # by key: the first cut that names it, and how
        self.sizes = dict[str, int]()

    def read(self, proofs: Iterable[StoredCertificate]) -> Iterator[tuple[StoredCertificate, list[Manifest]]]:
        """Yield certificates with their manifests, without those that are missing or changed."""
        todo = list(proofs)
        with ThreadPoolExecutor(READERS) as pool:
            for n in range(0, len(todo), READERS):
                some = todo[n : n + READERS]
                keys = list(dict.fromkeys(m.key for proof in some for m in proof.says.inputs.manifests))
                contents = dict(zip(keys, pool.map(self._store.read_if_present, keys), strict=True))
                for proof in some:
                    found = (self._of(proof, m, contents[m.key]) for m in proof.says.inputs.manifests)
                    yield proof, [m for m in found if m is not None]

    def _of(self, proof: StoredCertificate, m: ManifestDigest, content: bytes | None) -> Manifest | None:
        is_new = m.key not in self._first
        cut, first = self._first.setdefault(m.key, (proof.seq, m))
        same = first.sha256 in (m.sha256, None) or m.sha256 is None
        self._findings.expect(same, proof.seq, proof.key, f"{m.key} has another sha256 than in the certificate of cut {cut}")
        self._findings.checked["manifests"] += is_new
        manifest = _manifest(cut, first, content, self._findings if is_new else Findings())
        if manifest is not None:
            self.sizes[m.key] = sum(o.size for o in manifest.objects)
        return manifest


def check_inputs(store: Store, chain: Chain, findings: Findings, progress: OnRead | None) -> Manifests:
    """Compare manifests and landed objects with their sums, and the offsets of every cut with the manifests.

    Returns:
        The manifests.
    """
    manifests, offsets = Manifests(store, findings), Findings()
    objects: dict[str, NamedObject] = {}
    for proof, mine in manifests.read(chain.readable):
        for o in (o for m in mine for o in m.objects):
            objects.setdefault(o.key, NamedObject(key=o.key, sha256=o.sha256, size=o.size, cut=proof.seq))
        _check_offsets(chain, proof, mine, offsets)
    check_objects("landed objects", store, objects.values(), findings, progress)
    findings.add(offsets)
    return manifests


def _manifest(cut: int, m: ManifestDigest, content: bytes | None, findings: Findings) -> Manifest | None:
    if content is None:
        findings.expect(False, cut, m.key, "it is missing")
        return None
    sha256 = hashlib.sha256(content).hexdigest()
    if m.sha256 is None:
        findings.skip(m.key, f"it was missing when cut {cut} was published, so its certificate has no sum of it")
    elif not findings.expect(sha256 == m.sha256, cut, m.key, f"its sha256 is {sha256}, expected {m.sha256}"):
        return None
    try:
        manifest = Manifest.model_validate_json(content)
    except ValidationError as e:
        findings.expect(False, cut, m.key, f"cannot be read: {e.errors(include_url=False, include_input=False)[0]['msg']}")
        return None
    same = (manifest.hour, manifest.generation) == (m.hour, m.generation)
    findings.expect(same, cut, m.key, f"it is of hour {manifest.hour}, generation {manifest.generation}")
    return manifest


def _check_offsets(chain: Chain, proof: StoredCertificate, manifests: Sequence[Manifest], findings: Findings) -> None:
    """Every offset that a cut says is complete is landed, or never held a message."""
    said = proof.says
    if said.kind in ("rollback", "rewrite"):
        return
    parent = chain.parent(proof)
    if len(manifests) < len(said.inputs.manifests):
        findings.skip(f"offsets of cut {proof.seq}", "a manifest of it is missing or changed")
    elif parent is None and chain.continued(proof):
        findings.skip(f"offsets of cut {proof.seq}", f"it continues cut {chain.continued(proof)}, whose certificate is not read")
    else:
        _check_partitions(proof, parent.offsets if parent else {}, manifests, findings)


def _check_partitions(proof: StoredCertificate, known: Offsets, manifests: Sequence[Manifest], findings: Findings) -> None:
    """Compare the offsets of a cut with those of the cut that it continues and with manifests."""
    file_bits = max((layout_of(m.layout).file_bits for m in manifests if m.layout in get_args(LayoutName)), default=0)  # a topic has none
    landed = coverage(manifests, known, file_bits).prefixes
    for topic, partitions in proof.says.offsets.items():
        for number, (first, last) in partitions.items():
            findings.checked["partitions' offsets"] += 1
            begin, end = landed.get(topic, {}).get(number, (first, first - 1))
            what = f"{topic}[{number}]: offsets {first} to {last} are to be complete, but only {begin} to {end} are landed"
            findings.expect(begin <= first and last <= end, proof.seq, proof.key, what)
            before = known.get(topic, {}).get(number)
            if before is not None:
                what = f"{topic}[{number}]: offsets {first} to {last}, after {before[0]} to {before[1]} in the cut that it continues"
                findings.expect(first <= before[0] and last >= before[1], proof.seq, proof.key, what)
