"""Read what order staged, for validate and compact."""

from __future__ import annotations

from dataclasses import dataclass

from tidelake.config.lake_paths import BRANCH, run_key
from tidelake.errors import OrderError
from tidelake.io.documents import find_document
from tidelake.lake.cut import Cut, Staged
from tidelake.lake.cut_documents import next_seq
from tidelake.lake.cuts import newest_cut
from tidelake.lake.opened import Lake
from tidelake.lake.turns import is_published


@dataclass(frozen=True, slots=True)
class Target:
    """The window that a run stages, judges or publishes.

    Attributes:
        hour: Last hour of the window.
        redo_from: First hour of a redo, which rebuilds everything published from that hour on. None for the next window.
    """

    hour: str
    redo_from: str | None = None

    @property
    def options(self) -> str:
        """Options of the command line that mean this window."""
        return f"--hour {self.hour}{'' if self.redo_from is None else f' --redo-from {self.redo_from}'}"


def read_staged(lake: Lake, target: Target) -> tuple[Cut | None, Staged | None]:
    """Read what order staged for a target.

    Args:
        lake: The feed's opened lake.
        target: The window.

    Returns:
        The newest published cut, and the staged window. The window is None where the target is published.

    Raises:
        OrderError: NOT_ORDERED, and what `is_published` raises.
    """
    feed, store, hour = lake.feed, lake.store, target.hour
    cut = newest_cut(lake.catalog, store, feed.name)
    redo = cut is not None and target.redo_from is not None and target.redo_from <= cut.hour
    if not redo and is_published(feed, lake.catalog, store, cut, hour):
        return cut, None
    staged = find_document(store, run_key(feed.name, next_seq(store, feed.name, cut.seq if cut else 0), "order"), Staged)
    if staged is None and redo and cut is not None and cut.parent_seq is not None and cut.run.startswith(BRANCH):
        return cut, None  # the redo is published
    if staged is None or (staged.cut.parent_seq is not None) != redo or (staged.cut.hour < hour if redo else staged.cut.hour != hour):
        remedy = f"run `tidelake order --feed {feed.name} {target.options}` first"
        raise OrderError(f"hour {hour} of feed {feed.name} is not ordered", code="NOT_ORDERED", remedy=remedy)
    return cut, staged
