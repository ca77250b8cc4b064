"""Order and compact equal the upstream database at every cut and between cuts, for histories that Hypothesis invents.

What is invented, by whom (tests/lake/), and shown to be by `test_every_situation_is_invented`:

| strategy (tests/lake/invented.py) | what it invents |
|---|---|
| `_ROW_STEPS` | rows in three tables, one without key; rows that change their key, two that exchange theirs in one commit |
| | buckets and tables that become empty |
| `_STATEMENTS` | columns that come and go, truncated and re-created tables, swapped names, exchanged partitions, other keys |
| | several statements in one window |
| | rows and a statement at one commit ts; a statement on either side of the resolved ts that equals its own |
| `Manner.partitions`, `.quiet` | one to three partitions, idle ones too; partitions that hear of few commits |
| `Manner.halves` | updates as delete and insert: several events of one key at one commit ts; unsplit in another replay_epoch |
| `_CRASHES` | resolved ts going back, replays of whole commits and from inside one |
| `_REPEATS` | one row again, at any later place of its partition, also after its cut |
| `_ENDS` | hours that end anywhere in each partition: rows and statements exactly at M, before and after the hour's end |
| | partitions that appear late, hours that move nothing, cut upon cut |

Every second window is one of large tables: read by Spark's workers, merged on read (compact/merge.py), its keys and changes counted by
Spark, its buckets shared by several tasks in order. The others are read by this process, as those of small hours are. In every second
history a column of each table is hashed.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, event, given, seed, settings

from tests.lake.comparison import compare, compare_versions, published
from tests.lake.histories import feeder
from tests.lake.invented import BUCKETS, FEATURES, HISTORIES, History
from tests.lake.specification import states
from tests.lake.upstream import BARE, KEYED, SQL
from tidelake.compact import merge
from tidelake.config.feed import TablePolicy
from tidelake.config.policy import ColumnPolicy, Policy
from tidelake.lake.columns import survivors
from tidelake.lake.opened import Lake
from tidelake.order.arrow import table_jobs
from tidelake.validate import written
from tidelake.validate.report import hour_facts

SEED = int(os.environ.get("TIDELAKE_ORACLE_SEED", random.randrange(1 << 32)))
MANY = int(os.environ.get("TIDELAKE_ORACLE_HISTORIES", "150"))
BY_SIZE = Lake.workers
CHEAP = settings(max_examples=40, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
SEEDS = range(8)  # one alone varies a few examples
DEAR = settings(
    max_examples=MANY, phases=[Phase.generate], suppress_health_check=list(HealthCheck), print_blob=True
)  # an example takes seconds: shrinking would take hours


@pytest.fixture(scope="module")
def invented() -> list[tuple[History, set[str]]]:
    """A few hundred histories, with what is in them; the same ones every time that the same modules are loaded."""
    out: list[tuple[History, set[str]]] = []

    def look(history: History) -> None:
        out.append((history, history.features()))

    for n in SEEDS:
        seed(n)(CHEAP(given(history=HISTORIES)(look)))()
    return out


def test_every_situation_is_invented(invented: list[tuple[History, set[str]]]) -> None:
    seen = Counter(f for _, features in invented for f in features)
    assert set(seen) == set(FEATURES)
    assert {f: n for f, n in seen.items() if n < 3} == {}, "in one of eighty at least"


def test_the_specification_equals_the_upstream_at_every_cut(invented: list[tuple[History, set[str]]]) -> None:
    cuts = 0
    for history, _ in invented:
        for resolved, tables in states(history):
            wanted = {name: Counter(r[:2] for r in bag.elements()) for name, bag in history.upstream.at(resolved).items()}
            assert tables == wanted, f"at {resolved} of {history}"
            cuts += 1
    assert cuts > len(invented)


@pytest.mark.usefixtures("small_hours")
def test_every_cut_equals_the_upstream_in_every_situation(invented: list[tuple[History, set[str]]]) -> None:
    chosen = list(covering(invented))
    assert Counter(f for _, features in chosen for f in features).keys() == set(FEATURES)
    for n, (history, _) in enumerate(chosen):
        check(history, between=1, masked=n % 2 == 1)


@pytest.mark.long
@pytest.mark.timeout(6 * 3600)
@pytest.mark.usefixtures("small_hours")
def test_every_cut_equals_the_upstream_for_many_histories(capsys: pytest.CaptureFixture[str]) -> None:
    tried: Counter[str] = Counter()

    @seed(SEED)
    @DEAR
    @given(history=HISTORIES)
    def search(history: History) -> None:
        for feature in history.features():
            event(feature)
        masked = tried["histories"] % 2 == 1
        tried.update(histories=1, masked=masked, messages=history.events, cuts=check(history, between=4, masked=masked))

    try:
        search()
    finally:
        with capsys.disabled():
            print(f"\noracle: {dict(tried)}, again with TIDELAKE_ORACLE_SEED={SEED}")  # noqa: T201 - the totals are the point


def covering(invented: list[tuple[History, set[str]]]) -> Iterator[tuple[History, set[str]]]:
    """A few of the histories that together hold every situation, each in two cuts or more, short ones rather than long ones."""
    left, others = Counter(FEATURES), [one for one in invented if one[0].cuts > 1]
    while +left:
        wanted = set(+left)
        best = max(others, key=lambda one: (len(wanted & one[1]) / len(one[0].hours), -one[0].events))
        if not wanted & best[1]:
            return
        others.remove(best)
        left -= Counter(best[1])
        yield best


def check(history: History, between: int, *, masked: bool) -> int:
    """Deliver the history hour by hour; after each, and at the end at so many commits, compare all tables. How many cuts there were.

    masked: column v of each table is hashed.
    """
    upstream, cuts, unlike = history.upstream, 0, set[int]()
    with tempfile.TemporaryDirectory() as folder:
        tables = {f"d.{name}": TablePolicy(buckets=BUCKETS) for name in KEYED}
        policy = Policy(before_images="all", mask_key="a key of this test, long enough" if masked else None)
        columns = {f"d.{name}": {"v": ColumnPolicy(mask="hash")} for name in (*KEYED, BARE)} if masked else {}
        made = feeder(Path(folder), SQL, history.manner.partitions, tables=tables, policy=policy, columns=columns)
        (Path(folder) / "lake").mkdir()
        with Lake.of(made.feed) as lake:
            for n, messages, mark in zip(count(1), history.hours, history.marks, strict=False):
                name = made.add(lake, messages)
                with as_if(("large", "plain")[n % 2]):
                    cut = published(lake, name)
                if cut is None:
                    continue
                cuts += 1
                assert cut.resolved_ts == mark
                if mark in history.not_here_yet(n):
                    unlike.add(mark)  # its statement comes with the next cut
                else:
                    compare(lake, history, mark)
                found = {t: f.before_images for t, f in hour_facts(lake, name).tables.items() if f.before_images}
                assert {t: i for t, i in found.items() if i.differs or i.missing or i.duplicate_inserts} == {}, "nothing was lost"
            if upstream.truth:
                last = max(upstream.truth)
                assert mark >= last, "the last hour brings everything"
                inside = sorted({*upstream.truth} - unlike - {last})
                for ts in [*(inside[len(inside) * n // between + len(inside) // (2 * between)] for n in range(between) if inside), mark]:
                    compare(lake, history, ts)
                for name in KEYED:
                    compare_versions(lake, upstream, name)
    return cuts


@contextmanager
def as_if(which: str) -> Iterator[None]:
    """The tables are taken for `large` ones, which Spark's workers read, or their buckets for large ones."""
    large = which == "large"
    with pytest.MonkeyPatch.context() as patched:
        if large:
            patched.setattr(Lake, "workers", BY_SIZE)
        for name, value in {"LARGE": 0, "_WORTH_A_WORD": 0, "SHARE": 1e9}.items() if large else ():
            patched.setattr(merge, name, value)
        if large:
            patched.setattr(written, "AT_HAND", -1)
            patched.setattr(table_jobs, "_SHARE", 1)
        else:
            patched.setattr(survivors, "PASS_ROWS", 9)  # of the driver, which shares buckets that have more
        yield
