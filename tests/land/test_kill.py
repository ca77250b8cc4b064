from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.checkout import CHECKOUT
from tests.land.archive import HOUR, contents, lake, make_feed, messages, put
from tidelake.land import land_hour


def test_a_landing_that_is_killed_at_any_step_leaves_nothing_that_the_next_does_not_complete(tmp_path: Path) -> None:
    feed = make_feed(tmp_path)
    put(feed, 0, messages(0, 9))
    put(feed, 0, messages(10, 19))
    put(feed, 1, messages(0, 9))
    land_hour(feed, HOUR)
    whole = contents(lake(feed))
    command = [sys.executable, "-m", "tests.land.killed", str(tmp_path)]
    (tmp_path / "scratch").mkdir()
    environment = os.environ | {"TMPDIR": str(tmp_path / "scratch")}  # what the killed leave behind
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, check=True, capture_output=True, text=True)
    points, code = map(int, done.stdout.split())
    assert (points >= 15, code) == (True, 0)
    for point in range(1, points + 1):
        killed = make_feed(tmp_path, lake={"uri": f"{tmp_path}/lake-{point}"})
        left = {key: data for key, data in contents(lake(killed)).items() if not key.startswith("probe-")}
        assert left.items() <= whole.items()
        assert len(left) < len(whole) or left == whole
        report = land_hour(killed, HOUR)
        assert report.new is (not any(key.startswith("manifests/") for key in left))
        assert {key: data for key, data in contents(lake(killed)).items() if not key.startswith("probe-")} == whole
    assert contents(lake(make_feed(tmp_path, lake={"uri": f"{tmp_path}/lake-{points + 1}"}))) == whole
