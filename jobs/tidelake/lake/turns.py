"""Whose turn an hour is: windows go in order and without a hole, from the feed's first hour on.

The published cuts hold every hour from the first one of the first cut up to the newest one's. An hour below the first was never published,
whatever the newest cut reaches to: only a redo from it brings it in.
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
    """Whether the cuts up to this one hold the hour; False for one after them.

    Raises ConfigError (BEFORE_FIRST_HOUR); OrderError: BEFORE_SEED for an hour that the export holds, HOUR_SKIPPED for one that no cut
    holds though it is before the newest.
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
            f"hour {hour} of feed {feed.name} is not published: its cuts begin with hour {first}, and no later hour brings it in",
            code="HOUR_SKIPPED",
            remedy=f"`tidelake redo --feed {feed.name} --from {hour}` lands it and builds the lake anew from there on",
        )
    return True


def refuse_out_of_turn(feed: Feed, catalog: LakeCatalog, store: Store, hour: str, coming: Sequence[str] = ()) -> None:
    """Raise what keeps an hour from being run now, whatever it holds: what `is_published` raises, HOUR_MISSING where earlier hours are not
    landed. coming: hours that are landed before it."""
    cut = newest_cut(catalog, store, feed.name)
    if not is_published(feed, catalog, store, cut, hour):
        landed = [h for h in generations(store, feed.name) if h >= starts_with(feed, cut) and h <= hour]
        check_hours(feed, cut, sorted({*landed, *coming, hour}), hour)


def starts_with(feed: Feed, cut: Cut | None) -> str:
    """The first hour that a window after this cut may hold; "" where any may be it."""
    return cut.hour if cut else feed.source.first_hour or ""


def check_hours(feed: Feed, cut: Cut | None, landed: Collection[str], hour: str) -> None:
    """Raise OrderError (HOUR_MISSING) unless all hours of the window are landed, from after the cut, or from the feed's first hour, on."""
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
    """The remedy that runs so many hours."""
    more = f" --hours {hours}" if hours > 1 else ""
    return f"run `tidelake run --feed {feed.name} --hour {hour}{more}`"


def _must_begin(feed: Feed, cut: Cut | None) -> str | None:
    """The hour that must be in the window: the feed's first one, as long as no cut holds an hour."""
    first = feed.source.first_hour
    return first if first is not None and (cut is None or (cut.is_seed and first > cut.hour)) else None


def _known(cut: Cut | None) -> list[str]:
    """A changefeed may begin hours after the export that it goes on from."""
    return [cut.hour] if cut is not None and not cut.is_seed else []


def _in_the_export(feed: Feed, cut: Cut, hour: str) -> OrderError:
    return OrderError(
        f"feed {feed.name}: hour {hour} ends before {show(cut.seeded_ts)}, the export that the tables began with",
        code="BEFORE_SEED",
        remedy="there is nothing to do for it: run the hours after it",
    )
