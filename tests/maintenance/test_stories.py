"""Maintenance anywhere in a history, between hours, rollbacks and redos: what is kept is what upstream had; nothing else is shown.

The histories are those of tests/lake/test_oracle.py, with hours and days between their commits. Retention is random.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.audit import stranger
from tests.audit.certified import audited
from tests.lake.comparison import compare
from tests.lake.invented import HISTORIES, History
from tests.lake.operations import Operation, Story
from tests.lake.test_operations import SHORT, Told, opened
from tests.lake.upstream import KEYED
from tidelake.config.retention import Maintenance
from tidelake.errors import StorageError
from tidelake.lake.cut_documents import read_cut
from tidelake.lake.cuts import changelog_retained_after, lineage
from tidelake.lake.cuts import published as every_cut
from tidelake.maintenance.maintain import maintain
from tidelake.query.asof import first_whole

SEED = int(os.environ.get("TIDELAKE_ORACLE_SEED", random.randrange(1 << 32)))
MANY = int(os.environ.get("TIDELAKE_ORACLE_STORIES", "60"))
DEAR = settings(max_examples=MANY, phases=[Phase.generate], suppress_health_check=list(HealthCheck), print_blob=True)
HOUR = 3_600_000 << 18  # as a difference of TSOs
LATER = 400 * 24 * 3_600_000  # Kafka timestamp of all messages, after every TSO


class Kept(Told):
    """A story with maintenance."""

    def act(self, operation: Operation) -> None:
        if operation.what == "maintain" and every_cut(self.lake.catalog, "shop"):
            self.maintain()
            self.compare(operation.share)
            return
        try:
            super().act(operation)
        except StorageError as e:
            if (operation.what, e.code) != ("redo", "NOT_RETAINED"):
                raise
            self.tried["redos refused"] += 1

    def maintain(self) -> None:
        """Cuts that go are forgotten here, too; the newest may come again under the next number."""
        before = self.newest
        done = maintain(self.lake, young=timedelta(days=-1))
        if done.cut is not None:
            self.wrong[done.cut] = self.wrong[before.seq]
            self.held[done.cut] = self.rows(self.newest)
            assert self.held[done.cut] == self.held[before.seq]
        there = every_cut(self.lake.catalog, "shop")
        gone = self.held.keys() - there.keys()
        self.held = {seq: rows for seq, rows in self.held.items() if seq in there}
        plan = done.plan
        assert plan is not None
        self.tried.update(
            {
                "maintained": 1,
                "rewrites": bool(done.rewritten),
                "cuts gone": len(gone),
                "changes gone": done.removed_changes,
                "tables dropped": len(done.dropped_tables),
                "dropped tables that left": len(plan.leaving),
            }
        )

    def compare(self, share: float) -> None:
        """Every cut that is kept; and every TSO of a commit, which is right or refused, and refused only where changes are gone."""
        history = self.story.history
        cuts = {seq: read_cut(self.lake.store, "shop", seq) for seq in lineage(self.lake.catalog, "shop")}
        unlike = {c.resolved_ts for c in cuts.values() if c.resolved_ts in history.not_here_yet(self.hours.index(c.hour) + 1)}
        good = {c.resolved_ts for seq, c in cuts.items() if not self.wrong[seq]}
        for ts in good - unlike:
            compare(self.lake, history, ts)
        whole = first_whole(self.lake, changelog_retained_after(self.lake.catalog, "shop")) or self.newest.resolved_ts
        since = max(whole, min(c.resolved_ts for c in cuts.values()))
        for ts in sorted(t for t in history.upstream.truth if t <= self.newest.resolved_ts and t not in unlike):
            if min(c.resolved_ts for c in cuts.values() if c.resolved_ts >= ts) not in good:
                continue
            try:
                compare(self.lake, history, ts)
            except StorageError as e:
                if e.code != "NOT_RETAINED" or (since <= ts and since < self.newest.resolved_ts):
                    raise  # all changes since then are kept
                self.tried["TSOs refused"] += 1
        self.tried["comparisons"] += len(good - unlike)

    def end(self) -> None:
        """As ever; then an audit, where the messages of every hour are those that were landed."""
        super().end()
        if self.held:
            self.maintain()
            self.compare(0.5)
            assert (audited(self.lake).wrong, stranger.audited(self.lake)[0]) == ([], 0), str(self.story)


def tell(story: Story, **keep: Any) -> Counter[str]:
    """The whole story; what was done in it, and how often. keep: settings of maintenance."""
    with opened(story) as told:
        kept = Kept(story, told.lake, told.feed)
        kept.feed.stamp = LATER
        kept.lake.feed = kept.lake.feed.model_copy(update={"maintenance": Maintenance.model_validate(keep)})
        for n, operation in enumerate(story.operations[: len(story.history.hours)]):
            kept.hour(n)
            kept.act(operation)
        kept.end()
        return kept.tried


def _told(history: History, number: int) -> tuple[Story, dict[str, Any]]:
    """A story with more hours, and how long what is kept."""
    draw = random.Random(number)
    ends = (*history.ends, *(tuple(draw.randint(0, 9) for _ in range(3)) for _ in range(draw.randint(1, 4))))
    at, again = draw.randint(1, 3), ("recreate", draw.choice(KEYED), False, False)  # a life that ends early may leave the cut
    transactions = (*history.transactions[:at], *([again] if draw.random() < 0.7 else []), *history.transactions[at:])
    longer = replace(history, transactions=transactions, ends=ends, step=draw.choice([4, 9, 16, 30]) * HOUR)
    whats = draw.choices(["maintain", "rollback", "redo", "none"], [5, 2, 2, 2], k=len(ends) + 1)
    operations = tuple(Operation(what=what, share=draw.random(), forward=draw.random() < 0.5) for what in whats)
    cuts = draw.randint(1, 3)
    daily = cuts + draw.randint(0, 4)
    changes = draw.choice([None, cuts, cuts + 1, daily])
    keep = {"keep_cuts": f"{cuts}d", "keep_daily": f"{daily}d", "keep_changelog": "forever" if changes is None else f"{changes}d"}
    return Story(longer, operations, None), keep | {"small_files": draw.choice([2, 3, 50])}


STORIES = st.builds(_told, HISTORIES, st.integers(0, (1 << 32) - 1))


@pytest.mark.usefixtures("small_hours")
def test_a_feed_that_is_maintained_after_every_hour_shows_what_upstream_had() -> None:
    days = replace(SHORT.history, step=20 * HOUR, ends=((3, 3, 3), (6, 6, 6), (8, 8, 8)))
    story = Story(days, (Operation(what="maintain", share=0, forward=False),) * 4, None)
    done = tell(story, keep_cuts="1d", keep_daily="1d", keep_changelog="1d", small_files=50)
    wanted = {"cuts": 3, "maintained": 5, "rewrites": 2, "cuts gone": 3, "changes gone": 15, "tables dropped": 1}
    assert {what: done[what] for what in wanted} == wanted


@pytest.mark.long
@pytest.mark.timeout(6 * 3600)
@pytest.mark.usefixtures("spark_app")
def test_what_is_kept_is_what_upstream_had_for_many_stories(capsys: pytest.CaptureFixture[str]) -> None:
    tried: Counter[str] = Counter()

    @seed(SEED)
    @DEAR
    @given(told=STORIES)
    def search(told: tuple[Story, dict[str, Any]]) -> None:
        story, keep = told
        tried.update(stories=1, messages=story.history.events, **tell(story, **keep))

    try:
        search()
    finally:
        with capsys.disabled():
            print(f"\nmaintenance: {dict(tried)}, again with TIDELAKE_ORACLE_SEED={SEED}")  # noqa: T201 - the totals are the point
