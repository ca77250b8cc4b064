"""Archives a topic again and again into new archives, killing itself a step later each time, until a run survives.

python -m tests.archiver.killed ROOT SERVERS TOPIC: archives are ROOT/archive-<n>. Prints how many times it was killed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from threading import Event

import pyarrow as pa

from tests.land.archive import make_feed
from tests.land.killed import arm
from tidelake.archiver.follow import Goal, archive


def main(root: Path, servers: str, topic: str) -> None:
    """Fork an archiver for each point until one ends by itself."""
    pa.array([0])  # pyarrow imports pandas at its first use: once here, not in every fork
    source = {"layout": "canonical", "archiver": {"servers": servers}}
    point = 0
    while True:
        point += 1
        child = os.fork()
        if child == 0:
            arm(point)
            feed = make_feed(root, topics=(topic,), source=source | {"uri": f"{root}/archive-{point}"})
            archive(feed, Goal(once=True), Event(), lambda _: None, wait_seconds=0.0)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.stdout.write(f"{point - 1} {os.waitstatus_to_exitcode(status)}\n")
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
