"""Order and compact equal the upstream database at every cut and between cuts, for histories that Hypothesis invents."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.lake.histories import feeder, publish, rows_of
from tests.lake.upstream import HISTORIES, Upstream, delivered
from tidelake.errors import OrderError
from tidelake.feed import TablePolicy
from tidelake.lake.cut import Cut
from tidelake.lake.opened import Lake
from tidelake.lake.scd2 import scd2_frame

SQL = "CREATE TABLE d.k (id BIGINT PRIMARY KEY, v VARCHAR(20)); CREATE TABLE d.m (v VARCHAR(20));"
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # an example takes seconds: shrinking would take hours
History = tuple[int, list[list[tuple[str, str, str]]], list[tuple[float, int]], list[tuple[int, int]]]


@pytest.mark.usefixtures("spark_app")
@settings(max_examples=8, derandomize=True, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(history=HISTORIES)
def test_every_cut_equals_the_upstream(history: History) -> None:
    check(history)


@pytest.mark.long
@pytest.mark.usefixtures("spark_app")
@settings(max_examples=150, suppress_health_check=list(HealthCheck), phases=PHASES, print_blob=True)
@given(history=HISTORIES)
def test_every_cut_equals_the_upstream_for_many_histories(history: History) -> None:
    check(history)


def check(history: History) -> None:
    """Deliver the history in hours that end anywhere; after each, and at the end at every commit, compare both tables."""
    partitions, transactions, crashes, ends = history
    upstream = Upstream(partitions=partitions)
    for steps in transactions:
        upstream.commit(steps)
    sent = delivered(upstream, crashes) if upstream.log else []
    with tempfile.TemporaryDirectory() as folder:
        made = feeder(Path(folder), SQL, partitions, tables={"d.k": TablePolicy(buckets=2)})
        (Path(folder) / "lake").mkdir()
        with Lake.of(made.feed) as lake:
            done = [0] * partitions
            shares = zip(*(sorted(of) for of in zip(*ends, strict=True)), strict=True)
            for share in [*shares, (12, 12)]:
                hour = []
                for p, messages in enumerate(sent):
                    upto = max(done[p], share[p] * len(messages) // 12)
                    hour += messages[done[p] : upto]
                    done[p] = upto
                cut = published(lake, made.add(lake, hour))
                if cut is not None:
                    compare(lake, upstream, cut.resolved_ts)
                    last = cut.resolved_ts
            if sent:
                assert last == max(upstream.truth), "the last hour brings everything"
                for ts in sorted(upstream.truth)[:: max(1, len(upstream.truth) // 3)]:
                    compare(lake, upstream, ts)
                compare_versions(lake, upstream)


def published(lake: Lake, hour: str) -> Cut | None:
    """The hour's cut, None where its end does not move the resolved ts."""
    try:
        return publish(lake, hour)
    except OrderError as e:
        if e.code not in ("NO_WATERMARK", "STANDS_STILL"):
            raise
        return None


def compare_versions(lake: Lake, upstream: Upstream) -> None:
    """The versions of rows that are valid at each commit, and just before it, are the table as of then."""
    versions = [r.asDict() for r in scd2_frame(lake, "d.k", None, lake.spark)[0].collect()]
    for ts in (t - n for t in upstream.truth for n in (0, 1)):
        valid = [v for v in versions if v["_valid_from_ts"] <= ts and (v["_current"] or ts < v["_valid_to_ts"])]
        assert Counter((("id", str(v["id"])), ("v", v["v"])) for v in valid) == upstream.at(ts)[0], f"versions at {ts}"


def compare(lake: Lake, upstream: Upstream, ts: int) -> None:
    keyed, bare = upstream.at(ts)
    assert rows_of(lake, "d.k", ts) == keyed, f"d.k at {ts}"
    assert rows_of(lake, "d.m", ts) == bare, f"d.m at {ts}"
