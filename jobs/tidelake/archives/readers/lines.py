"""Read text objects as blocks of whole lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tidelake.archives.readers.codecs import decompressed, naming
from tidelake.archives.readers.layout import BATCH_BYTES, SourceObject, damaged

MAX_LINE = 256 << 20
_SAMPLE = 5


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of an object, without the end of the last line. first: number of the first line, from 1."""

    data: bytes
    first: int

    @property
    def lines(self) -> int:
        """The number of lines."""
        return self.data.count(b"\n") + 1

    def split(self) -> list[bytes]:
        """Return the lines, to find errors."""
        return self.data.split(b"\n")

    def sample(self) -> list[bytes]:
        """Return the first few lines, which decide the kind of the object."""
        return self.data.split(b"\n", _SAMPLE)[:_SAMPLE]


def blocks(path: Path, source: SourceObject) -> Iterator[Block]:
    """Yield the object's lines in blocks of about BATCH_BYTES. The last line needs no line end. A yielded block is not held here.

    Raises StorageError (BAD_OBJECT) for a wrong codec, OrderError (DAMAGED_OBJECT) for a line of more than MAX_LINE bytes.
    """
    first, parts = 1, list[bytes | memoryview]()
    with naming(source), decompressed(path, source) as stream:
        while data := stream.read(BATCH_BYTES):
            end = data.rfind(b"\n")
            if end >= 0:
                lines, rest = data.count(b"\n", 0, end) + 1, data[end + 1 :]
                parts.append(memoryview(data)[:end])
                del data
                yield Block(_joined(parts), first)
                first, parts = first + lines, [rest]
            else:
                parts.append(data)
            if sum(map(len, parts)) > MAX_LINE:
                raise damaged(source, f"line {first}", f"longer than {MAX_LINE} bytes")
    if any(parts):
        yield Block(_joined(parts), first)


def _joined(parts: list[bytes | memoryview]) -> bytes:
    """Return the joined parts, and remove them from the list."""
    whole = b"".join(parts)
    parts.clear()
    return whole
