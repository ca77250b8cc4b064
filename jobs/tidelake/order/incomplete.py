"""Reasons why a cut is incomplete, and the policy to publish no such cut (`[policy] incomplete`).

A cut has the reasons of its own window and those inherited from earlier cuts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidelake.config.feed import Feed
from tidelake.decode.waiting import CODE as WAITING
from tidelake.errors import QUARANTINE_CODES, Coordinates, OrderError
from tidelake.history.window import Window
from tidelake.io.storage import Store
from tidelake.io.texts import plural
from tidelake.lake.catalog import LakeTable
from tidelake.lake.cut import Cut, LateCounts, Reason, TableCounts
from tidelake.lake.decisions import Rejected, undecided
from tidelake.land.store.ranges import Range
from tidelake.order.progress import WindowProgress

_SHOWN = 5


class Lack(NamedTuple):
    """Something that a window lacks. code: for programs; detail: for people."""

    code: str
    detail: str


def decided(feed: Feed, store: Store, events: LakeTable, done: WindowProgress, window: Window) -> tuple[list[str], list[Lack]]:
    """Return (coordinates of the window's messages whose loss was accepted, what the window lacks because messages were not decoded).

    Raises:
        OrderError: UNDECIDED: a message has no decision and the feed's policy is to block.
    """
    open_ones, accepted = (
        [r for r in found if _concerns(feed, r, done, window)] for found in undecided(store, events, feed.name, done.scan)
    )
    if open_ones and feed.policy.on_reject == "block":
        first = open_ones[0]
        raise OrderError(
            f"{plural(len(open_ones), 'message')} of feed {feed.name} could not be decoded, the first: {first.code}: {first.error}",
            code="UNDECIDED",
            at=first.at,
            remedy=f"list them with `tidelake quarantine list --feed {feed.name}`; then re-drive (`quarantine replay`) "
            "or accept the loss (`quarantine accept`)",
        )
    whys = [Lack("ACCEPTED_LOSS", f"{_messages(accepted)} and whose loss is accepted: {_places(accepted)}")] if accepted else []
    whys += [Lack("UNDECIDED", f"{_messages(open_ones)}: {_places(open_ones)}")] if open_ones else []
    return [str(r.at) for r in accepted], whys


def of_tables(
    rows_aside: Mapping[str, int], accepted: Sequence[str], counts: Mapping[str, TableCounts], late: Mapping[str, LateCounts]
) -> list[Lack]:
    """Return what a window lacks in its tables.

    Args:
        rows_aside: Rows left out, by code.
        accepted: Coordinates of rows whose loss was accepted.
        counts: Counts by table.
        late: Late rows by table.
    """
    named = f" (accepted: {', '.join(accepted[:_SHOWN])})" if accepted else ""
    whys = [Lack(code, f"{plural(rows, 'row')} left out: {QUARANTINE_CODES[code]}{named}") for code, rows in rows_aside.items()]
    if partial := sum(c.partial for c in counts.values()):
        whys.append(Lack("PARTIAL_ROWS", f"{plural(partial, 'row')} of which only the key was sent"))
    missing = {name: c for name, c in late.items() if c.late or c.conflicts}
    if missing:
        said = ", ".join(f"{name} ({c.late:,} missing, {c.conflicts:,} in conflict)" for name, c in missing.items())
        whys.append(Lack("LATE_ROWS", f"rows arrived after the cut that should contain them: {said}"))
    return whys


def of_holes(holes: Mapping[Coordinates, Range]) -> list[Lack]:
    """Return what a window lacks if its resolved ts does not wait for missing offsets."""
    said = [f"{at} offsets {first} to {last}" for at, (first, last) in holes.items()]
    return [Lack("GAP", f"missing messages were skipped: {', '.join(said[:_SHOWN])}")] if said else []


def reasons(whys: Iterable[Lack], seq: int, hour: str, previous: Cut | None) -> list[Reason]:
    """Return all reasons of a cut: those of its own window, then, by code, the first of the cuts that it builds on."""
    own = [Reason(code=w.code, detail=w.detail, cut=seq, hour=hour) for w in whys]
    before = {r.code: r for r in sorted(known(previous), key=lambda r: -r.cut)} if previous is not None else {}
    return [*own, *before.values()]


def known(cut: Cut) -> list[Reason]:
    """Return the reasons of a published cut; a general one if an earlier version marked the cut without reasons."""
    if cut.incomplete and not cut.incomplete_because:
        said = "an earlier version of Tidelake marked the cut; its certificate names accepted losses, late and partial rows"
        return [Reason(code="EARLIER", detail=said, cut=cut.seq, hour=cut.hour)]
    return cut.incomplete_because


def refuse(feed: Feed, cut: Cut) -> None:
    """Raise OrderError (INCOMPLETE) if the next cut would be incomplete because of its own window and the feed's policy is to block."""
    own = [r for r in cut.incomplete_because if r.cut == cut.seq]
    if own and feed.policy.incomplete == "block":
        raise OrderError(
            f"the window up to hour {cut.hour} of feed {feed.name} would be published incomplete: {in_one_line(own)}",
            code="INCOMPLETE",
            remedy="nothing is published; restore what is missing and run the hour again, or, to publish it marked as incomplete, set "
            '[policy] incomplete = "publish"',
        )


def in_one_line(found: Iterable[Reason]) -> str:
    """Return reasons as one line."""
    return "; ".join(f"{r.code}: {r.detail}" for r in found)


def _concerns(feed: Feed, message: Rejected, done: WindowProgress, window: Window) -> bool:
    """Whether a rejected message belongs to this window: by its hour, or by its commit ts if it waits for its schema."""
    if message.code != WAITING:
        return message.hour in done.hours
    return window.applied_ts < (message.commit_ts or 0) <= window.resolved_ts


def _messages(found: Sequence[Rejected]) -> str:
    return f"{plural(len(found), 'message')} that could not be decoded"


def _places(found: Sequence[Rejected]) -> str:
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(f"{r.at} ({r.code})" for r in found[:_SHOWN]) + more
