"""Computes the sha256 of files that are in the store already, in workers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import pyarrow as pa

from tidelake.io.storage import open_store
from tidelake.spark.part_reader import PartReader
from tidelake.spark.worker_secrets import Secrets

DIGESTS = pa.schema([("uri", pa.string()), ("sha256", pa.string())])


class DigestReader(PartReader[Sequence[str]]):
    """Reads rows of DIGESTS; a part is the URIs of some files."""

    def __init__(self, parts: Sequence[Sequence[str]]) -> None:
        super().__init__(parts, DIGESTS)

    def rows(self, part: Sequence[str], secrets: Secrets) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pylist([{"uri": uri, "sha256": stored_sha256(uri)} for uri in part], schema=DIGESTS)


def stored_sha256(uri: str) -> str:
    """Return the sha256 of an object, in hex. Raises StorageError (NOT_FOUND)."""
    folder, _, name = uri.rpartition("/")
    digest = hashlib.sha256()
    for chunk in open_store(folder).chunks(name):
        digest.update(chunk)
    return digest.hexdigest()
