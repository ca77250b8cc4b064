"""Lands one hour again and again into new lakes, killing itself a step later each time, until a landing survives.

python -m tests.land.killed ROOT [SERVERS TOPIC]: the archive is ROOT/archive, or the source a live topic with two partitions; lakes are
ROOT/lake-<n>. Prints how many times it was killed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.forks import import_before
from tests.land.archive import HOUR, make_feed
from tidelake.io.kafka import Topics
from tidelake.io.storage import Store, _S3Store
from tidelake.land import land_hour

STEPS: list[tuple[Any, str]] = [
    (Store, "download"),
    (pq.ParquetWriter, "write_table"),
    (_S3Store, "_put_when"),
    (Path, "replace"),
    (Path, "hardlink_to"),
    (Path, "unlink"),
    (Topics, "bounds"),
    (Topics, "commit"),
]


def main(root: Path, live: dict[str, Any]) -> None:
    """Fork a landing for each point until one ends by itself."""
    until_one_survives(lambda point: land_hour(make_feed(root, lake={"uri": f"{root}/lake-{point}"}, **live), HOUR))


def until_one_survives(run: Callable[[int], object]) -> None:
    """Fork a run for each point, and tell how many were killed and how the last one ended. Point 0 is never reached, and goes before."""
    import_before(lambda: run(0))
    point = 0
    while True:
        point += 1
        child = os.fork()
        if child == 0:
            arm(point)
            run(point)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.stdout.write(f"{point - 1} {os.waitstatus_to_exitcode(status)}\n")
            return


def arm(point: int) -> None:
    """Kill this process before the point-th of the steps that matter."""
    left = [point]

    def killing(step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return step(*args, **kwargs)

        return run

    for owner, name in STEPS:
        setattr(owner, name, killing(getattr(owner, name)))


if __name__ == "__main__":
    where = {"topics": tuple(sys.argv[3:]), "source": {"kind": "kafka", "uri": sys.argv[2]}} if sys.argv[2:] else {}
    main(Path(sys.argv[1]), where)
