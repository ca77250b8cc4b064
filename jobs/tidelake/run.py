"""The five stages of a feed's hour, alone or all in one Spark application: what jobs/ and the command line call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from tidelake.config.lake_paths import cuts
from tidelake.errors import OrderError, OwnershipError, QualityError
from tidelake.lake.opened import Lake
from tidelake.lake.turns import is_published, refuse_out_of_turn
from tidelake.land import LandReport, land_hour
from tidelake.tso import format_hour
from tidelake.validate.quality.applicable import check_rules

if TYPE_CHECKING:
    from tidelake.compact.stage import CompactReport
    from tidelake.decode.stage import DecodeReport
    from tidelake.order.stage import OrderReport
    from tidelake.validate.quality.verdict import Verdict

STAGES = ("land", "decode", "order", "validate", "compact")


def land(lake: Lake, hour: datetime, progress: Callable[[int, int], None] | None = None) -> LandReport:
    """What the source holds of the hour → canonical Parquet and a manifest. Before the feed's first cut, expectations are checked first."""
    lake.feed.check_hour(format_hour(hour))
    if not lake.store.some(cuts(lake.feed.name), 1):  # later, statements may have changed the tables
        check_rules(lake.feed)
    with _reported(lake, hour):
        report = land_hour(lake.feed, hour, progress)
    lake.landed_bytes += report.bytes
    return report


def decode(lake: Lake, hour: datetime, *, redo: bool = False) -> DecodeReport:
    """Landed objects → events. Of an hour that no cut can hold any more (turns.is_published) only for a redo."""
    from tidelake.decode.stage import decode_hour
    from tidelake.lake.cuts import newest_cut

    if not redo:
        is_published(lake.feed, lake.catalog, lake.store, newest_cut(lake.catalog, lake.store, lake.feed.name), format_hour(hour))
    with lake.hold(f"decode {format_hour(hour)}"):
        return decode_hour(lambda: lake.spark, lake.catalog, lake.feed, hour, redo=redo)


def order(lake: Lake, hour: datetime, redo_from: str | None = None) -> OrderReport:
    """Events → staged changelogs; first finishes a publishing that was cut short. redo_from: anew from this hour on (maintenance.redo)."""
    from tidelake.order.stage import order_window
    from tidelake.publish.recovery import recover

    with _reported(lake, hour), lake.hold(f"order {format_hour(hour)}") as fence:
        recover(lake.catalog, lake.store, lake.feed.name, lambda what: lake.tell("compact", what))
        tell = partial(lake.tell, "order")
        return order_window(lambda: lake.spark, lake.catalog, lake.feed, hour, fence, tell, redo_from)


def validate(lake: Lake, hour: datetime, redo_from: str | None = None) -> Verdict | None:
    """Judge what order staged. Raises QualityError if it must not be published. Holds the lease: nobody may stage anew meanwhile."""
    from tidelake.validate.stage import validate_window

    name = format_hour(hour)
    with _reported(lake, hour), lake.hold(f"validate {name}"):
        verdict = validate_window(lambda: lake.spark, lake.catalog, lake.feed, name, partial(lake.tell, "validate"), redo_from)
        if verdict is not None:
            verdict.refuse()
        return verdict


def compact(lake: Lake, hour: datetime, redo_from: str | None = None) -> CompactReport:
    """Staged changelogs ⊕ snapshots → a published cut."""
    from tidelake.compact.stage import compact_window
    from tidelake.publish.recovery import recover
    from tidelake.validate.report import write_report

    name = format_hour(hour)
    with _reported(lake, hour), lake.hold(f"compact {name}"):
        recover(lake.catalog, lake.store, lake.feed.name, lambda what: lake.tell("compact", what))
        report = compact_window(lambda: lake.spark, lake.catalog, lake.feed, name, partial(lake.tell, "compact"), redo_from)
    lake.tell("report", write_report(lake, report.cut.hour if report.cut else name))
    return report


@contextmanager
def _reported(lake: Lake, hour: datetime) -> Iterator[None]:
    """A run that is blocked leaves a report that says why."""
    from tidelake.validate.report import write_report

    try:
        yield
    except (OrderError, OwnershipError, QualityError) as e:
        lake.tell("report", write_report(lake, format_hour(hour), e))
        raise


@contextmanager
def kept_session(name: str, *, brief: bool = False) -> Iterator[None]:
    """One Spark application for all lakes that are opened inside; brief: tuned for little data."""
    from tidelake.spark.session import keep

    with keep(name, brief=brief):
        yield


def hours_from(first: datetime, count: int) -> list[datetime]:
    """Consecutive hours."""
    return [first + timedelta(hours=n) for n in range(count)]


@dataclass(frozen=True, slots=True, kw_only=True)
class HourRun:
    """All stages of one hour, and how long each took."""

    hour: str
    landed: LandReport
    decoded: DecodeReport
    ordered: OrderReport
    compacted: CompactReport | None
    seconds: dict[str, float]


def run_hour(
    lake: Lake,
    hour: datetime,
    *,
    redo: bool = False,
    progress: Callable[[int, int], None] | None = None,
    begin: Callable[[str], None] | None = None,
) -> HourRun:
    """All five stages of an hour. progress: called with (bytes landed, bytes to land); begin: with the stage and hour that is at work.

    Raises what `turns.refuse_out_of_turn` and `namespaces.refuse_taken` raise, before it lands anything."""
    from tidelake.decode.known import opening
    from tidelake.lake.cuts import newest_cut
    from tidelake.lake.namespaces import refuse_taken

    seconds: dict[str, float] = {}

    @contextmanager
    def timed(stage: str) -> Iterator[None]:
        lake.tell(stage, format_hour(hour))
        if begin is not None:
            begin(f"{stage} {format_hour(hour)}")
        started = time.monotonic()
        yield
        seconds[stage] = round(time.monotonic() - started, 3)

    refuse_taken(lake.catalog, lake.feed, opening(lake.feed, newest_cut(lake.catalog, lake.store, lake.feed.name)))
    refuse_out_of_turn(lake.feed, lake.catalog, lake.store, format_hour(hour))
    with timed("land"):
        landed = land(lake, hour, progress)
    with timed("decode"):
        decoded = decode(lake, hour, redo=redo)
    if decoded.record.quarantined:
        lake.tell("decode", decoded.record.quarantined)
    with timed("order"):
        ordered = order(lake, hour)
    compacted = None
    if ordered.staged is not None:
        with timed("validate"):
            validate(lake, hour)
        with timed("compact"):
            compacted = compact(lake, hour)
    return HourRun(hour=format_hour(hour), landed=landed, decoded=decoded, ordered=ordered, compacted=compacted, seconds=seconds)
