"""Verdicts on late events, from facts. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidelake.order.arrow.keyless_rows import HASH, Steps, equal_rows
from tidelake.order.late.facts import BARE, ROW
from tidelake.wire.kernels.arrays import Flags, Longs

VERDICTS = ("replay", "conflict", "late")


def verdicts(late: pa.Table, published: pa.Table, steps: Steps) -> Longs:
    """Return the verdict on each late event, by its number in VERDICTS.

    Args:
        late: Facts of late events.
        published: Facts of published events. It has all that may equal a late one or have its row.
        steps: Topic and partition → offsets at which the resolved ts went back.
    """
    sides = late, published
    same = _among(*([_words(side, "fact"), *(_words(side, h) for h in HASH), _nth(side, steps)] for side in sides))
    keyed = published.filter(pa.array(_words(published, "fact") != BARE))
    row = _among(*([_words(side, r) for r in ROW] for side in (late, keyed)))
    return np.select([same, row], [0, 1], 2)


def _nth(facts: pa.Table, steps: Steps) -> Longs:
    """Number equal events of tables without a key in each replay epoch; 0 for others."""
    bare, out = np.asarray(facts.column("fact")) == BARE, np.zeros(facts.num_rows, np.int64)
    if bare.any():
        out[bare] = np.asarray(equal_rows(facts.filter(pa.array(bare)), steps)["nth"])
    return out


def _words(facts: pa.Table, name: str) -> Longs:
    return np.asarray(facts.column(name)).astype(np.int64)


def _among(wanted: Sequence[Longs], known: Sequence[Longs]) -> Flags:
    """Return which rows of `wanted` are in `known`."""
    one, other = (np.ascontiguousarray(np.stack(words, axis=1)).view([("", np.int64)] * len(words))[:, 0] for words in (wanted, known))
    return np.isin(one, other)
