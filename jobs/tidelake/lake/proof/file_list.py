"""The form of a list of a table's files, or of a part of a long one (docs/reference/certificate.md, "The list of files").

list := line*, sorted by path
line := path TAB sha256 TAB size TAB rows TAB kind LF
      | path TAB sha256 TAB size TAB rows TAB `list` TAB files TAB unproven TAB level LF
sha256: in hex, or `-` if it is not known; size: bytes; kind: `data` or `deletes`
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from tidelake.lake.cut import FilesDigest, ProvenFile

_UNKNOWN = "-"
_LIST = "list"
_KINDS = {False: "data", True: "deletes"}


@dataclass(frozen=True, slots=True)
class Part:
    """A line that stands for a list.

    path: the last one in that list; level: 1 if it has files, 2 if it has lists of level 1, and so on; digest: its sha256 and sums.
    """

    path: str
    level: int
    digest: FilesDigest


Line = ProvenFile | Part


def written(lines: Iterable[Line]) -> bytes:
    """Return the list with these lines."""
    return b"".join(path + rest for path, rest in sorted((line.path.encode(), _rest(line).encode()) for line in lines))


def _rest(line: Line) -> str:
    """What follows the path."""
    if isinstance(line, ProvenFile):
        return f"\t{line.sha256 or _UNKNOWN}\t{line.size}\t{line.rows}\t{_KINDS[line.deletes]}\n"
    d = line.digest
    return f"\t{d.sha256}\t{d.size}\t{d.rows}\t{_LIST}\t{d.files}\t{d.unproven}\t{line.level}\n"


def read(content: bytes) -> list[Line]:
    """Return the lines of a list. Raises ValueError for content of another form."""
    return [_line(line) for line in content.decode().removesuffix("\n").split("\n") if line]


@lru_cache(1 << 16)
def _line(line: str) -> Line:
    """One line. Lists of a table have most lines in common."""
    path, sha256, size, rows, kind, *more = line.split("\t")
    if kind == _LIST:
        files, unproven, level = map(int, more)
        return Part(path, level, FilesDigest(sha256=sha256, files=files, size=int(size), rows=int(rows), unproven=unproven))
    if kind not in _KINDS.values() or more:
        raise ValueError(f"{path}: unknown kind {kind!r}")
    known = None if sha256 == _UNKNOWN else sha256
    return ProvenFile(path=path, sha256=known, size=int(size), rows=int(rows), deletes=kind == _KINDS[True])


def digest_of(content: bytes, lines: Iterable[Line]) -> FilesDigest:
    """Return the sha256 of a list, and its sums. lines: its lines."""
    files = size = rows = unproven = 0
    for line in lines:
        if isinstance(line, Part):
            d = line.digest
            files, size, rows, unproven = files + d.files, size + d.size, rows + d.rows, unproven + d.unproven
        else:
            files, size, unproven = files + 1, size + line.size, unproven + (line.sha256 is None)
            rows += -line.rows if line.deletes else line.rows
    return FilesDigest(sha256=hashlib.sha256(content).hexdigest(), files=files, size=size, rows=rows, unproven=unproven)
