"""Seconds and memory that an audit needs for the certificates of many cuts.

python -m tests.benchmarks.audit_chain [--cuts 1000] [--tables 20]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.audit.certified import hour_of, land, offsets
from tests.lake import lakes
from tidelake.audit.chain import check_chain
from tidelake.audit.counts import check_counts
from tidelake.audit.findings import Findings
from tidelake.audit.inputs import check_inputs
from tidelake.audit.proofs import Chain, StoredCertificate, read_chain
from tidelake.audit.windows import check_window
from tidelake.config.lake_paths import certificate_key, manifest_key
from tidelake.io.storage import Store, open_store


def main() -> None:
    """Write certificates, read them as an audit does, and print the seconds of each part."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cuts", type=int, default=1000)
    options.add_argument("--tables", type=int, default=20)
    chosen = options.parse_args()
    with TemporaryDirectory(prefix="tidelake-audit-") as folder:
        feed, findings = lakes.feed(Path(folder)), Findings()
        store = open_store(feed.lake.uri)
        size = write(store, chosen.cuts, chosen.tables)
        print(f"{chosen.cuts:,} certificates of {chosen.tables:,} tables, {size / 1e6:,.1f} MB")  # noqa: T201

        def check(chain: Chain, proof: StoredCertificate, before: StoredCertificate | None) -> None:
            check_window(chain, proof, before, findings)
            check_counts(proof, before, findings)

        chain = timed("read, windows and counts", lambda: read_chain(store, "shop", 1, findings, check))
        timed("chain", lambda: check_chain(store, "shop", chain, findings))
        timed("manifests and landed objects", lambda: check_inputs(store, chain, findings, None))
        assert findings.wrong == [], findings.wrong[:3]


def timed(what: str, call: Callable[[], Any]) -> Any:
    """Print the seconds of a call and the process's largest memory until then, and return its result."""
    began, used = time.perf_counter(), time.process_time()
    found = call()
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    print(f"{what:30} {seconds:8.2f} s {cpu:8.2f} s of CPU time, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10:,} MiB")  # noqa: T201
    return found


def write(store: Store, cuts: int, tables: int) -> int:
    """Write so many certificates, each with a manifest and a landed object; their bytes in all."""
    previous, size = None, 0
    for seq in range(1, cuts + 1):
        land(store, seq)
        content = certificate(store, seq, tables, previous)
        store.write(certificate_key("shop", seq), content)
        previous, size = {"cut": seq, "sha256": hashlib.sha256(content).hexdigest()}, size + len(content)
    return size


def certificate(store: Store, seq: int, tables: int, previous: dict[str, Any] | None) -> bytes:
    """A certificate with a snapshot and a changelog of each table. A table has ten changes in every window."""
    key, names = manifest_key("shop", hour_of(seq), 1), [f"d.t{n}" for n in range(tables)]
    kinds = (("snapshot", "tables", "d."), ("changelog", "changelogs", "d_changelog."))
    at = {(n, kind): {"identifier": n.replace("d.", place, 1), "uuid": f"{n}-{kind}"} for n in names for kind, _, place in kinds}
    facts = {"metadata": None, "rows": 10 * seq, "files": seq, "size": 1000 * seq, "unproven": 0, "snapshot_id": seq}
    operations = {"events": 12, "duplicates": 2, "inserts": 10, "changes": 10, "rows_before": 10 * (seq - 1), "rows_after": 10 * seq}
    where_to = {"in": 12, "out": 10, "duplicate": 2, "late": 0, "quarantined": 0, "changes": 10}
    predicate = {
        "feed": "shop",
        "cut": seq,
        "kind": "hour",
        "parent_seq": None,
        "previous": previous,
        "abandoned": [],
        "hour": hour_of(seq),
        "applied_ts": (seq - 1) << 18,
        "resolved_ts": seq << 18,
        "run": f"run_{seq}_1",
        "version": "0",
        "published_at_ms": seq,
        "incomplete": False,
        "generations": {hour_of(seq): 1},
        "offsets": {"t": {"0": [0, offsets(seq)[1]]}},
        "resolved_ts_by_partition": {"t": {"0": seq << 18}},
        "inputs": {
            "manifests": [{"hour": hour_of(seq), "generation": 1, "key": key, "sha256": hashlib.sha256(store.read(key)).hexdigest()}]
        },
        "definitions": {"files": {}, "package": {"version": "0", "sha256": "0" * 64}},
        "uncovered": [],
        "counts": {"window": {"in": 12 * tables, "late": 0, "undated": 0}, "tables": dict.fromkeys(names, where_to)},
        "rows": dict.fromkeys(names, operations),
        "ddl": [],
        "expectations": {"checked": 0, "failed": 0, "checks": []},
    }
    for kind, member, _ in kinds:
        predicate[member] = {n: at[n, kind] | {"snapshot_id": seq, "rows": 10 * seq, "buckets": 1} for n in names}
    subject = [
        {
            "name": at[n, kind]["identifier"],
            "digest": {"sha256": hashlib.sha256(f"{n} {kind} {seq}".encode()).hexdigest()},
            "annotations": {"kind": kind, "incarnation": n, "uuid": at[n, kind]["uuid"]} | facts,
        }
        for kind, _, _ in kinds
        for n in names
    ]
    statement = {"_type": "https://in-toto.io/Statement/v1", "subject": subject, "predicateType": "urn:tidelake:certificate:v2"}
    return json.dumps(statement | {"predicate": predicate}, ensure_ascii=False, indent=1).encode()


if __name__ == "__main__":
    main()
