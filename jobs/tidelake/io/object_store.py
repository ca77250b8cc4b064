"""What a store of objects is: list, read, write, put if absent. storage.py opens one."""

from __future__ import annotations

import hashlib
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
    """A listed object. etag changes when the object does: S3's ETag, or time and size of a local file.

    modified_ms: when it was written, by the store's clock; two listings of the same object are equal whatever it says.
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
        """Every object whose key starts with prefix, sorted by key."""

    @abstractmethod
    def some(self, prefix: str, most: int) -> list[ObjectInfo]:
        """At most `most` objects whose key starts with prefix, those that the store lists first; asks for no more than that."""

    @abstractmethod
    def folders(self, prefix: str = "") -> list[str]:
        """The names directly below a prefix (`""` or ending in `/`) that have something below them, sorted."""

    @abstractmethod
    def open(self, key: str) -> IO[bytes]:
        """A forward-only stream of the object. Raises StorageError (NOT_FOUND)."""

    @abstractmethod
    def write(self, key: str, data: bytes) -> None:
        """Write or replace an object, whole or not at all."""

    @abstractmethod
    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write the object unless one is there; False if there was."""

    @abstractmethod
    def put_if_match(self, key: str, data: bytes, etag: str) -> bool:
        """Replace the object if it still is the one with this etag; False if not."""

    @abstractmethod
    def upload(self, key: str, path: Path) -> None:
        """Write a local file as an object, whole or not at all."""

    @abstractmethod
    def head(self, key: str) -> ObjectInfo | None:
        """The object, None where there is none."""

    def tags(self, key: str) -> dict[str, str]:
        """The object's tags, which only S3 has."""
        return {}

    @abstractmethod
    def delete(self, key: str) -> None:
        """Remove the object if it is there."""

    def chunks(self, key: str) -> Iterator[bytes]:
        """The object's bytes, about CHUNK at a time. Raises StorageError (NOT_FOUND, CHANGED where a replacement shows)."""
        with self._errors(key), self.open(key) as stream:
            while chunk := stream.read(CHUNK):
                yield chunk

    def read(self, key: str) -> bytes:
        """The whole object."""
        return b"".join(self.chunks(key))

    def read_if_present(self, key: str) -> bytes | None:
        """The whole object, None where there is none."""
        try:
            return self.read(key)
        except StorageError as e:
            if e.code == "NOT_FOUND":
                return None
            raise

    def download(self, key: str, path: Path) -> str:
        """Copy an object into a local file, in chunks; returns its sha256 in hex."""
        digest = hashlib.sha256()
        with self._errors(key), path.open("wb") as out:
            for chunk in self.chunks(key):
                digest.update(chunk)
                out.write(chunk)
        return digest.hexdigest()

    def uri_of(self, key: str) -> str:
        """The object's full URI."""
        return f"{self.uri}/{key}" if key else self.uri

    @abstractmethod
    def _errors(self, key: str) -> AbstractContextManager[None]:
        """Turns the errors of the file system or S3 client into StorageError that names the object."""


def probe_conditional_puts(store: Store) -> None:
    """Raise StorageError (CONDITIONAL_PUTS) if the store ignores conditions: two writers could then not be told apart."""
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
        raise StorageError(f"nothing can be written there: {said}", code=e.code, remedy=e.remedy) from e
    if answers != [True, False, True, False] or kept != b"three":
        raise StorageError(
            f"{store.uri} ignores conditional puts (If-None-Match, If-Match)",
            code="CONDITIONAL_PUTS",
            remedy="use a store that supports them: S3, SeaweedFS 4, MinIO, Ceph 19, R2 or a local folder do",
        )
