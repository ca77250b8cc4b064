"""List and land an hour of very many tiny objects on the S3 server that the environment names; prints one JSON object. A child."""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.land.archive import HOUR, make_feed, messages, put
from tidelake.demo.embedded_s3 import BUCKET
from tidelake.land import land_hour

PARTITIONS = 4
EACH = 5  # messages
_WRITERS = 8


def main(objects: int) -> dict[str, Any]:
    """Make the archive, land it, and land it again unchanged."""
    root = f"s3://{BUCKET}/tiny"
    feed = make_feed(root, partitions=PARTITIONS)

    def write(number: int) -> None:
        first = number // PARTITIONS * EACH
        put(feed, number % PARTITIONS, messages(first, first + EACH - 1))

    with ThreadPoolExecutor(_WRITERS) as pool:
        list(pool.map(write, range(objects)))
    started = time.monotonic()
    report = land_hour(feed, HOUR)
    seconds = time.monotonic() - started
    if (report.sources, report.messages) != (objects, objects * EACH):
        raise SystemExit(f"{report.messages} messages of {report.sources} objects landed, {objects} objects were made")
    started = time.monotonic()
    again = land_hour(feed, HOUR)
    if again.new:
        raise SystemExit("an unchanged hour was landed anew")
    return {"objects": objects, "seconds": seconds, "again": time.monotonic() - started}


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(main(int(sys.argv[1]))))
