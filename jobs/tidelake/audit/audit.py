"""The audit of a feed: every check, from the certificates to the bytes of the data files."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from tidelake.audit.chain import check_chain
from tidelake.audit.counts import check_counts
from tidelake.audit.cuts import check_cuts
from tidelake.audit.findings import Findings, OnRead, Unchecked, Wrong
from tidelake.audit.inputs import Manifests, check_inputs
from tidelake.audit.proofs import Chain, StoredCertificate, read_chain
from tidelake.audit.signatures import check_signatures
from tidelake.audit.tables import check_tables
from tidelake.audit.windows import check_window
from tidelake.config.feed import Feed
from tidelake.io.signing import PublicKeys
from tidelake.io.storage import Store, open_store
from tidelake.spark.lake_settings import file_settings

log = logging.getLogger(__name__)

_METADATA = "Iceberg's metadata beside the lists of files: columns, partition values and bounds"


class Audited(BaseModel):
    """Result of an audit.

    Attributes:
        feed: The feed.
        first: Number of the first audited cut.
        last: Number of the last one.
        checked: Number of things that were compared, by what they are.
        unchecked: What could not be compared, and why.
        wrong: What is wrong, by cut; empty if nothing is.
    """

    feed: str
    first: int
    last: int
    checked: dict[str, int]
    unchecked: list[Unchecked]
    wrong: list[Wrong]


def audit(
    name: str, lake: str, start: int = 1, keys: PublicKeys | None = None, *, deep: Feed | None = None, progress: OnRead | None = None
) -> Audited:
    """Check a feed's cuts by their certificates. Reads the lake's files and nothing else.

    Args:
        name: The feed's name.
        lake: URI of the lake.
        start: Number of the first cut to audit.
        keys: Public keys whose signatures count; None: signatures are not checked.
        deep: The feed, to decode the landed messages again as it says, and fold a sample of buckets with the specification. None: not.
        progress: Called with (bytes read, bytes in all) while objects are compared.

    Raises:
        ConfigError: NOT_PUBLISHED, NOT_A_CUT.
        StorageError: The store cannot be read.
    """
    store, findings = open_store(lake), Findings()
    log.info("certificates", extra={"begins": "read"})
    numbers = Findings()

    def check(chain: Chain, proof: StoredCertificate, before: StoredCertificate | None) -> None:
        if proof.certificate is not None:
            check_window(chain, proof, before, numbers)
            check_counts(proof, before, numbers)

    chain = read_chain(store, name, start, findings, check)
    check_chain(store, name, chain, findings)
    check_signatures(store, name, chain, keys, findings)
    findings.add(numbers)
    log.info("landed objects", extra={"begins": "compare"})
    manifests = check_inputs(store, chain, findings, progress)
    retained = check_cuts(store, name, chain, findings)
    log.info("tables", extra={"begins": "compare"})
    settings = file_settings(lake)
    check_tables(store, name, chain, retained, settings, findings, progress)
    if deep is not None and not findings.wrong:
        _deep(store, deep, chain, retained, manifests, settings, findings, progress)
    elif deep is not None:
        findings.skip("messages and rows", "something else is wrong")
    findings.skip("tables", _METADATA, sum(len(p.subjects) for p in retained))
    return Audited(
        feed=name,
        first=min(chain.audited),
        last=max(chain.audited),
        checked=dict(findings.checked),
        unchecked=findings.unchecked,
        wrong=_sorted(findings.wrong),
    )


def _deep(
    store: Store,
    feed: Feed,
    chain: Chain,
    retained: Sequence[StoredCertificate],
    manifests: Manifests,
    settings: Mapping[str, str],
    findings: Findings,
    progress: OnRead | None,
) -> None:
    from tidelake.audit.decoded import check_decoded  # the decoders are only imported for it
    from tidelake.audit.sampled_rows import check_sample

    log.info("buckets", extra={"begins": "fold"})
    sample = check_sample(store, chain, retained, settings, findings)
    log.info("messages", extra={"begins": "decode"})
    check_decoded(feed, chain, manifests, sample, findings, progress)


def _sorted(wrong: Sequence[Wrong]) -> list[Wrong]:
    """Sort by cut; of one cut in the order of the checks, each once."""
    return list({(w.cut, w.key, w.what): w for w in sorted(wrong, key=lambda w: w.cut)}.values())
