"""The archiver on a real S3 server: what lands, one writer at a time, what a kill leaves."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT
from tests.conftest import FreshUri
from tests.io.kafka_broker import KafkaBroker
from tests.land.archive import archive as store_of
from tests.land.archive import at, landed, manifest
from tests.land.archiver.topics import archived, archiving, following, keys, run, spans
from tests.land.live import fresh, messages, produce, two_hours_of_three_partitions
from tidelake.config.lake_paths import SYSTEM
from tidelake.errors import LeaseError
from tidelake.io.lease import Lease
from tidelake.io.storage import open_store
from tidelake.land import land_hour
from tidelake.land.archiver.archiver_progress import ArchiveTotals

TEN, ELEVEN = "2026-01-05T10", "2026-01-05T11"


def test_what_is_archived_on_s3_lands_from_there_as_it_was_produced(kafka: KafkaBroker, s3: FreshUri, tmp_path: Path) -> None:
    topic, ten, _ = two_hours_of_three_partitions(kafka)
    root = s3("archiver")
    feed = archiving(root, kafka, topic, partitions=3)
    assert (run(feed).messages, run(feed)) == (198, ArchiveTotals())
    assert spans(feed) == {f"{TEN}/{n}": [(0, 39 + n)] for n in range(3)} | {f"{ELEVEN}/{n}": [(40 + n, 64 + n)] for n in range(3)}
    kept = [info.key for info in store_of(feed).objects(f"{SYSTEM}/")]
    assert kept == [f"{SYSTEM}/leases/archiver.json", f"{SYSTEM}/topics/{topic}.json"]
    assert land_hour(feed, at(0)).messages == 123
    assert landed(feed, manifest(feed, TEN), tmp_path) == {(topic, number): ten[number] for number in range(3)}


def test_two_archivers_of_one_archive_on_s3_are_kept_apart(kafka: KafkaBroker, topic: str, s3: FreshUri) -> None:
    root = s3("archiver")
    feed, other = archiving(root, kafka, topic), archiving(root, kafka, topic, name="other")
    produce(kafka, topic, 0, messages(0, 5))
    with following(feed) as follower:
        follower.until(lambda: len(keys(feed)) == 1)
        with pytest.raises(LeaseError, match=rf"^LEASE: the archive {root}/archive is held by archive of feed small on .*; wait for it"):
            run(other)
    held = Lease.model_validate_json(open_store(f"{root}/archive/{SYSTEM}").read("leases/archiver.json"))
    assert (follower.done.messages, held.expires_ms) == (5, 0)
    produce(kafka, topic, 0, messages(5, 2))
    assert run(other).messages == 2
    assert spans(feed) == {f"{TEN}/0": [(0, 4), (5, 6)]}


@pytest.fixture
def two_hours(kafka: KafkaBroker) -> str:
    """A topic of two partitions, each with 10 messages of an hour and 5 of the next."""
    topic = fresh()
    kafka.create(topic, 2)
    for number in range(2):
        produce(kafka, topic, number, [*messages(0, 10), *messages(10, 5, hours=1)])
    return topic


def killed(root: str, kafka: KafkaBroker, topic: str, *point: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.land.archiver.killed", root, kafka.servers, topic, *point]
    return subprocess.run(command, cwd=CHECKOUT, check=False, capture_output=True, text=True)


def is_completed(root: str, kafka: KafkaBroker, topic: str, point: int, tmp_path: Path) -> int:
    """The next run adds what is missing and nothing else; how many objects there were."""
    feed = archiving(root, kafka, topic, partitions=2, source={"uri": f"{root}/archive-{point}"})
    left = len(keys(feed))
    assert run(feed).objects == 4 - left
    assert spans(feed) == {f"{TEN}/{n}": [(0, 9)] for n in range(2)} | {f"{ELEVEN}/{n}": [(10, 14)] for n in range(2)}
    content = [*messages(0, 10), *messages(10, 5, hours=1)]
    assert archived(feed, tmp_path) == {(topic, number): content for number in range(2)}
    return left


def test_an_archiver_that_is_killed_half_way_on_s3_is_completed_by_the_next(
    kafka: KafkaBroker, two_hours: str, s3: FreshUri, tmp_path: Path
) -> None:
    root = s3("archiver")
    done = killed(root, kafka, two_hours, "16")
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
    assert 0 < is_completed(root, kafka, two_hours, 16, tmp_path) < 4


@pytest.mark.long
def test_an_archiver_that_is_killed_at_any_step_on_s3_is_completed_by_the_next(
    kafka: KafkaBroker, two_hours: str, s3: FreshUri, tmp_path: Path
) -> None:
    root = s3("archiver")
    points, code = map(int, killed(root, kafka, two_hours).stdout.split())
    assert (points >= 10, code) == (True, 0)
    left = {is_completed(root, kafka, two_hours, point, tmp_path) for point in range(1, points + 1)}
    assert left == {0, 1, 2, 3, 4}
