"""Rewinds and redos at any place of any history: after each, the tables at every published TSO and between are what upstream had.

The histories and their truth are those of test_oracle.py. What is invented beside them (tests/lake/operations.py): rollbacks to any cut,
undone ones too, and forward again hour by hour or at one go; redos from any hour on, of the same events; hours that were decoded wrongly
or whose rows came late, put right at once or hours later, with or without the hours after them published in between. Where what is
published cannot be right yet, only the counts of the certificate and what earlier cuts hold are compared.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.lake import lakes
from tests.lake.comparison import compare, compare_versions, published
from tests.lake.delivery import Crash, Manner
from tests.lake.histories import Feeder, feeder, publish_again, rows_of
from tests.lake.invented import BUCKETS, History
from tests.lake.operations import STORIES, Operation, Story, Wrong
from tests.lake.upstream import BARE, KEYED, SQL, Bag
from tidelake.config.feed import TablePolicy
from tidelake.config.policy import Policy
from tidelake.errors import StorageError
from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import read_cut
from tidelake.lake.cuts import lineage, newest_cut
from tidelake.lake.cuts import published as every_cut
from tidelake.lake.opened import Lake
from tidelake.publish.rollback import rollback
from tidelake.query.asof import placed_now, tables_at
from tidelake.validate.report import hour_facts

SEED = int(os.environ.get("TIDELAKE_ORACLE_SEED", random.randrange(1 << 32)))
MANY = int(os.environ.get("TIDELAKE_ORACLE_STORIES", "60"))
DEAR = settings(max_examples=MANY, phases=[Phase.generate], suppress_health_check=list(HealthCheck), print_blob=True)


@dataclass
class Told:
    """A story so far. hours: the names of those that are there; bad: the hour that is still decoded wrongly; wrong: cuts built on it, and
    those that follow them; held: what every cut held when it was published."""

    story: Story
    lake: Lake
    feed: Feeder
    hours: list[str] = field(default_factory=list)
    bad: str | None = None
    wrong: dict[int, bool] = field(default_factory=dict)
    held: dict[int, dict[str, Bag]] = field(default_factory=dict)
    tried: Counter[str] = field(default_factory=Counter)

    @property
    def newest(self) -> Cut:
        cut = newest_cut(self.lake.catalog, self.lake.store, "shop")
        assert cut is not None
        return cut

    def hour(self, n: int) -> None:
        """The n-th hour comes, and is published if it moves the resolved ts."""
        self.hours.append(self.feed.add(self.lake, self.story.first(n)))
        if self.story.is_wrong(n):
            self.bad = self.hours[-1]
        if published(self.lake, self.hours[-1]) is not None:
            self.note()

    def note(self) -> None:
        """A cut was published."""
        cut = self.newest
        before = cut.seq - 1 if cut.parent_seq is None else cut.parent_seq
        self.wrong[cut.seq] = self.wrong.get(before, False) or (self.bad is not None and self.bad <= cut.hour)
        self.held[cut.seq] = self.rows(cut)
        self.tried["cuts"] += 1
        if not self.wrong[cut.seq] and cut.run.startswith("run_"):
            found = {t: f.before_images for t, f in hour_facts(self.lake, cut.hour).tables.items() if f.before_images}
            assert {t: i for t, i in found.items() if i.differs or i.missing or i.duplicate_inserts} == {}, "nothing was lost"

    def rows(self, cut: Cut) -> dict[str, Bag]:
        """Every table of a cut, read by its snapshot id from where it is now."""
        out = {}
        for i, at in cut.snapshots.items():
            rows = lakes.contents(self.lake.catalog, placed_now(self.newest, at).identifier, at.snapshot_id)
            out[cut.catalog.incarnations[i].name] = Counter(
                tuple((k, str(v)) for k, v in sorted(r.items()) if k != "_commit_ts") for r in rows
            )
        return out

    def put_right(self) -> None:
        """What was decoded wrongly is decoded again."""
        assert self.bad is not None
        assert self.story.wrong is not None
        messages = self.story.history.hours[self.hours.index(self.bad)]
        self.feed.redecoded(self.lake, self.bad, messages, generation=2 if self.story.wrong.late else 1)
        self.bad = None
        self.tried["put right"] += 1

    def act(self, operation: Operation) -> None:
        """An operation, if anything is published."""
        if operation.what == "none" or not every_cut(self.lake.catalog, "shop"):
            return
        if operation.what == "redo":
            self.redo(operation.share)
            self.compare(operation.share)
            return
        others = sorted(every_cut(self.lake.catalog, "shop").keys() - {self.newest.seq})
        if not others or rollback(self.lake, f"cut {others[int(operation.share * len(others))]}").seq is None:
            return
        self.note()
        self.tried["rollbacks"] += 1
        self.compare(operation.share)
        if operation.forward:
            self.forward()

    def forward(self) -> None:
        """Run the hours again that were undone."""
        for hour in [h for h in self.hours if h > self.newest.hour]:
            if published(self.lake, hour) is not None:
                self.note()
                self.tried["hours run again"] += 1

    def redo(self, share: float) -> None:
        """From one of the published hours on; the certificate says what is different."""
        own = [h for h in self.hours if h <= self.newest.hour]
        since, before = own[int(share * len(own))], self.newest
        had = {name: rows_of(self.lake, name) for name in tables_at(self.lake, None)[1]}
        _, differs = publish_again(self.lake, before.hour, since)
        self.note()
        has = {name: rows_of(self.lake, name) for name in tables_at(self.lake, None)[1]}
        assert differs == different(had, has), f"redo from {since} in {self.story}"
        assert (self.newest.hour, self.newest.resolved_ts) == (before.hour, before.resolved_ts)
        self.tried.update({"redos": 1, "redos that differ": bool(differs)})

    def compare(self, share: float) -> None:
        """Every cut that leads to the newest, a TSO between, and what lies beyond."""
        history, newest = self.story.history, self.newest
        cuts = {seq: read_cut(self.lake.store, "shop", seq) for seq in lineage(self.lake.catalog, "shop")}
        unlike = {c.resolved_ts for c in cuts.values() if c.resolved_ts in history.not_here_yet(self.hours.index(c.hour) + 1)}
        good = {c.resolved_ts for seq, c in cuts.items() if not self.wrong[seq]}
        for ts in good - unlike:
            compare(self.lake, history, ts)
        reached = [ts for ts in history.upstream.truth if ts <= newest.resolved_ts and ts not in unlike]
        between = [ts for ts in reached if min(c.resolved_ts for c in cuts.values() if c.resolved_ts >= ts) in good]
        if between:
            compare(self.lake, history, between[int(share * len(between))])
        with pytest.raises(StorageError, match=f"the newest cut is at {newest.resolved_ts}"):
            rows_of(self.lake, "d.k", newest.resolved_ts + 1)
        assert self.lake.catalog.tables("d") == tables_at(self.lake, None)[1], "readers of main see the newest cut's tables"
        for i, at in newest.snapshots.items():
            assert self.lake.catalog.load(at.identifier).main == at.snapshot_id, f"{i} of {self.story}"
        self.tried["comparisons"] += len(good - unlike) + bool(between)

    def end(self) -> None:
        """Everything is put right and run; all that was ever published can be read by its ids."""
        history = self.story.history
        if self.bad is not None:
            self.put_right()
        if self.hours and every_cut(self.lake.catalog, "shop") and self.wrong[self.newest.seq]:
            self.redo(0)
        self.forward()
        if not every_cut(self.lake.catalog, "shop"):
            return
        if history.upstream.truth:
            assert self.newest.resolved_ts >= max(history.upstream.truth)
        self.compare(0.5)
        for seq, rows in self.held.items():
            assert self.rows(read_cut(self.lake.store, "shop", seq)) == rows, f"cut {seq} of {self.story}"


def different(had: dict[str, Bag], has: dict[str, Bag]) -> dict[str, dict[str, int]]:
    """What a certificate says of two versions of the tables, counted from their rows."""
    out = {}
    for name in sorted(had.keys() | has.keys()):
        old, new = had.get(name), has.get(name)
        if old is None or new is None:
            counts = {"table": 1, "added": sum((new or Counter()).values()), "removed": sum((old or Counter()).values())}
        elif name == f"d.{BARE}":
            counts = {"added": sum((new - old).values()), "removed": sum((old - new).values())}
        else:
            a, b = ({r[0]: dict(r) for r in bag.elements()} for bag in (old, new))
            changed = sum(any(a[k][c] != b[k][c] for c in a[k].keys() & b[k].keys()) for k in a.keys() & b.keys())
            counts = {"added": len(b.keys() - a.keys()), "removed": len(a.keys() - b.keys()), "changed": changed}
        if found := {what: n for what, n in counts.items() if n}:
            out[name] = found
    return out


@contextmanager
def opened(story: Story) -> Iterator[Told]:
    """A lake in which nothing has happened."""
    with tempfile.TemporaryDirectory() as folder:
        changes: dict[str, Any] = {"tables": {f"d.{name}": TablePolicy(buckets=BUCKETS) for name in KEYED}}
        made = feeder(Path(folder), SQL, story.history.manner.partitions, policy=Policy(before_images="all"), **changes)
        (Path(folder) / "lake").mkdir()
        with Lake.of(made.feed) as lake:
            yield Told(story, lake, made)


def tell(story: Story, *, versions: bool = False) -> Counter[str]:
    """The whole story; what was done in it, and how often. versions: compare those of all rows at the end, too."""
    with opened(story) as told:
        for n, operation in enumerate(story.operations[: len(story.history.hours)]):
            told.hour(n)
            if told.bad is not None and story.wrong is not None and n - told.hours.index(told.bad) >= story.wrong.later:
                told.put_right()
            told.act(operation)
        told.end()
        for name in KEYED if versions and told.held else ():
            compare_versions(told.lake, story.history.upstream, name)
        return told.tried


SHORT = Story(
    History(
        transactions=(
            [("put", "k", "1", "a"), ("put", "j", "3", "b"), ("put", "m", "x", ""), ("put", "m", "x", "")],
            ("column", "k", False, False),
            [("put", "k", "0", "c"), ("move", "j", "3", "0"), ("put", "m", "y", "")],
            ("swap", "k", False, False),
            [("put", "k", "3", "d"), ("put", "j", "1", "e"), ("drop", "j", "0", ""), ("drop", "m", "x", "")],
            ("recreate", "k", False, False),
            [("put", "k", "1", "f")],
        ),
        manner=Manner(partitions=2, halves=2, quiet=1, crashes=(Crash(share=0.5, back=2, inside=1),), repeats=()),
        ends=((5, 5, 5),),
    ),
    operations=(Operation(what="none", share=0, forward=False), Operation(what="rollback", share=0, forward=True)),
    wrong=Wrong(hour=1, how="other", every=1, later=9, late=False),
)


@pytest.mark.usefixtures("small_hours")
def test_rolled_back_and_redone_tables_equal_the_upstream() -> None:
    done = {"cuts": 5, "rollbacks": 1, "hours run again": 1, "put right": 1, "redos": 1, "redos that differ": 1}
    assert {what: n for what, n in tell(SHORT).items() if what != "comparisons"} == done


@pytest.mark.long
@pytest.mark.timeout(6 * 3600)
@pytest.mark.usefixtures("spark_app")
def test_rolled_back_and_redone_tables_equal_the_upstream_for_many_stories(capsys: pytest.CaptureFixture[str]) -> None:
    tried: Counter[str] = Counter()

    @seed(SEED)
    @DEAR
    @given(story=STORIES)
    def search(story: Story) -> None:
        tried.update(stories=1, messages=story.history.events, **tell(story, versions=True))

    try:
        search()
    finally:
        with capsys.disabled():
            print(f"\noperations: {dict(tried)}, again with TIDELAKE_ORACLE_SEED={SEED}")  # noqa: T201 - the totals are the point
