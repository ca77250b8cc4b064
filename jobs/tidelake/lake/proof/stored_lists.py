"""The lists of a table's files in the lake: each is one object, named by its sha256.

A list of more than 256 files is cut into parts, so that an hour writes only the parts with files that it added or removed. Where a list is
cut follows from the paths alone: the same files make the same list, whatever was there before. Such lists are known as prolly trees
(https://docs.dolthub.com/architecture/storage-engine/prolly-tree).
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from tidelake.config.lake_paths import file_list_key
from tidelake.errors import DamageError
from tidelake.io.storage import Store
from tidelake.lake.cut import FilesDigest, ProvenFile
from tidelake.lake.proof.file_list import Line, Part, digest_of, read, written

WHOLE = 256  # files; a longer list is cut
_A_PART = 32  # lines of a part, on average


class StoredLists:
    """The lists of one table. uuid: of the table."""

    def __init__(self, store: Store, feed: str, uuid: str) -> None:
        self._store = store
        self._feed = feed
        self._uuid = uuid

    def key(self, sha256: str) -> str:
        """Return the key of a list."""
        return file_list_key(self._feed, self._uuid, sha256)

    def lines(self, sha256: str) -> list[Line]:
        """Return the lines of one list. Raises DamageError if it is missing or has other bytes."""
        key = self.key(sha256)
        content = self._store.read_if_present(key)
        found = None if content is None else hashlib.sha256(content).hexdigest()
        if content is None or found != sha256:
            what = "it is missing" if content is None else f"its sha256 is {found}, its name says {sha256}"
            raise DamageError(f"{self._store.uri_of(key)}: {what}", remedy="restore an earlier version of the object")
        return read(content)

    def files(self, sha256: str) -> list[ProvenFile]:
        """Return all files of a list and its parts, by path. Raises DamageError."""
        return [f for line in self.lines(sha256) for f in ([line] if isinstance(line, ProvenFile) else self.files(line.digest.sha256))]

    def names(self, lists: Mapping[str, int]) -> set[str]:
        """Return the sha256 of these lists and all their parts. Reads a part once. Raises DamageError.

        lists: their sha256, each with its number of files.
        """
        found, todo = set(lists), [sha256 for sha256, files in lists.items() if files > WHOLE]
        while todo:
            parts = [line for line in self.lines(todo.pop()) if isinstance(line, Part) and line.digest.sha256 not in found]
            found |= {p.digest.sha256 for p in parts}
            todo += [p.digest.sha256 for p in parts if p.level > 1]
        return found

    def keep(self, files: Iterable[ProvenFile]) -> FilesDigest:
        """Write the list of these files and return its digest."""
        return self._cut(sorted(files, key=_path))

    def change(self, before: FilesDigest, added: Sequence[ProvenFile], removed: Iterable[str]) -> FilesDigest:
        """Write the list of the files of another list with these changes, and return its digest.

        Reads and writes only the parts that change.

        Args:
            before: The other list.
            added: Files that are not in it.
            removed: Paths of files that are.

        Raises:
            DamageError: A list is missing or has other bytes.
            LookupError: A removed file is not in the list.
        """
        gone = set(removed)
        changed = sorted({*gone, *map(_path, added)})
        if not changed:
            return before
        lines: list[Line] = self.lines(before.sha256)
        small = before.files + len(added) - len(gone) <= WHOLE
        while opened := _touched(lines, changed, small):
            lines = [inner for line in lines for inner in (self._inside(line) if line.path in opened else [line])]
        if missing := gone - {line.path for line in lines if isinstance(line, ProvenFile)}:
            raise LookupError(f"{min(missing)}: not in list {before.sha256}")
        return self._cut(sorted([*(line for line in lines if line.path not in gone), *added], key=_path))

    def _cut(self, lines: list[Line]) -> FilesDigest:
        """Write these lines as a list, a long one in parts. Parts among them are as they were before."""
        if sum(line.digest.files if isinstance(line, Part) else 1 for line in lines) <= WHOLE:
            return self._write(lines, 1).digest
        level = 1
        while len(parts := self._parts(lines, level)) > 1:
            lines, level = parts, level + 1
        top = parts[0]
        while _level(top) > level and len(inner := self._inside(top)) == 1:
            top = inner[0]  # a part that nothing was changed in is all that is left
        assert isinstance(top, Part)
        return top.digest

    def _parts(self, lines: Sequence[Line], level: int) -> list[Line]:
        """Write lines of the level below as parts of this level.

        Lines of this and higher levels stay. But if lines that do not end a part are before one, it is opened: they belong together now.
        """
        parts, run, todo = list[Line](), list[Line](), deque(lines)
        while todo:
            line = todo.popleft()
            if _level(line) < level:
                run.append(line)
                if _ends_part(line.path, level):
                    parts.append(self._write(run, level))
                    run = []
            elif run:
                todo.extendleft(reversed(self._inside(line)))
            else:
                parts.append(line)
        return [*parts, self._write(run, level)] if run else parts

    def _inside(self, line: Line) -> list[Line]:
        """The lines of a part."""
        return self.lines(line.digest.sha256) if isinstance(line, Part) else [line]

    def _write(self, lines: Sequence[Line], level: int) -> Part:
        content = written(lines)
        digest = digest_of(content, lines)
        self._store.put_if_absent(self.key(digest.sha256), content)
        return Part(lines[-1].path if lines else "", level, digest)


def _path(line: Line) -> str:
    return line.path


def _level(line: Line) -> int:
    return line.level if isinstance(line, Part) else 0


def _ends_part(path: str, level: int) -> bool:
    """Whether a part of this level ends with this path."""
    number = int(hashlib.sha256(path.encode()).hexdigest()[:16], 16)
    return not number % _A_PART**level


def _touched(lines: Sequence[Line], changed: Sequence[str], every: bool) -> set[str]:
    """The parts among the lines that have one of the paths, or would have. changed: sorted paths; every: all parts."""
    found, begin = set[str](), 0
    for line in lines:
        end = len(changed) if line is lines[-1] else bisect_right(changed, line.path)
        if isinstance(line, Part) and (every or begin < end):
            found.add(line.path)
        begin = end
    return found
