"""Copy the schema files of a storage sink to the lake when they are first seen (as frozen_schemas.py does for Avro schemas). Decoding then
does not need the archive.

The file names contain a checksum of the content, so a file never changes under its name.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from tidelake.config.lake_paths import sink_schemas
from tidelake.io.storage import Store

_AT_A_TIME = 8


def freeze_schemas(archive: Store, lake: Store, feed: str, keys: Iterable[str]) -> None:
    """Copy the schema files that the lake lacks. keys: their keys in the archive. Raises StorageError."""
    prefix = sink_schemas(feed)
    there = {info.key for info in lake.objects(prefix)}
    missing = [key for key in keys if f"{prefix}{key}" not in there]
    with ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="schemas") as pool:
        for _ in pool.map(lambda key: lake.put_if_absent(f"{prefix}{key}", archive.read(key)), missing):
            pass
