"""Reads the lists of files that certificates name, with their parts, and checks that they are as they are named."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tidelake.audit.findings import Findings
from tidelake.audit.proofs import READERS
from tidelake.io.storage import Store
from tidelake.lake.cut import FilesDigest, ProvenFile
from tidelake.lake.proof.file_list import Line, Part, digest_of, read


@dataclass(frozen=True, slots=True)
class WantedList:
    """A list that a certificate or another list names.

    cut: the first one that needs it; table: its name; digest: what is said of it; part: the line that names it, None of a whole list.
    """

    cut: int
    key: str
    table: str
    digest: FilesDigest
    part: Part | None = None


def read_lists(store: Store, wanted: Sequence[WantedList], findings: Findings) -> dict[str, list[ProvenFile] | None]:
    """Return the files of lists by key, None of a list that is wrong. Reads each object once."""
    found, todo, named = dict[str, list[Line] | None](), list(wanted), set[tuple[str, Part | None]]()
    with ThreadPoolExecutor(READERS) as pool:
        while todo:
            new = list({w.key: w for w in reversed(todo) if w.key not in found}.values())[::-1]
            contents = pool.map(lambda w: store.read_if_present(w.key), new)
            found |= {w.key: _lines(w, content, findings) for w, content in zip(new, contents, strict=True)}
            named |= {(w.key, w.part) for w in todo}
            parts = [part for w in todo for part in _parts(w, found[w.key], findings)]
            todo = list({(p.key, p.part): p for p in reversed(parts) if (p.key, p.part) not in named}.values())[::-1]
    return {w.key: _files(w.key, found) for w in wanted}


def _lines(w: WantedList, content: bytes | None, findings: Findings) -> list[Line] | None:
    """The lines of a list, None if it is missing or has another form or other bytes."""
    findings.checked["lists of files"] += 1
    what = "the list" if w.part is None else "a part of the list"
    if content is None:
        findings.expect(False, w.cut, w.key, f"it is missing: {what} of the files of {w.table}")
        return None
    sha256 = hashlib.sha256(content).hexdigest()
    if not findings.expect(sha256 == w.digest.sha256, w.cut, w.key, f"its sha256 is {sha256}, expected {w.digest.sha256}"):
        return None
    try:
        return read(content)
    except ValueError as e:
        findings.expect(False, w.cut, w.key, f"cannot be read: {e}")
        return None


def _parts(w: WantedList, lines: list[Line] | None, findings: Findings) -> Iterator[WantedList]:
    """Compare a list with what names it. Yields its parts."""
    if lines is None:
        return
    at, found, by = w.digest, digest_of(b"", lines), "the certificate" if w.part is None else "the list that names it"
    mine, theirs = (found.rows, found.files, found.size, found.unproven), (at.rows, at.files, at.size, at.unproven)
    what = f"{w.table}: rows, files, size and unproven files are {mine}, {by} says {theirs}"
    findings.expect(mine == theirs, w.cut, w.key, what)
    paths = [line.path for line in lines]
    findings.expect(paths == sorted(set(paths)), w.cut, w.key, f"{w.table}: its paths are not in order, or not once")
    parts = [line for line in lines if isinstance(line, Part)]
    if w.part is not None:
        levels = {p.level for p in parts} or {0}
        right = (paths[-1:], levels, len(parts)) == ([w.part.path], {w.part.level - 1}, len(lines) if w.part.level > 1 else 0)
        findings.expect(right, w.cut, w.key, f"{w.table}: its lines do not end with {w.part.path}, or are not of level {w.part.level - 1}")
    yield from (WantedList(w.cut, _key(w.key, p), w.table, p.digest, p) for p in parts)


def _files(key: str, found: Mapping[str, list[Line] | None]) -> list[ProvenFile] | None:
    """The files of a list and its parts, None if one of them is wrong."""
    lines, files = found[key], list[ProvenFile]()
    if lines is None:
        return None
    for line in lines:
        inner = [line] if isinstance(line, ProvenFile) else _files(_key(key, line), found)
        if inner is None:
            return None
        files += inner
    return files


def _key(key: str, part: Part) -> str:
    """The key of a part. key: of the list that names it."""
    return f"{key.rpartition('/')[0]}/{part.digest.sha256}.tsv"
