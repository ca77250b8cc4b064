"""Read landed objects again. Only content with the sha256 of the manifest is accepted (docs/landing.md).

A flipped bit in Parquet mostly reads as other content. A sha256 costs a hundredth of decoding: docs/landing.md has the figures.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tidelake.config.lake_paths import hour_of_landed
from tidelake.errors import Coordinates, OrderError, StorageError
from tidelake.io.storage import Store
from tidelake.land.store.manifest import Landed, Manifest

READERS = 4  # objects that are compared concurrently
CODE = "LANDED_DAMAGED"

_GONE = "it does not exist"


def read_landed(store: Store, feed: str, landed: Landed) -> bytes:
    """Return the bytes of a landed object. Raises OrderError (LANDED_DAMAGED) if it is gone or has other bytes."""
    for _ in range(2):  # data damaged in transfer is whole on the second attempt
        content = store.read_if_present(landed.key)
        found = None if content is None else hashlib.sha256(content).hexdigest()
        if content is not None and found == landed.sha256:
            return content
    what = _GONE if found is None else f"its sha256 is {found}"
    raise OrderError(
        f"{store.uri_of(landed.key)} differs from the landed object: {what}, the manifest records {landed.sha256}",
        code=CODE,
        at=Coordinates(landed.topic, landed.partition),
        remedy=f"run `tidelake land --feed {feed} --hour {hour_of_landed(landed.key)}`, which restores it from the source",
    )


def cannot_mend(manifest: Manifest, broken: Sequence[Landed], why: str) -> OrderError:
    """Return the error for an hour with lost or damaged objects that cannot be landed again."""
    return OrderError(
        f"hour {manifest.hour}: {len(broken)} of {len(manifest.objects)} landed objects are missing or have other bytes, the first is "
        f"{broken[0].key}; {why}",
        code="LANDED_LOST",
        at=Coordinates(broken[0].topic, broken[0].partition),
        remedy=f"restore the hour's messages in the source, or the objects from a backup of the lake; generation "
        f"{manifest.generation} stays valid, and the remaining objects are unchanged",
    )


def is_whole(store: Store, landed: Landed) -> bool:
    """Return whether the object exists with the landed bytes. Reads it if its size is right."""
    return _is_there(store, landed) and _sha256(store, landed.key) == landed.sha256


def damaged(store: Store, objects: Sequence[Landed]) -> tuple[Landed, ...]:
    """Return the objects that are gone or have other bytes. Reads all of them."""
    with ThreadPoolExecutor(READERS, thread_name_prefix="landed") as pool:
        whole = list(pool.map(lambda each: is_whole(store, each), objects))
    return tuple(each for each, right in zip(objects, whole, strict=True) if not right)


def missing(store: Store, objects: Sequence[Landed]) -> tuple[Landed, ...]:
    """Return the objects that are gone or of another size. Reads none."""
    return tuple(each for each in objects if not _is_there(store, each))


def _is_there(store: Store, landed: Landed) -> bool:
    there = store.head(landed.key)
    return there is not None and there.size == landed.size


def _sha256(store: Store, key: str) -> str | None:
    """Return the object's sha256, None if it is gone."""
    digest = hashlib.sha256()
    try:
        for chunk in store.chunks(key):
            digest.update(chunk)
    except StorageError as e:
        if e.code in ("NOT_FOUND", "CHANGED"):
            return None
        raise
    return digest.hexdigest()
