"""The decode stage: writes the landed objects of an hour as rows of the events table, in one atomic overwrite.

An hour that is decoded already costs the reading of two documents: the decoders are imported only for one that is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from tidelake.config.feed import Feed
from tidelake.decode.record import DecodeRecord, decoder_id, read_record
from tidelake.decode.waiting import has_come
from tidelake.errors import OrderError
from tidelake.lake.cuts import newest_cut
from tidelake.lake.opened import Lake
from tidelake.land.store.manifest import all_newest, newest
from tidelake.tso import format_hour

SCHEMAS_BY_MESSAGE = frozenset({"simple-json", "simple-avro"})  # protocols whose rows refer to a schema that another message carries


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeReport:
    """Result of a decode run. changed is False where the same decoder had decoded the same generation already.

    again: earlier hours that were decoded again, because the table schema that their rows waited for has arrived.
    """

    record: DecodeRecord
    changed: bool
    tables: dict[str, int] = field(default_factory=dict)
    again: tuple[str, ...] = ()


def decode_hour(lake: Lake, hour: datetime, *, redo: bool = False) -> DecodeReport:
    """Decode the newest generation of an hour. Decode earlier open hours again if their waiting rows can be decoded now.

    Args:
        lake: The feed's opened lake.
        hour: First instant of the hour, UTC.
        redo: Decode again even if the same decoder decoded the same generation.

    Raises:
        OrderError: NOT_LANDED; LANDED_DAMAGED for a landed object whose bytes changed.
    """
    feed, store, name = lake.feed, lake.store, format_hour(hour)
    manifest = newest(store, feed.name, name)
    if manifest is None:
        raise OrderError(f"hour {name} of feed {feed.name} is not landed", code="NOT_LANDED", remedy=_land_first(feed, name))
    before = read_record(store, feed.name, name)
    same = before is not None and (before.generation, before.decoder) == (manifest.generation, decoder_id(feed))
    if before is not None and same and not redo and not has_come(store, feed.name, before.waiting):
        report = DecodeReport(record=before, changed=False)
    else:
        from tidelake.decode.landed_hour import decode_landed

        report = DecodeReport(record=decode_landed(lake, name, manifest), changed=True)
    again = _decode_waiting(lake, name) if feed.protocol in SCHEMAS_BY_MESSAGE else []
    return replace(report, again=tuple(again))


def _decode_waiting(lake: Lake, before: str) -> list[str]:
    """Decode earlier open hours again if a table schema that they wait for has arrived, and return them."""
    feed, store = lake.feed, lake.store
    cut = newest_cut(lake.catalog, store, feed.name)
    since = min([*cut.open_hours, cut.hour]) if cut else ""
    manifests = all_newest(store, feed.name, since=since, until=before)
    open_hours = {h for h in manifests if h < before and (cut is None or h > cut.hour or h in cut.open_hours)}
    again = []
    for hour in sorted(open_hours):
        record = read_record(store, feed.name, hour)
        if record is not None and has_come(store, feed.name, record.waiting):
            from tidelake.decode.landed_hour import decode_landed

            decode_landed(lake, hour, manifests[hour])
            again.append(hour)
    return again


def _land_first(feed: Feed, hour: str) -> str:
    return f"run `tidelake land --feed {feed.name} --hour {hour}` first"
