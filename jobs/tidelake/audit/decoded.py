"""Decodes landed messages again, and compares their events with the certificates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelake.audit.findings import Findings, OnRead
from tidelake.audit.inputs import Manifests
from tidelake.audit.proofs import Chain, StoredCertificate
from tidelake.audit.sampled_rows import Place
from tidelake.config.feed import Feed
from tidelake.config.lake_paths import manifest_key
from tidelake.decode.landed_hour import decode_job
from tidelake.decode.landed_source import LandedReader
from tidelake.decode.masker import MaskNames
from tidelake.decode.positions import origins
from tidelake.decode.sink_schemas import version_schemas
from tidelake.errors import TidelakeError
from tidelake.land.store.manifest import Manifest
from tidelake.publish.certify import definition_files, package_sha256
from tidelake.spark.worker_secrets import NONE

_KINDS = ("row", "ddl", "resolved", "rejected")
_AT = ("topic", "partition", "offset", "ordinal", "commit_ts")


def check_decoded(
    feed: Feed, chain: Chain, manifests: Manifests, sample: Mapping[int, set[Place]], findings: Findings, progress: OnRead | None
) -> None:
    """Decode the messages of every window and count their events.

    Args:
        feed: The feed.
        chain: The certificates.
        manifests: The manifests.
        sample: By cut, places of events that a changelog names.
        findings: Gets the result.
        progress: Called with (bytes decoded, bytes in all).
    """
    windows = [p for p in chain.readable if p.says.kind in ("hour", "redo")]
    total = sum(manifests.sizes.get(m.key, 0) for p in windows for m in p.says.inputs.manifests)
    done = 0
    for proof, mine in manifests.read(windows):
        if len(mine) < len(proof.says.inputs.manifests):
            findings.skip(f"messages of cut {proof.seq}", "a manifest of it is missing or changed")
            continue
        counts, wanted = Counter[str](), set(sample.get(proof.seq, ()))
        counted = {manifest_key(m.feed, m.hour, m.generation) for m in mine if m.hour in proof.says.generations}
        try:
            for manifest in mine:
                found = _decoded(feed, manifest, wanted)
                if manifest_key(manifest.feed, manifest.hour, manifest.generation) in counted:
                    counts.update(found)
                done += sum(o.size for o in manifest.objects)
                if progress is not None:
                    progress(done, total)
        except TidelakeError as e:
            findings.expect(False, proof.seq, proof.key, f"its messages cannot be decoded again: {e}")
            continue
        findings.checked["decoded events"] += counts.total()
        _compare(feed, proof, counts, wanted, findings)


def _compare(feed: Feed, proof: StoredCertificate, counts: Counter[str], missing: set[Place], findings: Findings) -> None:
    """Compare numbers of events, and places that were not found, with what the certificate and the changelogs say."""
    said = proof.says.events
    different = [f"{counts[k]:,} of kind {k}, expected {said.get(k, 0):,}" for k in _KINDS if counts[k] != said.get(k, 0)]
    if different:
        definitions = proof.says.definitions
        if definitions.files != definition_files(feed) or definitions.package.sha256 != package_sha256():
            findings.skip(f"events of cut {proof.seq}", f"the feed's files or Tidelake changed since, and now {'; '.join(different)}")
            return
        findings.expect(False, proof.seq, proof.key, f"its messages have {'; '.join(different)}")
    what = f"{len(missing):,} changes of its changelogs come from no landed message, the first {sorted(missing)[:1]}"
    findings.expect(not missing, proof.seq, proof.key, what)


def _decoded(feed: Feed, manifest: Manifest, wanted: set[Place]) -> Counter[str]:
    """Return the number of an hour's events by kind. Places that it has are removed from `wanted`."""
    versions = version_schemas(feed, [s.key for s in manifest.sources])
    job = decode_job(feed, manifest.objects, versions, origins(manifest) if feed.by_offsets else None)
    reader = LandedReader(job.model_copy(update={"masks": MaskNames()}))  # masks change no number
    counts = Counter[str]()
    offsets = pa.array(sorted({offset for _, _, offset, *_ in wanted}), pa.int64())
    for part in reader.parts:
        for events in reader.rows(part, NONE):
            for kind, n in zip(*(a.to_pylist() for a in pc.value_counts(events.column("kind")).flatten()), strict=True):
                counts[kind] += n
            if len(offsets):
                chosen = pa.array(np.asarray(pc.is_in(events.column("offset"), offsets)))
                named = events.filter(chosen).select(list(_AT))
                wanted -= set(zip(*(c.to_pylist() for c in named.columns), strict=True))
    return counts
