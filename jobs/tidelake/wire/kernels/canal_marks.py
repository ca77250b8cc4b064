"""What Alibaba Canal's messages say in JSON and in protobuf alike (docs/reference/protocols.md 5.6): a code, and how statements begin."""

from __future__ import annotations

import numpy as np

from tidelake.wire.kernels.arrays import Bytes
from tidelake.wire.kernels.compiled import compiled

BLOB = 2004  # in sqlType, of java.sql.Types
_BEGINNINGS = np.array([list(verb) for verb in (b"insert", b"update", b"delete", b"replac")], np.uint8)


@compiled
def makes_rows(text: Bytes, p: int, end: int) -> bool:
    """Whether text[p:end] begins as an INSERT, UPDATE, DELETE or REPLACE. It may begin so with a comment, too: then False."""
    if end - p < _BEGINNINGS.shape[1]:
        return False
    for verb in range(len(_BEGINNINGS)):
        same = 0
        for i in range(_BEGINNINGS.shape[1]):
            same += text[p + i] | 0x20 == _BEGINNINGS[verb, i]
        if same == _BEGINNINGS.shape[1]:
            return True
    return False
