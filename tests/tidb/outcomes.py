"""What became of statements, as a table for people."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

KINDS = ("equal", "refused", "different")
_NAMES = re.compile(r"`[^`]*`|'[^']*'|\b[a-z]+\.\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A statement. kind: one of KINDS; of: what statement it is; said: the reason of the refusal, or the differences."""

    kind: str
    of: str
    table: str
    statement: str
    said: tuple[str, ...] = ()
    seed: int = 0


def lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Counts by statement and outcome, the reasons of refusals, and each difference."""
    yield f"{'statement':22}" + "".join(f"{k:>11}" for k in KINDS)
    for of in sorted({o.of for o in outcomes}):
        yield f"{of:22}" + "".join(f"{sum(o.of == of and o.kind == k for o in outcomes):11}" for k in KINDS)
    yield f"{'all':22}" + "".join(f"{sum(o.kind == k for o in outcomes):11}" for k in KINDS)
    reasons = Counter((o.of, _NAMES.sub("…", o.said[0])) for o in outcomes if o.kind == "refused")
    yield from (f"refused {n:3}: {of}: {why}" for (of, why), n in sorted(reasons.items(), key=lambda r: (-r[1], r[0])))
    for o in outcomes:
        if o.kind == "different":
            yield f"different, seed {o.seed}: {o.statement}"
            yield from (f"    {s[:300]}" for s in o.said[:4])
