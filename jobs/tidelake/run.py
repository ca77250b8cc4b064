"""Run the five stages of a feed's hour, one by one or all in one Spark application. jobs/ and the command line call these functions."""

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
from tidelake.lake.staged import Target, read_staged
from tidelake.lake.turns import is_published, refuse_out_of_turn
from tidelake.tso import format_hour

if TYPE_CHECKING:
    from tidelake.decode.stage import DecodeReport
    from tidelake.land.hour import LandReport
    from tidelake.order.stage import OrderReport
    from tidelake.publish.stage import Published
    from tidelake.validate.quality.verdict import Verdict

log = logging.getLogger("tidelake.report")

STAGES = ("land", "decode", "order", "validate", "compact")


def land(lake: Lake, hour: datetime, progress: Callable[[int, int], None] | None = None) -> LandReport:
    """Write what the source holds of an hour to the lake, as canonical Parquet objects and a manifest.

    Before the feed's first cut, check the feed's expectations first.

    Args:
        lake: The feed's opened lake.
        hour: First instant of the hour, UTC.
        progress: Called with (done, in all), in bytes of the archive or offsets of live topics.

    Raises:
        TidelakeError: What `land_hour` and `check_rules` raise. A blocked run leaves a report that gives the reason.
    """
    from tidelake.land import land_hour
    from tidelake.validate.quality.applicable import check_rules

    lake.feed.check_hour(format_hour(hour))
    if not lake.store.some(cuts(lake.feed.name), 1):  # after the first cut, statements may have changed the tables
        check_rules(lake.feed)
    with _reported(lake, hour):
        report = land_hour(lake.feed, hour, progress)
    lake.landed_bytes += report.bytes
    return report


def decode(lake: Lake, hour: datetime, *, redo: bool = False) -> DecodeReport:
    """Decode the landed objects of an hour into its rows of the events table.

    Args:
        lake: The feed's opened lake.
        hour: First instant of the hour, UTC.
        redo: Also decode an hour that no cut can hold any more, or that is decoded already.

    Raises:
        OrderError: What `turns.is_published` (without redo) and `decode_hour` raise.
    """
    from tidelake.decode.stage import decode_hour
    from tidelake.lake.cuts import newest_cut

    if not redo:
        is_published(lake.feed, lake.catalog, lake.store, newest_cut(lake.catalog, lake.store, lake.feed.name), format_hour(hour))
    with _reported(lake, hour), lake.hold(f"decode {format_hour(hour)}"):
        return decode_hour(lake, hour, redo=redo)


def order(lake: Lake, hour: datetime, redo_from: str | None = None) -> OrderReport:
    """Stage the changelogs of a window from its events. Finish an interrupted publication first.

    Args:
        lake: The feed's opened lake.
        hour: Last hour of the window, UTC.
        redo_from: First hour of a redo, which rebuilds everything published from that hour on. None for the next window.
    """
    from tidelake.order.stage import order_window

    with _reported(lake, hour), lake.hold(f"order {format_hour(hour)}") as fence:
        _recover(lake)
        return order_window(lake, Target(format_hour(hour), redo_from), fence)


def validate(lake: Lake, hour: datetime, redo_from: str | None = None) -> Verdict | None:
    """Judge what order staged. Hold the lease during it, so that no other run can stage.

    Args:
        lake: The feed's opened lake.
        hour: Last hour of the window, UTC.
        redo_from: First hour of a redo, None for the next window.

    Returns:
        The verdict, None where the target is published.

    Raises:
        QualityError: The verdict forbids publishing.
        OrderError: What `read_staged` raises.
    """
    from tidelake.validate.stage import validate_window

    with _reported(lake, hour), lake.hold(f"validate {format_hour(hour)}"):
        verdict = validate_window(lake, Target(format_hour(hour), redo_from))
        if verdict is not None:
            verdict.refuse()
        return verdict


def compact(lake: Lake, hour: datetime, redo_from: str | None = None) -> Published:
    """Fold the staged changelogs into the snapshots, publish the cut and write the report of its hour.

    A redo also writes the reports of the hours again whose cuts it replaced.

    Args:
        lake: The feed's opened lake.
        hour: Last hour of the window, UTC.
        redo_from: First hour of a redo, None for the next window.

    Returns:
        The published cut and its certificate; no cut where the target is published already.
    """
    from tidelake.validate.report import write_report

    with _reported(lake, hour), lake.hold(f"compact {format_hour(hour)}"):
        published = _compacted(lake, Target(format_hour(hour), redo_from))
    if redo_from is None:
        log.info(write_report(lake, published.cut.hour if published.cut else format_hour(hour)))
    else:
        _report_changes(lake)
    return published


def _compacted(lake: Lake, target: Target) -> Published:
    from tidelake.publish.stage import Published, publish_window

    started = time.time()
    _recover(lake)
    newest, staged = read_staged(lake, target)
    if staged is None:
        return Published(cut=None, certificate={})

    from tidelake.compact.stage import fold_window
    from tidelake.validate.stage import passed

    verdict = passed(lake, target, staged)
    return publish_window(lake, newest, staged, verdict, fold_window(lake, newest, staged), started)


def _recover(lake: Lake) -> None:
    """Finish an interrupted publication and write the reports that it changes."""
    from tidelake.publish.recovery import recover

    if recover(lake.catalog, lake.store, lake.feed.name) is not None:
        _report_changes(lake)


def _report_changes(lake: Lake) -> None:
    from tidelake.validate.report import write_changed_reports

    for uri in write_changed_reports(lake):
        log.info(uri)


@contextmanager
def _reported(lake: Lake, hour: datetime) -> Iterator[None]:
    """Write down the reason when a run is blocked: for notifications, and in the hour's report."""
    try:
        yield
    except (OrderError, OwnershipError, QualityError) as e:
        from tidelake.validate.blocked import keep_blocked
        from tidelake.validate.report import write_report

        keep_blocked(lake, format_hour(hour), e)
        log.info(write_report(lake, format_hour(hour), e))
        raise


@contextmanager
def kept_session(name: str, *, brief: bool = False) -> Iterator[None]:
    """Use one Spark application for all lakes opened inside the block. brief: tune it for little data."""
    from tidelake.spark.session import keep

    with keep(name, brief=brief):
        yield


def hours_from(first: datetime, count: int) -> list[datetime]:
    """Return `count` consecutive hours, beginning with `first`."""
    return [first + timedelta(hours=n) for n in range(count)]


@dataclass(frozen=True, slots=True, kw_only=True)
class HourRun:
    """Reports of all stages of one hour, and the seconds that each stage took."""

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
    """Run all five stages of an hour. Each stage logs its start, with `begins` set in the log record.

    Args:
        lake: The feed's opened lake.
        hour: First instant of the hour, UTC.
        redo: Decode again even if nothing changed.
        progress: Called with (done, in all), in bytes of the archive or offsets of live topics.

    Raises:
        TidelakeError: What the stages raise; before landing, what `turns.refuse_out_of_turn` and `namespaces.refuse_taken` raise.
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
