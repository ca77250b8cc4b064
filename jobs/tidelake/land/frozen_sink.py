"""Schema files of a storage sink kept in the lake when they are first seen, as Avro schemas are (frozen_schemas.py): what was decoded once
is decoded again without the archive.

Their names hold a checksum of what they say, so a file never changes under its name.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from tidelake.config.lake_paths import sink_schemas
from tidelake.io.storage import Store

_AT_A_TIME = 8


def freeze_schemas(archive: Store, lake: Store, feed: str, keys: Iterable[str]) -> None:
    """Copy those that the lake lacks. keys: in the archive. Raises StorageError."""
    prefix = sink_schemas(feed)
    there = {info.key for info in lake.objects(prefix)}
    missing = [key for key in keys if f"{prefix}{key}" not in there]
    with ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="schemas") as pool:
        for _ in pool.map(lambda key: lake.put_if_absent(f"{prefix}{key}", archive.read(key)), missing):
            pass
