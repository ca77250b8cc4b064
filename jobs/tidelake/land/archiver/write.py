"""Write an object to the archive: only under the lease, and only if it overlaps no other object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidelake.config.lake_paths import archived_folder, archived_key
from tidelake.errors import Coordinates, LeaseError
from tidelake.io.storage import Store
from tidelake.land.archiver.resume import objects
from tidelake.land.store.objects import Draft, described
from tidelake.land.store.ranges import common, show


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenObject:
    """An object that is durable. next: the offset after those that it covers; bytes: of the messages' keys and values."""

    topic: str
    partition: int
    next: int
    messages: int
    bytes: int


def archive_object(archive: Store, check: Callable[[], None], draft: Draft) -> WrittenObject:
    """Write the draft's object to the archive unless it exists.

    Args:
        archive: The archive.
        check: Raises LeaseError if the lease is lost.
        draft: The object; its covered offsets must be known.

    Raises:
        LeaseError: What `check` raises; OVERLAP if an object that this archiver did not write has some of the offsets.
        StorageError: The archive cannot be read or written.
    """
    assert draft.covers is not None
    first, last = draft.covers
    digest = described(draft).sha256
    key = archived_key(draft.topic, draft.hour, draft.partition, first, last, digest)
    check()
    for other, _, span in objects(archive, f"{archived_folder(draft.topic, draft.hour, draft.partition)}/"):
        if other != key and (again := common((span,), (draft.covers,))):
            raise LeaseError(
                f"{archive.uri_of(other)} already has offsets {show(again)}",
                code="OVERLAP",
                at=Coordinates(draft.topic, draft.partition, again[0][0]),
                remedy="another archiver writes there: stop one of them; when started again, this one continues after it",
            )
    archive.put_if_absent(key, draft.path.read_bytes())
    return WrittenObject(topic=draft.topic, partition=draft.partition, next=last + 1, messages=draft.events, bytes=draft.bytes)
