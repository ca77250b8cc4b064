"""Archives a topic again and again into new archives, killing itself a step later each time, until a run survives.

python -m tests.archiver.killed ROOT SERVERS TOPIC: archives are ROOT/archive-<n>. Prints how many times it was killed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Event

from tests.land.archive import make_feed
from tests.land.killed import until_one_survives
from tidelake.archiver.follow import Goal, archive


def main(root: Path, servers: str, topic: str) -> None:
    """Fork an archiver for each point until one ends by itself."""
    source = {"layout": "canonical", "archiver": {"servers": servers}}

    def run(point: int) -> None:
        feed = make_feed(root, topics=(topic,), source=source | {"uri": f"{root}/archive-{point}"})
        archive(feed, Goal(once=True), Event(), lambda _: None, wait_seconds=0.0)

    until_one_survives(run)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
