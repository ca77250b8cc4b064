"""What the reader of lines holds while its caller works on a block."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

from tidelake.archives.readers.layout import BATCH_BYTES, SourceObject
from tidelake.archives.readers.lines import blocks

SOURCE = SourceObject("t", 0, "t+0+0.jsonl", 0, 1, "etag")
LONG = 3 * BATCH_BYTES
SLACK = 1 << 20


def test_a_block_is_all_that_is_held_of_an_object(tmp_path: Path) -> None:
    """A long line between two short ones, and one at the end: the block is all that is left of them, and goes with its caller."""
    path = tmp_path / "object"
    path.write_bytes(b"a\n" + b"b" * LONG + b"\nc\n" + b"d" * LONG)
    first, held, sizes = list[int](), list[int](), list[int]()
    tracemalloc.start()
    try:
        for block in blocks(path, SOURCE):
            first.append(block.first)
            sizes.append(len(block.data))
            del block
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert first == [1, 2, 4]
    assert sizes == [1, LONG + 2, LONG]
    assert max(held) < BATCH_BYTES + SLACK, held
