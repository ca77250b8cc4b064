"""Land one archive on the S3 server that the environment names, in turns with the plain loop; prints one JSON object. A child.

Both go over a small hour first, unmeasured, and must give the same rows.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.benchmarks import plain_landing
from tests.benchmarks.landing_archive import feed_of, fill, folder_of
from tests.land.archive import HOUR, at
from tidelake.demo.embedded_s3 import BUCKET
from tidelake.history.event import MESSAGE
from tidelake.io.storage import open_store
from tidelake.land import land_hour

SMALL = at(-1)


def main(form: str, megabytes: int, turns: int) -> dict[str, Any]:
    """Seconds and CPU seconds of every turn, and what there was to land."""
    root = f"s3://{BUCKET}/{form}"
    archive = open_store(f"{root}/archive")
    fill(archive, form, SMALL, 1)
    _check_same(form, root)
    fill(archive, form, HOUR, megabytes)
    plain, land, messages, size = list[dict[str, float]](), list[dict[str, float]](), 0, 0
    for turn in range(turns):
        plain.append(_used(lambda turn=turn: plain_landing.land(form, BUCKET, _prefix(form, HOUR), f"{form}/plain-{turn}/")))  # type: ignore[misc]
        land.append(_used(lambda turn=turn: land_hour(feed_of(root, form, f"lake-{turn}"), HOUR)))  # type: ignore[misc]
        report, count = land[-1].pop("gave"), plain[-1].pop("gave")
        messages, size = report.messages, report.bytes  # type: ignore[attr-defined]
        if messages != count:
            raise SystemExit(f"land has {messages} messages, the plain loop {count}")
    objects = list(archive.objects(folder_of(HOUR)))
    return {
        "messages": messages,
        "bytes": size,
        "objects": len(objects),
        "archived": sum(info.size for info in objects),
        "plain": plain,
        "land": land,
    }


def _check_same(form: str, root: str) -> None:
    """Raise SystemExit unless both ways give the same rows."""
    land_hour(feed_of(root, form, "lake-small"), SMALL)
    plain_landing.land(form, BUCKET, _prefix(form, SMALL), f"{form}/plain-small/")
    one, other = (_rows(f"{root}/{lake}") for lake in ("lake-small/landed", "plain-small"))
    if not one.equals(other):
        raise SystemExit(f"{form}: land gives {len(one)} rows, the plain loop {len(other)}, or other ones")


def _rows(uri: str) -> pa.Table:
    store = open_store(uri)
    tables = [pq.read_table(pa.BufferReader(store.read(info.key)), schema=MESSAGE) for info in store.objects()]
    return pa.concat_tables(tables).combine_chunks().sort_by([("partition", "ascending"), ("offset", "ascending")])


def _prefix(form: str, hour: Any) -> str:
    return f"{form}/archive/{folder_of(hour)}"


def _used(action: Callable[[], Any]) -> dict[str, Any]:
    started, before = time.monotonic(), time.process_time()
    gave = action()
    return {"seconds": time.monotonic() - started, "cpu": time.process_time() - before, "gave": gave}


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
