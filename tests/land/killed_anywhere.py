"""Lands one hour again and again into new lakes on S3 and kills each landing at an instant that a seeded die chooses.

python -m tests.land.killed_anywhere ROOT SEED KILLS [SERVERS TOPIC]: the archive is ROOT/archive, or the source a live topic with two
partitions; the lakes are ROOT/lake-<n>. Instants are spread over the time that the fastest landing took so far, the first that of
ROOT/lake-whole. Prints one JSON object: its exit code, and by n the instant at which that landing was killed, in seconds.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from typing import Any

import boto3  # noqa: F401  # once here, not in every fork
import pyarrow as pa

from tests.land.archive import HOUR, make_feed
from tidelake.land import land_hour
from tidelake.land.store import objects

OBJECT_BYTES = 40  # so that there are many objects
MOST = 10  # landings for each kill: some end before their instant


def main(root: str, seed: int, kills: int, live: dict[str, Any]) -> None:
    """Fork a landing that ends, then one for each kill. Forks share nothing but what was imported."""
    pa.array([0])  # pyarrow imports pandas at its first use
    objects.OBJECT_BYTES = OBJECT_BYTES
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    code, seconds = _landing(root, "whole", 60.0, live)
    die, killed, number = random.Random(seed), dict[int, float](), 0
    while len(killed) < kills and number < MOST * kills:
        instant = die.uniform(0, seconds)
        ended, took = _landing(root, str(number), instant, live)
        if ended == -signal.SIGKILL:
            killed[number] = instant
        else:
            seconds = min(seconds, took)
        number += 1
    sys.stdout.write(json.dumps({"code": code, "killed": killed}))


def _landing(root: str, name: str, instant: float, live: dict[str, Any]) -> tuple[int, float]:
    """Exit code and seconds of a landing that is killed at an instant, in seconds, unless it has ended by then."""
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            land_hour(make_feed(root, lake={"uri": f"{root}/lake-{name}"}, **live), HOUR)
            code = 0
        finally:
            os._exit(code)
    signal.sigtimedwait({signal.SIGCHLD}, instant)
    os.kill(child, signal.SIGKILL)  # a zombie does not mind
    status = os.waitpid(child, 0)[1]
    signal.sigtimedwait({signal.SIGCHLD}, 0)  # the next landing's wait is not for this one
    return os.waitstatus_to_exitcode(status), time.monotonic() - started


if __name__ == "__main__":
    where = {"topics": tuple(sys.argv[5:]), "source": {"kind": "kafka", "uri": sys.argv[4]}} if sys.argv[4:] else {}
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), where)
