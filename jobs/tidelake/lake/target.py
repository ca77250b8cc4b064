"""What a run of order, validate or compact works towards."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """The window that a run stages, judges or publishes.

    Attributes:
        hour: The hour that it ends with.
        redo_from: A redo's first hour: all that is published from it on is built anew. None for the next window.
    """

    hour: str
    redo_from: str | None = None
