"""Checks the input of the cuts: manifests, landed objects, and that the offsets are contiguous."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
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

Manifests = dict[str, Manifest]


def check_inputs(store: Store, chain: Chain, findings: Findings, progress: OnRead | None) -> Manifests:
    """Compare manifests and landed objects with their sums, and the offsets of every cut with the manifests.

    Returns:
        The manifests by key.
    """
    manifests = _manifests(store, chain, findings)
    objects: dict[str, NamedObject] = {}
    for proof in chain.readable:
        for m in proof.says.inputs.manifests:
            for o in manifests[m.key].objects if m.key in manifests else ():
                objects.setdefault(o.key, NamedObject(key=o.key, sha256=o.sha256, size=o.size, cut=proof.seq))
    check_objects("landed objects", store, objects.values(), findings, progress)
    _check_offsets(chain, manifests, findings)
    return manifests


def _manifests(store: Store, chain: Chain, findings: Findings) -> Manifests:
    """Read the manifests that the certificates name."""
    first: dict[str, tuple[int, ManifestDigest]] = {}
    for proof in chain.readable:
        for m in proof.says.inputs.manifests:
            first.setdefault(m.key, (proof.seq, m))
            same = first[m.key][1].sha256 in (m.sha256, None) or m.sha256 is None
            findings.expect(same, proof.seq, proof.key, f"{m.key} has another sha256 than in the certificate of cut {first[m.key][0]}")
    with ThreadPoolExecutor(READERS) as pool:
        contents = list(pool.map(store.read_if_present, first))
    found: Manifests = {}
    for (key, (cut, m)), content in zip(first.items(), contents, strict=True):
        findings.checked["manifests"] += 1
        if (manifest := _manifest(cut, m, content, findings)) is not None:
            found[key] = manifest
    return found


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


def _check_offsets(chain: Chain, manifests: Manifests, findings: Findings) -> None:
    """Every offset that a cut says is complete is landed, or never held a message."""
    for proof in chain.readable:
        said = proof.says
        if said.kind in ("rollback", "rewrite"):
            continue
        parent, mine = chain.parent(proof), [manifests[m.key] for m in said.inputs.manifests if m.key in manifests]
        if len(mine) < len(said.inputs.manifests):
            findings.skip(f"offsets of cut {proof.seq}", "a manifest of it is missing or changed")
        elif parent is None and chain.continued(proof):
            findings.skip(f"offsets of cut {proof.seq}", f"it continues cut {chain.continued(proof)}, whose certificate is not read")
        else:
            _check_partitions(proof, parent.offsets if parent else {}, mine, findings)


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
