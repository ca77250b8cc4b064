"""Position of a store in its bucket or file system. Keys are read from that root, for every URI that was opened."""

from __future__ import annotations

from tidelake.io.storage import Store

_S3 = "s3://"


def root_of(store: Store) -> str:
    """Return the prefix of a store's keys from the root of the bucket or file system: empty, or ending in `/`."""
    path = store.uri.removeprefix(_S3).partition("/")[2] if store.uri.startswith(_S3) else store.uri
    return f"{path.strip('/')}/" if path.strip("/") else ""


def uri_of(store: Store, folder: str) -> str:
    """Return the URI of a folder, given its key from the root of the store's bucket or file system."""
    start = _S3 + store.uri.removeprefix(_S3).partition("/")[0] if store.uri.startswith(_S3) else ""
    return f"{start}/{folder}".rstrip("/")
