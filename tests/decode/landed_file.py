"""A Parquet file of MESSAGE rows as a landed object: what its manifest would say of it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow.parquet as pq

from tidelake.land.store.manifest import Landed


def landed_file(path: Path, key: str = "") -> Landed:
    """Of a file of one partition. key: in the lake, the file's name if not given."""
    content, rows = path.read_bytes(), pq.read_table(path)
    offsets = rows.column("offset").to_pylist()
    return Landed(
        key=key or path.name,
        topic=rows.column("topic")[0].as_py(),
        partition=rows.column("partition")[0].as_py(),
        first=min(offsets),
        last=max(offsets),
        count=len(rows),
        bytes=0,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )
