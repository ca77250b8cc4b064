"""SIGKILL in every stage, then the same command again: the same tables, nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib import import_module
from operator import attrgetter

import pytest

from tests.checkout import CHECKOUT
from tests.e2e.bazaar import FEED, Bazaar
from tests.quick_spark import QUICK_SPARK

PLACES = {
    "land, before the manifest": ("tidelake.land.hour:record", 1),
    "decode, after the events were written": ("tidelake.decode.landed_hour:record_of", 1),
    "order, with files written and some staged": ("tidelake.order.arrow.staged_by_workers:stage_files", 3),
    "validate, before the verdict": ("tidelake.validate.stage:judge_measures", 1),
    "compact, before workers fold": ("tidelake.compact.fold_tables:FoldReader", 1),
    "compact, with files written and some staged": ("tidelake.compact.fold_tables:stage_files", 3),
    "compact, before the intent": ("tidelake.publish.stage:declare", 1),
    "publish, right after the intent": ("tidelake.publish.stage:carry_out", 1),
    "publish, between two tables": ("tidelake.lake.catalog:LakeCatalog.advance", 4),
    "publish, between two names": ("tidelake.lake.catalog:LakeCatalog.rename", 2),
    "publish, before the published record": ("tidelake.publish.steps:record", 1),
    "publish, before the certificate": ("tidelake.publish.steps:certificate", 1),
}
SAMPLE = "publish, between two tables"


def places() -> list[object]:
    """A sample always, in a stage that runs alone; all of them in the long run, in a run of all stages."""
    every = [pytest.param(*p, "run", id=name, marks=pytest.mark.long) for name, p in PLACES.items()]
    return [pytest.param(*PLACES[SAMPLE], "compact", id=f"{SAMPLE}, of compact alone"), *every]


@pytest.mark.parametrize("place", [place for place, _ in PLACES.values()])
def test_every_place_is_there(place: str) -> None:
    module, _, path = place.partition(":")
    assert callable(attrgetter(path)(import_module(module)))


@pytest.mark.usefixtures("spark_app")
@pytest.mark.parametrize(("place", "nth", "what"), places())
def test_a_run_killed_anywhere_ends_in_the_same_tables_when_run_again(place: str, nth: int, what: str, shop: Bazaar) -> None:
    hour = shop.hours[0]
    if "rename" in place:  # the second hour renames a table
        assert shop.run_hours(1) == 0
        hour = shop.hours[1]
    environment = os.environ | shop.variables
    if what == "compact":
        assert [shop.run(stage, "--feed", FEED, "--hour", hour) for stage in ("land", "decode", "order", "validate")] == [0] * 4
        environment |= QUICK_SPARK
    command = [sys.executable, "-m", "tests.e2e.killed", place, str(nth), what, "--feed", FEED, "--hour", hour]
    killed = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    assert shop.run("run", "--feed", FEED, "--hour", hour) == 0
    assert not any(shop.differences(hour).values())
    assert shop.run("run", "--feed", FEED, "--hour", hour) == 0
    cuts = sorted((shop.folder / "lake" / "cuts" / FEED).glob("*.json"))
    certificates = sorted((shop.folder / "lake" / "certificates" / FEED).glob("*.json"))
    assert len(cuts) == len(certificates) == shop.hours.index(hour) + 1
    for path in cuts:
        cut = json.loads(path.read_text())
        assert json.loads((path.parents[2] / "certificates" / FEED / path.name).read_text())["predicate"]["run"] == cut["run"]
    following = shop.hours[shop.hours.index(hour) + 1]
    assert shop.run("run", "--feed", FEED, "--hour", following) == 0
    assert not any(shop.differences(following).values())
