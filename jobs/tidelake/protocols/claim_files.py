"""Claim-check files by the location that a message names (docs/reference/protocols.md 1.5): looked up by base name in the feed's storage.

A location is TiCDC's URI of the file, as the changefeed saw its storage. Only its last part counts, so a message cannot point anywhere
else, and the files may have moved since.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelake.errors import DecodeError
from tidelake.io.storage import Store, open_store

ClaimFiles = Callable[[str, int], bytes]  # location, the most bytes that a file may have

_MAX_NAME_BYTES = 255  # what file systems allow


def claim_files(uri: str) -> ClaimFiles:
    """The files at a URI. Raises StorageError for an unknown scheme.

    What is returned raises DecodeError (CLAIM_CHECK) for a location without a plain file name and for a file that is not there,
    DecodeError (TOO_LARGE) for one above the cap, StorageError if the storage cannot be asked.
    """
    store = open_store(uri)
    return lambda location, cap: _content(store, _name(location), cap)


def _name(location: str) -> str:
    name = location.rpartition("/")[2]
    if name in ("", ".", "..") or "\\" in name or not name.isprintable() or len(name.encode()) > _MAX_NAME_BYTES:
        raise DecodeError(f"the claim-check location {location[:300]!r} ends in no plain file name", code="CLAIM_CHECK")
    return name


def _content(store: Store, name: str, cap: int) -> bytes:
    found = store.head(name)
    if found is None:
        raise DecodeError(f"the claim-check file {name} is not in {store.uri}", code="CLAIM_CHECK")
    if found.size <= cap:
        content = store.read(name)
        if len(content) <= cap:  # it may have been replaced meanwhile
            return content
    raise DecodeError(f"the claim-check file {name} in {store.uri} has {found.size} bytes, the cap is {cap}", code="TOO_LARGE")
