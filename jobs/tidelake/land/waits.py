"""The reasons why an hour waits, as text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Something that an hour waits for. topic, partition: None for the whole hour; what: the text for messages."""

    topic: str | None = None
    partition: int | None = None
    what: str

    def __str__(self) -> str:
        return self.what if self.topic is None else f"{self.topic}[{self.partition}]: {self.what}"


def time_of(moment: datetime) -> str:
    """Format a UTC time for these texts."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
