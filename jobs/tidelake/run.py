"""The five stages of a feed's hour, alone or all in one Spark application: what jobs/ and the command line call."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tidelake.config.lake_paths import cuts
from tidelake.errors import OrderError, OwnershipError, QualityError
from tidelake.lake.opened import Lake
from tidelake.lake.target import Target
from tidelake.lake.turns import is_published, refuse_out_of_turn
from tidelake.land import LandReport, land_hour
from tidelake.tso import format_hour
from tidelake.validate.quality.applicable import check_rules

if TYPE_CHECKING:
    from tidelake.decode.stage import DecodeReport
    from tidelake.order.stage import OrderReport
    from tidelake.publish.stage import Published
    from tidelake.validate.quality.verdict import Verdict

log = logging.getLogger("tidelake.report")

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
        return decode_hour(lake, hour, redo=redo)


def order(lake: Lake, hour: datetime, redo_from: str | None = None) -> OrderReport:
    """Events → staged changelogs; first finishes a publication that was cut short.

    Args:
        redo_from: A redo's first hour: all that is published from it on is built anew.
    """
    from tidelake.order.stage import order_window
    from tidelake.publish.recovery import recover

    with _reported(lake, hour), lake.hold(f"order {format_hour(hour)}") as fence:
        recover(lake.catalog, lake.store, lake.feed.name)
        return order_window(lake, Target(format_hour(hour), redo_from), fence)


def validate(lake: Lake, hour: datetime, redo_from: str | None = None) -> Verdict | None:
    """Judge what order staged. Raises QualityError if it must not be published. Holds the lease: nobody may stage anew meanwhile."""
    from tidelake.validate.stage import validate_window

    with _reported(lake, hour), lake.hold(f"validate {format_hour(hour)}"):
        verdict = validate_window(lake, Target(format_hour(hour), redo_from))
        if verdict is not None:
            verdict.refuse()
        return verdict


def compact(lake: Lake, hour: datetime, redo_from: str | None = None) -> Published:
    """Staged changelogs ⊕ snapshots → a published cut, and the report of its hour."""
    from tidelake.validate.report import write_report

    with _reported(lake, hour), lake.hold(f"compact {format_hour(hour)}"):
        published = _compacted(lake, Target(format_hour(hour), redo_from))
    log.info(write_report(lake, published.cut.hour if published.cut else format_hour(hour)))
    return published


def _compacted(lake: Lake, target: Target) -> Published:
    from tidelake.compact.stage import fold_window
    from tidelake.lake.staged import read_staged
    from tidelake.publish.recovery import recover
    from tidelake.publish.stage import Published, publish_window
    from tidelake.validate.stage import passed

    started = time.time()
    recover(lake.catalog, lake.store, lake.feed.name)
    newest, staged = read_staged(lake, target)
    if staged is None:
        return Published(cut=None, certificate={})
    verdict = passed(lake, staged)
    return publish_window(lake, newest, staged, verdict, fold_window(lake, newest, staged), started)


@contextmanager
def _reported(lake: Lake, hour: datetime) -> Iterator[None]:
    """A run that is blocked leaves a report that says why."""
    from tidelake.validate.report import write_report

    try:
        yield
    except (OrderError, OwnershipError, QualityError) as e:
        log.info(write_report(lake, format_hour(hour), e))
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
    compacted: Published | None
    seconds: dict[str, float]


def run_hour(
    lake: Lake,
    hour: datetime,
    *,
    redo: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> HourRun:
    """Run all five stages of an hour. Each stage logs its beginning, with `begins` set in the record.

    Args:
        redo: Decode again, also where nothing changed.
        progress: Called with (bytes landed, bytes to land).

    Raises:
        TidelakeError: What the stages raise; what `turns.refuse_out_of_turn` and `namespaces.refuse_taken` raise before anything is landed.
    """
    from tidelake.decode.known import opening
    from tidelake.lake.cuts import newest_cut
    from tidelake.lake.namespaces import refuse_taken

    seconds: dict[str, float] = {}

    @contextmanager
    def timed(stage: str) -> Iterator[None]:
        logging.getLogger(f"tidelake.{stage}").info(format_hour(hour), extra={"begins": stage})
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
        logging.getLogger("tidelake.decode").info(decoded.record.quarantined)
    with timed("order"):
        ordered = order(lake, hour)
    compacted = None
    if ordered.staged is not None:
        with timed("validate"):
            validate(lake, hour)
        with timed("compact"):
            compacted = compact(lake, hour)
    return HourRun(hour=format_hour(hour), landed=landed, decoded=decoded, ordered=ordered, compacted=compacted, seconds=seconds)
