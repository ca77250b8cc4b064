"""`tidelake rollback` on a real lake, ended by SIGKILL: whatever runs next finishes it, and forward again the tables equal the truth.

And `tidelake redo`.
"""

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
from tests.cli.calls import call
from tests.e2e.bazaar import FEED, Bazaar

PLACES = {
    "before the intent": ("tidelake.publish.rollback:declare", 1),
    "right after the intent": ("tidelake.publish.rollback:carry_out", 1),
    "between two tables": ("tidelake.lake.catalog:LakeCatalog.restore", 3),
    "between two names": ("tidelake.lake.catalog:LakeCatalog.rename", 2),
    "before the published record": ("tidelake.publish.steps:record", 1),
    "before the certificate": ("tidelake.publish.steps:certificate", 1),
}


@pytest.mark.parametrize("place", [place for place, _ in PLACES.values()])
def test_every_place_is_there(place: str) -> None:
    module, _, path = place.partition(":")
    assert callable(attrgetter(path)(import_module(module)))


@pytest.mark.usefixtures("small_hours")
@pytest.mark.long
@pytest.mark.parametrize("where", PLACES)
def test_a_rollback_killed_anywhere_is_finished_and_the_hour_runs_again(where: str, shop: Bazaar) -> None:
    place, nth = PLACES[where]
    assert shop.run_hours(2) == 0  # the second hour renames a table
    first = json.loads((shop.folder / "lake" / "cuts" / FEED / "00000001.json").read_text())
    command = ["rollback", "--feed", FEED, "--to", str(first["resolved_ts"])]
    plan = json.loads(call(*command, "--dry-run", "--json").out)
    assert (plan["seq"], plan["from_cut"], plan["to_cut"], plan["hour"]) == (3, 2, 1, shop.hours[0])
    killed = subprocess.run(
        [sys.executable, "-m", "tests.e2e.killed", place, str(nth), *command],
        cwd=CHECKOUT,
        env=os.environ | shop.variables,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    again = call(*command)
    assert (again.code, "changelog rows undone" in again.out) == (0, where == "before the intent"), again.err
    assert not any(shop.differences(shop.hours[0]).values())
    status = json.loads(call("status", "--feed", FEED, "--json").out)
    assert (status["cut"], status["published_ts"], status["published_hour"]) == (3, first["resolved_ts"], shop.hours[0])
    assert shop.run("run", "--feed", FEED, "--hour", shop.hours[1]) == 0
    assert not any(shop.differences(shop.hours[1]).values())
    assert not any(shop.differences(shop.hours[0]).values())


@pytest.mark.long
@pytest.mark.usefixtures("small_hours")
def test_a_redo_with_the_same_decoder_says_that_nothing_is_different(shop: Bazaar) -> None:
    assert shop.run_hours(2) == 0
    hours = ["--from", shop.hours[0], "--to", shop.hours[1]]
    plan = json.loads(call("redo", "--feed", FEED, *hours, "--dry-run", "--json").out)
    assert (plan["decoded"], plan["until"], plan["after_ts"], plan["replaced"]) == (shop.hours[:2], shop.hours[1], 0, [1, 2])
    done = call("redo", "--feed", FEED, *hours)
    assert (done.code, done.out.splitlines()[1:]) == (0, ["  every table holds the same rows as before"]), done.err
    assert not any(shop.differences(shop.hours[1]).values())
    assert not any(shop.differences(shop.hours[0]).values())
    refused = call("redo", "--feed", FEED, "--from", "2027-01-01T00")
    assert (refused.code, "is not published: the newest cut reaches to" in refused.err) == (2, True)
