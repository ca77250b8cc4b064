"""Generates a workload: archives of the bazaar in several protocols, with the true contents of its tables.

Below the store's URI: `<protocol>/<topic>/…`, for Avro also `avro_schemas.json` and `checkpoints.json` beside the protocol's folder,
and optionally `truth/<protocol>.json.gz`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from tidelake.demo.archive import LAYOUTS, ArchiveWriter
from tidelake.demo.bazaar import ALL_DDL
from tidelake.demo.delivery import Delivery
from tidelake.demo.history import History
from tidelake.demo.messages.encode_avro import AvroEncoder
from tidelake.demo.replicator import DEFAULT_CRASHES, Replicator
from tidelake.demo.sinks import PROTOCOLS, SINKS
from tidelake.demo.upstream import TableContents
from tidelake.io.storage import Store
from tidelake.tso import format_hour


@dataclass(frozen=True)
class Size:
    """Size of an archive: number of objects and their bytes."""

    objects: int
    bytes: int


@dataclass
class Workload:
    """A generated workload. deliveries, sizes: by protocol; avro_schemas: id → text."""

    history: History
    deliveries: dict[str, Delivery] = field(default_factory=dict)
    sizes: dict[str, Size] = field(default_factory=dict)
    avro_schemas: dict[int, str] = field(default_factory=dict)

    @property
    def hours(self) -> list[datetime]:
        """All hours with objects; the last one has only the end of the delivery."""
        return self.history.hour_starts

    def truth(self, protocol: str, hour: datetime) -> dict[str, TableContents]:
        """Return the tables at M of the hour, `delivery.resolved(hour)`; for Avro only tables with a key."""
        tables = self._truths[self.deliveries[protocol].resolved(hour)]
        return {name: t for name, t in tables.items() if t["key"] or self.deliveries[protocol].marks}

    @cached_property
    def _truths(self) -> dict[int, dict[str, TableContents]]:
        """The true contents at every M, computed on first use."""
        points = sorted({d.resolved(hour) for d in self.deliveries.values() for hour in self.hours})
        return dict(zip(points, self.history.truths(points), strict=True))

    def truth_file(self, protocol: str) -> dict[str, Any]:
        """Return the content of the JSON file: `truth` of all hours with resolved ts and statements."""
        delivery = self.deliveries[protocol]
        hours: list[dict[str, Any]] = []
        for hour in self.hours:
            resolved = delivery.resolved(hour)
            ddl = [{"commit_ts": d.commit_ts, "query": d.query, "type": d.code} for d in delivery.ddl if d.commit_ts <= resolved]
            entry = {"hour": format_hour(hour), "resolved_ts": resolved, "ddl": ddl, "tables": self.truth(protocol, hour)}
            hours.append(entry if delivery.marks else entry | {"unsettled_keys": delivery.unsettled(hour)})
        return {"workload": "bazaar", "protocol": protocol, "hours": hours}


def generate(
    store: Store,
    protocols: Sequence[str] = PROTOCOLS,
    *,
    hours: int = 3,
    rows_per_hour: int = 4000,
    seed: int = 1,
    ddl: Collection[str] = ALL_DDL,
    ddl_span_hours: float = 3.0,
    crashes: Sequence[float] = DEFAULT_CRASHES,
    truth: bool = False,
) -> Workload:
    """Write the archives of some protocols. Equal arguments give equal bytes.

    Memory use depends on the living rows and one flush window, not on the length.

    Args:
        store: Where to write.
        protocols: The protocols.
        hours: Number of hours.
        rows_per_hour: Approximate number of row events per hour.
        seed: Seed of the random numbers.
        ddl: Names of the statements of bazaar.ddl_plan.
        ddl_span_hours: Time over which the plan is stretched.
        crashes: Crashes of the changefeed, in minutes after the start.
        truth: Also write the truth files.
    """
    history = History(seed=seed, hours=hours, rows_per_hour=rows_per_hour, ddl=ddl, ddl_span_hours=ddl_span_hours)
    workload = Workload(history)
    for protocol in protocols:
        replicator = Replicator(history, SINKS[protocol], crashes=crashes, seed=seed)
        archive = ArchiveWriter(store, protocol, LAYOUTS[protocol])
        for message in replicator.messages():
            archive.add(message)
        archive.close()
        workload.deliveries[protocol] = replicator.delivery
        workload.sizes[protocol] = Size(archive.objects, archive.bytes)
        if isinstance(replicator.encoder, AvroEncoder):
            workload.avro_schemas = replicator.encoder.schemas
            store.write("avro_schemas.json", _json(workload.avro_schemas))
            store.write("checkpoints.json", _json(replicator.delivery.checkpoints))
    if truth:
        for protocol in protocols:
            store.write(f"truth/{protocol}.json.gz", gzip.compress(_json(workload.truth_file(protocol)), mtime=0))
    return workload


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode()
