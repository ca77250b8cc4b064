"""Redo: decodes published hours again, rebuilds the lake up to its newest cut, and switches to the result in one publication.

The window starts at the last cut before the first hour and ends at the newest cut's hour. The cuts between become one; tables as of any TSO
between are still available from the changelogs. Until it is published readers see the newest cut. A redo that is interrupted before its
intent leaves that cut as it is; the same command starts again.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from pydantic import BaseModel

from tidelake.errors import ConfigError
from tidelake.io.texts import plural
from tidelake.lake.cuts import base_of, first_held, lineage
from tidelake.lake.namespaces import refuse_taken
from tidelake.lake.opened import Lake
from tidelake.land.store.manifest import generations
from tidelake.run import compact, decode, hours_from, land, order, validate
from tidelake.tso import format_hour, parse_hour, show

log = logging.getLogger(__name__)


class RedoPlan(BaseModel):
    """Plan of a redo.

    Attributes:
        feed: The feed.
        decoded: Hours that are decoded again.
        lands: Those of them that are landed first.
        until: Hour of the resulting cut.
        after_ts: TSO up to which the lake does not change; 0 if all of it may.
        replaced: Numbers of the published cuts that it replaces.
        seq: Number of the resulting cut.
    """

    feed: str
    decoded: list[str]
    lands: list[str] = []
    until: str
    after_ts: int
    replaced: list[int]
    seq: int

    def lines(self) -> list[str]:
        """Return the plan as lines for people."""
        hours = self.decoded[0] if len(self.decoded) == 1 else f"{self.decoded[0]} to {self.decoded[-1]}"
        cuts = f"cut {self.replaced[0]}" if len(self.replaced) == 1 else f"cuts {self.replaced[0]} to {self.replaced[-1]}"
        after = f"everything after {show(self.after_ts)}" if self.after_ts else "everything"
        land = [f"  land {', '.join(self.lands)} first"] if self.lands else []
        return [
            f"{self.feed}: decode {hours} again ({plural(len(self.decoded), 'hour')})",
            *land,
            f"  build {after} up to hour {self.until} again, as a staged cut",
            f"  publish it as cut {self.seq} in place of {cuts}",
        ]


class Redone(BaseModel):
    """Result of a redo. tables: rows added, removed and changed by table; tables without a difference are left out.

    Changes of columns or commit ts alone are not differences.
    """

    plan: RedoPlan
    resolved_ts: int
    tables: dict[str, dict[str, int]]


def plan_redo(lake: Lake, first: datetime, last: datetime) -> RedoPlan:
    """Return what a redo of these hours does. Hours before the first cut's are included with all hours between them and it.

    Raises:
        ConfigError: NOT_PUBLISHED: hours after the newest cut, which need no redo; BEFORE_FIRST_HOUR; what `base_of` raises.
    """
    feed, begin, end = lake.feed.name, format_hour(first), format_hour(last)
    if end < begin:
        raise ConfigError(f"--to {end} is before --from {begin}", remedy="--to is the last hour of the range")
    lake.feed.check_hour(begin)
    base = base_of(lake.catalog, lake.store, feed, begin)
    if base.newest is None or base.newest.hour < end:
        until = base.newest.hour if base.newest else None
        raise ConfigError(
            f"hour {end} of feed {feed} is not published{f': the newest cut reaches to {until}' if until else ''}",
            code="NOT_PUBLISHED",
            remedy=f"run it: `tidelake run --feed {feed} --hour {end} --redo`",
        )
    refuse_taken(lake.catalog, lake.feed, base.newest.catalog)
    after = base.cut.resolved_ts if base.cut else 0
    held = first_held(lake.catalog, lake.store, base.newest)
    below = parse_hour(held) - timedelta(hours=1) if held and begin < held else last
    decoded = [format_hour(h) for h in hours_from(first, (max(last, below) - first) // timedelta(hours=1) + 1)]
    landed = generations(lake.store, feed)
    return RedoPlan(
        feed=feed,
        decoded=decoded,
        lands=[h for h in decoded if h not in landed],
        until=base.newest.hour,
        after_ts=after,
        replaced=sorted(seq for seq, resolved in lineage(lake.catalog, feed).items() if resolved > after),
        seq=base.seq,
    )


def redo(lake: Lake, first: datetime, last: datetime) -> Redone:
    """Decode the hours again, rebuild, publish. Raises what the stages raise."""
    plan = plan_redo(lake, first, last)
    for hour in plan.lands:
        log.info(f"landing {hour}")
        land(lake, parse_hour(hour))
    for n, hour in enumerate(plan.decoded, 1):
        log.info(f"decoding {hour} ({n} of {len(plan.decoded)})")
        decode(lake, parse_hour(hour), redo=True)
    end, since = parse_hour(plan.until), plan.decoded[0]
    log.info(f"ordering up to {plan.until}")
    order(lake, end, since)
    validate(lake, end, since)
    report = compact(lake, end, since)
    assert report.cut is not None, "a redo always publishes"
    return Redone(plan=plan, resolved_ts=report.cut.resolved_ts, tables=report.certificate["redo"]["tables"])
