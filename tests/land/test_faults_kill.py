"""SIGKILL at random instants of landing from S3 into S3, then the same landing again."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import FreshUri
from tests.land.archive import HOUR, contents, lake, make_feed, messages, put
from tests.land.killed_anywhere import OBJECT_BYTES
from tidelake.feed import Feed
from tidelake.land import land_hour
from tidelake.land.manifest import newest

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("seed", "kills"), [(1, 6), pytest.param(2, 50, marks=pytest.mark.long)])
def test_a_landing_killed_at_any_instant_is_completed_to_the_same_bytes(
    seed: int, kills: int, s3: FreshUri, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = s3("killed")
    feed = make_feed(root)
    for first in (0, 20, 40):
        put(feed, 0, messages(first, first + 19))
        put(feed, 1, messages(first, first + 19, "w"))
    command = [sys.executable, "-m", "tests.land.killed_anywhere", root, str(seed), str(kills)]
    environment = os.environ | {"TMPDIR": str(tmp_path)}  # what the killed leave behind
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, check=True, capture_output=True, text=True, timeout=300)
    told = json.loads(done.stdout)
    assert told["code"] == 0
    assert len(told["killed"]) == kills, told
    whole = kept(make_feed(root, lake={"uri": f"{root}/lake-whole"}))
    assert len(whole) == 21  # with the manifest
    monkeypatch.setattr("tidelake.land.objects.OBJECT_BYTES", OBJECT_BYTES)
    for number in told["killed"]:
        feed = make_feed(root, lake={"uri": f"{root}/lake-{number}"})
        left = kept(feed)
        assert left.items() <= whole.items(), (seed, number)
        check_manifest(feed, left)
        assert land_hour(feed, HOUR).messages == 120
        assert kept(feed) == whole, (seed, number)


def kept(feed: Feed) -> dict[str, bytes]:
    """The lake's objects but for those that ask whether it knows conditional puts."""
    return {key: data for key, data in contents(lake(feed)).items() if not key.startswith("probe-")}


def check_manifest(feed: Feed, left: dict[str, bytes]) -> None:
    """Whoever reads the manifest finds all that it names."""
    found = newest(lake(feed), feed.name, "2026-01-05T10")
    for item in found.objects if found else ():
        assert hashlib.sha256(left[item.key]).hexdigest() == item.sha256
