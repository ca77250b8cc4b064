"""Archives a topic again and again into new archives, killing itself a step later each time, until a run survives.

python -m tests.land.archiver.killed ROOT SERVERS TOPIC [POINT]: archives are ROOT/archive-<n>; ROOT may be a URI of S3. Prints how many
times it was killed. POINT: only there, after so many steps.
"""

from __future__ import annotations

import sys
from threading import Event

from tests.land.archive import make_feed
from tests.land.killed import arm, until_one_survives
from tidelake.land.archiver.follow import Goal, archive


def main(root: str, servers: str, topic: str, point: int | None = None) -> None:
    """Fork an archiver for each point until one ends by itself."""
    source = {"layout": "canonical", "archiver": {"servers": servers}}

    def run(point: int) -> None:
        feed = make_feed(root, topics=(topic,), source=source | {"uri": f"{root}/archive-{point}"})
        archive(feed, Goal(once=True), Event(), wait_seconds=0.0)

    if point is None:
        until_one_survives(run)
    else:
        arm(point)
        run(point)


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:]))
