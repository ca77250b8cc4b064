"""What a benchmark found, as named figures: which of them are judged, by which limit, and how two runs compare. Pure, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

TOLERANCE = 0.25  # of the older value; medians of one run against another on a machine that is not quiet differ by 0.1 to 0.2


class Figure(BaseModel):
    """One number. must: the limit that the exit code judges; aim: where we want to be. more_is_better: for speeds and shares.

    ratio: taken against something measured in the same run, so that runs on different days and machines compare.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    unit: str
    must: float | None = None
    aim: float | None = None
    more_is_better: bool = False
    ratio: bool = False

    def within(self, limit: float | None) -> bool:
        """Whether the value keeps to the limit; no limit is always kept to."""
        if limit is None:
            return True
        return self.value >= limit if self.more_is_better else self.value <= limit

    @property
    def verdict(self) -> str:
        """`aim`, `kept` (the must, not the aim), `MISSED`, or nothing where nothing is asked."""
        if not self.within(self.must):
            return "MISSED"
        if self.must is None and self.aim is None:
            return ""
        return "aim" if self.within(self.aim) and self.aim is not None else "kept"


def missed(figures: Mapping[str, Figure]) -> list[str]:
    """A sentence for every figure that does not keep to its must."""
    out = []
    for name, f in figures.items():
        if not f.within(f.must):
            out.append(f"{name} is {f.value:,.4g} {f.unit}, must be {'at least' if f.more_is_better else 'at most'} {f.must:,.4g}")
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A figure in two runs, None where a run lacks it. share: new / old − 1. worse: a ratio that got worse by more than the tolerance."""

    name: str
    old: Figure | None
    new: Figure | None
    share: float | None
    worse: bool


def compared(old: Mapping[str, Figure], new: Mapping[str, Figure], tolerance: float = TOLERANCE) -> list[Change]:
    """Every figure of either run, in the newer one's order, then those that only the older one has."""
    return [_change(name, old.get(name), new.get(name), tolerance) for name in (*new, *(n for n in old if n not in new))]


def _change(name: str, old: Figure | None, new: Figure | None, tolerance: float) -> Change:
    if old is None or new is None or old.value == 0:
        return Change(name=name, old=old, new=new, share=None, worse=False)
    share = new.value / old.value - 1
    loss = -share if new.more_is_better else share
    return Change(name=name, old=old, new=new, share=share, worse=new.ratio and loss > tolerance)
