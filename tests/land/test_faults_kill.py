"""SIGKILL at random instants of landing from S3 into S3, then the same landing again."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT
from tests.conftest import FreshUri
from tests.io.kafka_broker import KafkaBroker
from tests.land import live
from tests.land.archive import HOUR, contents, lake, make_feed, messages, put
from tests.land.killed_anywhere import OBJECT_BYTES
from tidelake.config.feed import Feed
from tidelake.land import land_hour
from tidelake.land.store.manifest import newest


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelake.land.store.objects.OBJECT_BYTES", OBJECT_BYTES)


@pytest.mark.parametrize(("seed", "kills"), [(1, 3), pytest.param(2, 50, marks=pytest.mark.long)])
def test_a_landing_killed_at_any_instant_is_completed_to_the_same_bytes(seed: int, kills: int, s3: FreshUri, tmp_path: Path) -> None:
    root = s3("killed")
    feed = make_feed(root)
    for first in (0, 20, 40):
        put(feed, 0, messages(first, first + 19))
        put(feed, 1, messages(first, first + 19, "w"))
    killed = killed_at(tmp_path, root, str(seed), str(kills))
    assert are_completed(killed, lambda name: make_feed(root, lake={"uri": f"{root}/lake-{name}"})) == (21, kills)


@pytest.mark.parametrize(("seed", "kills"), [(1, 3), pytest.param(2, 50, marks=pytest.mark.long)])
def test_a_landing_of_live_topics_killed_at_any_instant_is_completed_to_the_same_bytes(
    seed: int, kills: int, kafka: KafkaBroker, s3: FreshUri, tmp_path: Path
) -> None:
    root, topic = s3("killed"), live.fresh()
    kafka.create(topic, 2)
    for number in range(2):
        live.produce(kafka, topic, number, [*live.messages(0, 60), *live.messages(60, 5, hours=1)])
    killed = killed_at(tmp_path, root, str(seed), str(kills), kafka.servers, topic)

    def made(name: str) -> Feed:
        return live.live_feed(Path(root), kafka, topic, partitions=2, lake={"uri": f"{root}/lake-{name}"})

    assert are_completed(killed, made) == (17, kills)


def killed_at(folder: Path, *arguments: str) -> list[str]:
    """The lakes of the landings that were killed."""
    command = [sys.executable, "-m", "tests.land.killed_anywhere", *arguments]
    environment = os.environ | {"TMPDIR": str(folder)}  # what the killed leave behind
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, check=True, capture_output=True, text=True, timeout=600)
    told = json.loads(done.stdout)
    assert told["code"] == 0
    return list(told["killed"])


def are_completed(killed: list[str], made: Callable[[str], Feed]) -> tuple[int, int]:
    """What the killed left is part of what a whole landing leaves, and landing again adds the rest; how many of both."""
    whole = kept(made("whole"))
    for name in killed:
        feed = made(name)
        left = kept(feed)
        assert left.items() <= whole.items(), name
        check_manifest(feed, left)
        assert land_hour(feed, HOUR).messages == 120
        assert kept(feed) == whole, name
    return len(whole), len(killed)  # with the manifest


def kept(feed: Feed) -> dict[str, bytes]:
    """The lake's objects but for those that ask whether it knows conditional puts."""
    return {key: data for key, data in contents(lake(feed)).items() if not key.startswith("probe-")}


def check_manifest(feed: Feed, left: dict[str, bytes]) -> None:
    """Whoever reads the manifest finds all that it names."""
    found = newest(lake(feed), feed.name, "2026-01-05T10")
    for item in found.objects if found else ():
        assert hashlib.sha256(left[item.key]).hexdigest() == item.sha256
