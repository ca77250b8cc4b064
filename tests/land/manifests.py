"""Manifests that say only what a test is about."""

from __future__ import annotations

from tidelake.land.store.manifest import Manifest, PartitionFacts
from tidelake.land.store.ranges import Ranges, holes


def hour(name: str, **partitions: Ranges) -> Manifest:
    """A manifest of which only the ranges matter; p0="…" are those of partition 0."""
    facts = {
        int(p[1:]): PartitionFacts(
            first=None, last=None, count=0, bytes=0, ranges=r, gaps=holes(r), min_timestamp_ms=None, max_timestamp_ms=None
        )
        for p, r in partitions.items()
    }
    return Manifest(
        feed="f", hour=name, generation=1, protocol="open", layout="", sources=(), objects=(), partitions={"t": facts}, findings=()
    )
