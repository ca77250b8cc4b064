"""The interface of object stores: list, read, write, put if absent. storage.py opens a store."""

from __future__ import annotations

import hashlib
import io
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tidelake.errors import StorageError

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, order=True)
class ObjectInfo:
    """A listed object. etag: changes when the object changes; S3's ETag, or time and size of a local file.

    modified_ms: time of writing by the store's clock, epoch milliseconds; not compared between listings.
    """

    key: str
    size: int
    etag: str
    modified_ms: int = field(default=0, compare=False)


class Store(ABC):
    """Objects below one URI."""

    uri: str

    @abstractmethod
    def objects(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Return every object whose key starts with prefix, sorted by key."""

    @abstractmethod
    def some(self, prefix: str, most: int) -> list[ObjectInfo]:
        """Return at most `most` objects whose key starts with prefix, the first that the store lists. Lists no more than that."""

    @abstractmethod
    def folders(self, prefix: str = "") -> list[str]:
        """Return the names of the non-empty folders directly below a prefix (`""` or ending in `/`), sorted."""

    @abstractmethod
    def open(self, key: str) -> IO[bytes]:
        """Return a forward-only stream of the object. Raises StorageError (NOT_FOUND)."""

    @abstractmethod
    def write(self, key: str, data: bytes) -> None:
        """Write or replace an object, atomically."""

    @abstractmethod
    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write the object unless it exists. Returns whether it was written."""

    @abstractmethod
    def put_if_match(self, key: str, data: bytes, etag: str) -> bool:
        """Replace the object if it still has this etag. Returns whether it was replaced."""

    @abstractmethod
    def upload(self, key: str, path: Path) -> None:
        """Write a local file as an object, atomically."""

    @abstractmethod
    def head(self, key: str) -> ObjectInfo | None:
        """Return the object's facts, None if it does not exist."""

    def tags(self, key: str) -> dict[str, str]:
        """Return the object's tags, which only S3 has."""
        return {}

    @abstractmethod
    def delete(self, key: str) -> None:
        """Remove the object if it exists."""

    def chunks(self, key: str, begin: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield bytes of the object, about CHUNK at a time.

        Args:
            key: The object.
            begin: Place of the first byte.
            end: Place after the last byte; None for the object's end.

        Raises:
            StorageError: NOT_FOUND, CHANGED if the object was visibly replaced.
        """
        with self._errors(key), self.open(key) as stream:
            if begin:
                stream.seek(begin)
            while (size := CHUNK if end is None else min(CHUNK, end - begin)) and (chunk := stream.read(size)):
                begin += len(chunk)
                yield chunk

    def read(self, key: str, begin: int = 0, end: int | None = None) -> bytes:
        """Return the object, or its bytes from begin up to and excluding end. Raises StorageError (NOT_FOUND)."""
        return b"".join(self.chunks(key, begin, end))

    def read_if_present(self, key: str) -> bytes | None:
        """Return the whole object, None if it does not exist."""
        try:
            return self.read(key)
        except StorageError as e:
            if e.code == "NOT_FOUND":
                return None
            raise

    def download(self, key: str, path: Path) -> str:
        """Copy an object into a local file, in chunks. Returns its sha256 in hex."""
        digest = hashlib.sha256()
        with self._errors(key), path.open("wb") as out:
            for chunk in self.chunks(key):
                digest.update(chunk)
                out.write(chunk)
        return digest.hexdigest()

    def fetch(self, key: str, path: Path) -> Path:
        """Return a file with the object, to be read only: a copy at this path, or in a local store the object itself.

        Raises:
            StorageError: NOT_FOUND, CHANGED if the object was visibly replaced.
        """
        with self._errors(key), path.open("wb") as out:
            out.writelines(self.chunks(key))
        return path

    def uri_of(self, key: str) -> str:
        """Return the object's full URI."""
        return f"{self.uri}/{key}" if key else self.uri

    @abstractmethod
    def _errors(self, key: str) -> AbstractContextManager[None]:
        """Raise errors of the file system or S3 client as StorageError that names the object."""


class RangedObject(io.RawIOBase):
    """An object as a file, of which only the ranges are transferred that are read."""

    def __init__(self, store: Store, key: str, size: int) -> None:
        self._store, self._key, self._size, self._at = store, key, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        found = self._store.read(self._key, self._at, end) if end > self._at else b""
        self._at += len(found)
        return found


def probe_conditional_puts(store: Store) -> int:
    """Raise StorageError (CONDITIONAL_PUTS) if the store ignores conditions: concurrent writers would overwrite each other.

    Writes and removes one small object. Returns when it was written by the store's clock, in epoch milliseconds.
    """
    key = f"probe-{uuid.uuid4().hex}"
    try:
        answers = [store.put_if_absent(key, b"1"), store.put_if_absent(key, b"2")]
        first = store.head(key)
        etag = first.etag if first else ""
        answers += [store.put_if_match(key, b"three", etag), store.put_if_match(key, b"four!", etag)]
        kept = store.read_if_present(key)
        store.delete(key)
    except StorageError as e:
        said = e.message.replace(store.uri_of(key), store.uri)
        raise StorageError(f"the store is not writable: {said}", code=e.code, remedy=e.remedy) from e
    if answers != [True, False, True, False] or kept != b"three":
        raise StorageError(
            f"{store.uri} ignores conditional puts (If-None-Match, If-Match)",
            code="CONDITIONAL_PUTS",
            remedy="use a store that supports them: S3, SeaweedFS 4, MinIO, Ceph 19, R2 or a local folder do",
        )
    return first.modified_ms if first else 0
