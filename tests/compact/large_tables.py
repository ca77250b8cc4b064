"""A table of forty rows and changes of them, published as if it were a large one."""

from __future__ import annotations

from typing import Any

from tests.lake.histories import Feeder, Message, publish, resolved, row
from tests.lake.windows import KV, table
from tidelake.lake.cut import Cut
from tidelake.lake.cut_documents import read_certificate
from tidelake.lake.opened import Lake

ROWS = [(str(n), "a") for n in range(40)]
CHANGES = [
    row(0, "update", 20, KV, ("5", "b"), ("5", "a")),
    row(0, "delete", 21, KV, None, ("6", "a")),
    row(0, "insert", 22, KV, ("77", "new")),
    row(0, "update", 23, KV, ("78", "a"), ("7", "a")),  # moves to another key
    row(0, "delete", 24, KV, None, ("8", "a")),
    row(0, "insert", 25, KV, ("8", "again")),
    row(0, "insert", 26, KV, ("9", "twice")),
    row(0, "delete", 27, KV, None, ("9", "twice")),
]
AFTER = table(*(r for r in ROWS if r[0] not in ("5", "6", "7", "8", "9")), ("5", "b"), ("77", "new"), ("78", "a"), ("8", "again"))


def first(made: Feeder, lake: Lake) -> Cut:
    cut = publish(lake, made.add(lake, [*(row(0, "insert", 10, KV, r) for r in ROWS), *resolved(15)]))
    assert cut is not None
    return cut


def window(made: Feeder, lake: Lake, messages: list[Message], until: int) -> tuple[Cut, dict[str, str], dict[str, Any]]:
    """(the cut, the summary of d.k's snapshot, what the certificate says of d.k)."""
    cut = publish(lake, made.add(lake, [*messages, *resolved(until)]))
    assert cut is not None
    proof = read_certificate(lake.store, "shop", cut.seq)
    return cut, lake.catalog.load("d.k").summary(cut.snapshots["d.k@-1"].snapshot_id), proof
