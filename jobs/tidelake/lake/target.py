"""The target of a run of order, validate or compact."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """The window that a run stages, judges or publishes.

    Attributes:
        hour: Last hour of the window.
        redo_from: First hour of a redo, which rebuilds everything published from that hour on. None for the next window.
    """

    hour: str
    redo_from: str | None = None
