"""What the next window continues, or why there is none. Imports nothing that orders, so that a published hour costs little."""

from __future__ import annotations

from dataclasses import dataclass

from tidelake.lake.cuts import Base, base_of
from tidelake.lake.opened import Lake
from tidelake.lake.staged import Target
from tidelake.lake.turns import is_published
from tidelake.order.progress import why_published


@dataclass(frozen=True, slots=True)
class WindowBase:
    """What a window continues, and the hour that it ends with."""

    base: Base
    hour: str


def window_base(lake: Lake, target: Target) -> WindowBase | str:
    """Return what the target's window continues, or why there is nothing to do. A redo reaches at least as far as the newest cut.

    Raises:
        OrderError, StorageError: What `base_of` and `is_published` raise.
    """
    base = base_of(lake.catalog, lake.store, lake.feed.name, target.redo_from)
    cut, redone = base.cut, base.newest if base.parent_seq is not None else None
    hour = max(target.hour, redone.hour) if redone else target.hour
    if is_published(lake.feed, lake.catalog, lake.store, cut, hour) and cut is not None:
        return why_published(lake.catalog, lake.feed, cut, hour)
    return WindowBase(base, hour)
