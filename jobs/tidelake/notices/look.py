"""Look at a feed: which causes are in the lake, and which notices follow. Starts no Spark and writes nothing but notices/<feed>.json."""

from __future__ import annotations

from datetime import datetime

from tidelake.io.texts import duration, moment
from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import find_certificate, read_cut
from tidelake.lake.cuts import known_cuts, newest_cut
from tidelake.lake.opened import Lake
from tidelake.land.store.manifest import Finding, newest
from tidelake.notices.cause import Cause, Notice, Standing
from tidelake.notices.heard import LakeState, Memory, after, delivered, keep_memory, read_memory
from tidelake.order.incomplete import known
from tidelake.tso import physical_ms
from tidelake.validate.blocked import first_blocked
from tidelake.validate.quality.verdict import Check

_UNTIL_REDO = "bring back what is missing and `tidelake redo` from that hour; until then each later cut is marked as well"


def look(lake: Lake, now: datetime) -> dict[str, list[Notice]]:
    """Look at the lake, store the notices that follow, and return all that wait to be delivered, by notifier."""
    feed = lake.feed.name
    memory, cut = read_memory(lake.store, feed), newest_cut(lake.catalog, lake.store, feed)
    blocked = _blocked(lake, cut)
    if cut is None and blocked is None and memory == Memory():
        return {}  # nothing happened yet, perhaps not even a lake
    seqs = _unseen(lake, memory.seen, cut)
    of_newest = memory.open if cut and not seqs else _of_cut(lake, cut)
    found = LakeState(
        standing=_standing(cut, blocked),
        passed=[c for seq in seqs[:-1] for c in _of_cut(lake, read_cut(lake.store, feed, seq))],
        open=[*([blocked] if blocked else []), *of_newest],
        lag_minutes=_age(cut, now) / 60 if cut else None,
    )
    new = after(memory, found, lake.feed.notify, _lag(lake, cut, blocked, now) if cut else None)
    if new != memory:
        keep_memory(lake.store, feed, new)
    return {key: heard.waiting for key, heard in new.notifiers.items() if heard.waiting}


def forget(lake: Lake, numbers: list[int]) -> None:
    """Remove notices that were delivered."""
    keep_memory(lake.store, lake.feed.name, delivered(read_memory(lake.store, lake.feed.name), numbers))


def _unseen(lake: Lake, seen: int, cut: Cut | None) -> list[int]:
    """Return the numbers of the published cuts that were not looked at, the newest last. Before the first look only the newest counts."""
    if cut is None or cut.seq == seen:
        return []
    if not seen:
        return [cut.seq]
    return sorted(seq for seq, c in known_cuts(lake.catalog, lake.feed.name).items() if seen < seq <= cut.seq and not c.expired)


def _blocked(lake: Lake, cut: Cut | None) -> Cause | None:
    found = first_blocked(lake, cut)
    if found is None:
        return None
    same = f"blocked {found.hour} {found.code}"
    return Cause(event="blocked", code=found.code, hour=found.hour, id=same, ends=same, why=found.message, todo=found.remedy)


def _of_cut(lake: Lake, cut: Cut | None) -> list[Cause]:
    """Return the causes in a cut: reasons why it is incomplete, failed expectations and findings that did not block it."""
    if cut is None:
        return []
    incomplete = [
        Cause(
            event="incomplete",
            code=r.code,
            hour=r.hour,
            id=f"incomplete {r.code} {r.hour}",
            ends=f"incomplete {r.code}",
            why=r.detail,
            todo=_UNTIL_REDO,
        )
        for r in known(cut)
    ]
    certificate = find_certificate(lake.store, lake.feed.name, cut.seq) or {"expectations": {"checks": []}}
    checks = [Check.model_validate(c) for c in certificate["expectations"]["checks"]]
    return [*incomplete, *(_of_check(c, cut.hour) for c in checks if not c.success), *_of_findings(lake, cut)]


def _of_check(check: Check, hour: str) -> Cause:
    what = f"{check.table}{'.' + check.column if check.column else ''}: {check.rule}"
    same = f"warning {what}"
    why = f"{what}: expected {check.expected}, found {check.observed}"
    todo = check.remedy or f"correct the source or the rule ({check.origin})"
    return Cause(event="warning", code="EXPECTATION", hour=hour, id=same, ends=same, why=why, todo=todo)


def _of_findings(lake: Lake, cut: Cut) -> list[Cause]:
    """Return one cause for each code of the findings with the severity warning, in the hours of the cut's window."""
    first: dict[str, tuple[str, Finding]] = {}
    for hour in sorted(cut.generations):
        manifest = newest(lake.store, lake.feed.name, hour)
        for f in manifest.findings if manifest else ():
            if f.severity == "warning":
                first.setdefault(f.code, (hour, f))
    return [
        Cause(event="warning", code=code, hour=hour, id=f"warning {code}", ends=f"warning {code}", why=f.detail, todo=f.remedy)
        for code, (hour, f) in first.items()
    ]


def _standing(cut: Cut | None, blocked: Cause | None) -> Standing:
    held = f"{blocked.hour} ({blocked.code})" if blocked else ""
    return Standing(cut=cut.seq, hour=cut.hour, resolved_ts=cut.resolved_ts, blocked=held) if cut else Standing(blocked=held)


def _age(cut: Cut, now: datetime) -> float:
    """Return the age of the published resolved ts in seconds."""
    return now.timestamp() - physical_ms(cut.resolved_ts) / 1000


def _lag(lake: Lake, cut: Cut, blocked: Cause | None, now: datetime) -> Cause:
    why = f"the published resolved ts is {duration(_age(cut, now))} old: {moment(cut.resolved_ts)}"
    held = f"hour {blocked.hour} is blocked ({blocked.code}): {blocked.todo}" if blocked else ""
    todo = held or f"look at the runs of the feed's DAG, and at `tidelake status --feed {lake.feed.name}`"
    return Cause(event="lag", code="LAG", hour=cut.hour, id="lag", ends="lag", why=why, todo=todo)
