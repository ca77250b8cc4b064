"""Check whether an hour may run now: windows go in order and without a hole, from the feed's first hour on.

The published cuts hold every hour from the first hour of the first cut up to the newest cut's hour. An hour before the first one was never
published, however far the newest cut reaches. Only a redo from that hour adds it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tidelake.config.feed import Feed
from tidelake.errors import OrderError
from tidelake.io.storage import Store
from tidelake.io.texts import plural
from tidelake.lake.catalog import LakeCatalog
from tidelake.lake.cut import Cut
from tidelake.lake.cuts import first_held, newest_cut
from tidelake.land.store.coverage import missing_hours
from tidelake.land.store.manifest import generations
from tidelake.tso import end_ts, parse_hour, show


def is_published(feed: Feed, catalog: LakeCatalog, store: Store, cut: Cut | None, hour: str) -> bool:
    """Return whether the cuts up to this one hold the hour; False for a later hour.

    Raises:
        ConfigError: BEFORE_FIRST_HOUR.
        OrderError: BEFORE_SEED for an hour that the export holds; HOUR_SKIPPED for an hour before the newest that no cut holds.
    """
    feed.check_hour(hour)
    if cut is None or hour > cut.hour:
        return False
    first = first_held(catalog, store, cut)
    if first is not None and hour >= first:
        return True
    if end_ts(parse_hour(hour)) <= cut.seeded_ts:
        raise _in_the_export(feed, cut, hour)
    if first is not None:
        raise OrderError(
            f"hour {hour} of feed {feed.name} is not published: its cuts begin with hour {first}, and no later hour includes it",
            code="HOUR_SKIPPED",
            remedy=f"`tidelake redo --feed {feed.name} --from {hour}` lands it and rebuilds the lake from there on",
        )
    return True


def refuse_out_of_turn(feed: Feed, catalog: LakeCatalog, store: Store, hour: str, coming: Sequence[str] = ()) -> None:
    """Raise an error if the hour cannot run now, independent of its content.

    Args:
        feed: The feed's settings.
        catalog: The feed's catalog.
        store: The feed's lake store.
        hour: The hour to run.
        coming: Hours that are landed before it.

    Raises:
        OrderError: HOUR_MISSING where earlier hours are not landed, and what `is_published` raises.
    """
    cut = newest_cut(catalog, store, feed.name)
    if not is_published(feed, catalog, store, cut, hour):
        landed = [h for h in generations(store, feed.name) if h >= starts_with(feed, cut) and h <= hour]
        check_hours(feed, cut, sorted({*landed, *coming, hour}), hour)


def starts_with(feed: Feed, cut: Cut | None) -> str:
    """Return the first hour that a window after this cut may hold; "" if any hour may be the first."""
    return cut.hour if cut else feed.source.first_hour or ""


def check_hours(feed: Feed, cut: Cut | None, landed: Collection[str], hour: str) -> None:
    """Raise OrderError (HOUR_MISSING) unless all hours of the window are landed. It begins after the cut, or with the feed's first hour."""
    if hour not in landed:
        raise OrderError(f"hour {hour} of feed {feed.name} is not landed", code="HOUR_MISSING", remedy=run_command(feed, hour))
    first = _must_begin(feed, cut)
    missing = missing_hours(sorted({*_known(cut), *([first] if first else []), *landed}), hour)
    if first is not None and first not in landed:
        missing = (first, *missing)
    if missing:
        why = f"; the feed starts with hour {first} (first_hour in feed.toml)" if first is not None else ""
        raise OrderError(
            f"feed {feed.name}: {plural(len(missing), 'hour')} before {hour} {'is' if len(missing) == 1 else 'are'} not landed: "
            f"{', '.join(missing[:5])}{' …' if len(missing) > 5 else ''}{why}",
            code="HOUR_MISSING",
            remedy=run_command(feed, missing[0], len(missing)),
        )


def run_command(feed: Feed, hour: str, hours: int = 1) -> str:
    """Return the remedy that runs this number of hours."""
    more = f" --hours {hours}" if hours > 1 else ""
    return f"run `tidelake run --feed {feed.name} --hour {hour}{more}`"


def _must_begin(feed: Feed, cut: Cut | None) -> str | None:
    """Return the feed's first hour while no cut holds an hour; the window must include it."""
    first = feed.source.first_hour
    return first if first is not None and (cut is None or (cut.is_seed and first > cut.hour)) else None


def _known(cut: Cut | None) -> list[str]:
    """Return the cut's hour, unless the cut is a seed: a changefeed may begin hours after the export that it continues."""
    return [cut.hour] if cut is not None and not cut.is_seed else []


def _in_the_export(feed: Feed, cut: Cut, hour: str) -> OrderError:
    return OrderError(
        f"feed {feed.name}: hour {hour} ends before {show(cut.seeded_ts)}, the TSO of the export that seeded the tables",
        code="BEFORE_SEED",
        remedy="nothing to do for this hour: run the hours after it",
    )
