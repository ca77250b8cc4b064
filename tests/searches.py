"""How many examples Hypothesis draws where one takes long. `make test-long` sets TIDELAKE_SEARCH and draws all; other runs draw a third."""

from __future__ import annotations

import os

WHOLE = os.environ.get("TIDELAKE_SEARCH") == "whole"


def examples(whole: int) -> int:
    """How many examples this run draws, of so many in a whole search."""
    return whole if WHOLE else max(1, whole // 3)
