"""The list of a table's files: one object in the lake, named by its sha256.

list := line*, sorted by path
line := path TAB sha256 TAB size TAB rows TAB kind LF
sha256: in hex, or `-` if it is not known; size: bytes; kind: `data` or `deletes`
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache

from tidelake.config.lake_paths import file_list_key
from tidelake.errors import DamageError
from tidelake.io.storage import Store
from tidelake.lake.cut import FilesDigest, ProvenFile

_UNKNOWN = "-"
_KINDS = {False: "data", True: "deletes"}


def written(files: Iterable[ProvenFile]) -> bytes:
    """Return the list of these files."""
    lines = sorted((f.path.encode(), f"\t{f.sha256 or _UNKNOWN}\t{f.size}\t{f.rows}\t{_KINDS[f.deletes]}\n".encode()) for f in files)
    return b"".join(path + rest for path, rest in lines)


def read(content: bytes) -> list[ProvenFile]:
    """Return the files of a list. Raises ValueError for content of another form."""
    return [_file(line) for line in content.decode().removesuffix("\n").split("\n") if line]


@lru_cache(1 << 16)
def _file(line: str) -> ProvenFile:
    """The file of a line. Lists of a table have most lines in common."""
    path, sha256, size, rows, kind = line.split("\t")
    if kind not in _KINDS.values():
        raise ValueError(f"{path}: unknown kind {kind!r}")
    known = None if sha256 == _UNKNOWN else sha256
    return ProvenFile(path=path, sha256=known, size=int(size), rows=int(rows), deletes=kind == _KINDS[True])


def digest_of(content: bytes, files: Iterable[ProvenFile]) -> FilesDigest:
    """Return what a cut records of a list. files: its files."""
    every = list(files)
    return FilesDigest(
        sha256=hashlib.sha256(content).hexdigest(),
        files=len(every),
        size=sum(f.size for f in every),
        rows=sum(-f.rows if f.deletes else f.rows for f in every),
        unproven=sum(f.sha256 is None for f in every),
    )


def keep_list(store: Store, feed: str, uuid: str, files: Iterable[ProvenFile]) -> FilesDigest:
    """Write the list of a table's files and return its digest. uuid: of the table."""
    every = list(files)
    content = written(every)
    digest = digest_of(content, every)
    store.put_if_absent(file_list_key(feed, uuid, digest.sha256), content)
    return digest


def find_list(store: Store, feed: str, uuid: str, sha256: str) -> list[ProvenFile] | None:
    """Return the files of a list, None if it is gone. Raises DamageError if it has other bytes."""
    key = file_list_key(feed, uuid, sha256)
    content = store.read_if_present(key)
    if content is None:
        return None
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise DamageError(
            f"{store.uri_of(key)}: its sha256 is {found}, its name says {sha256}", remedy="restore an earlier version of the object"
        )
    return read(content)
