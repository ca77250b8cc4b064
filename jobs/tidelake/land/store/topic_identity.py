"""Detect a recreated topic: Kafka's id distinguishes it from the topic whose offsets are known.

Brokers before Kafka 2.8 have no ids, and neither have manifests of earlier versions. Then only offsets that went back show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelake.config.finding_kinds import REFUSALS
from tidelake.errors import Coordinates, OrderError
from tidelake.land.store.manifest import Manifest


def ids_of(manifests: Iterable[Manifest]) -> dict[str, str]:
    """Return the topics' ids from the newest manifest that has them. manifests: ascending by hour."""
    return {topic: topic_id for manifest in manifests for topic, topic_id in manifest.topic_ids.items()}


def check_ids(known: Mapping[str, str], now: Mapping[str, str], holder: str) -> None:
    """Raise OrderError (TOPIC_RECREATED) for the first topic whose id changed. holder: of the known ids, for the message."""
    for topic in sorted(known.keys() & now.keys()):
        if known[topic] != now[topic]:
            raise OrderError(
                f"topic {topic} has the id {now[topic]}, and {holder} {known[topic]}",
                code="TOPIC_RECREATED",
                remedy=REFUSALS["TOPIC_RECREATED"].remedy,
            )


def went_back(place: tuple[str, int], wanted: int, high: int, holder: str) -> OrderError:
    """Return the error for a partition that ends before offsets that the holder has."""
    return OrderError(
        f"{holder} up to offset {wanted}, and the log ends at {high}",
        code="OFFSETS_WENT_BACK",
        at=Coordinates(*place, wanted),
        remedy=REFUSALS["OFFSETS_WENT_BACK"].remedy,
    )
