"""Events that do not count, because the feed has them at another place. Workers import this module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidelake.land.store.ranges import Ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Events that came before.

    Attributes:
        hour: Their hour.
        topic: Their topic.
        partition: Their partition.
        offsets: Offsets of their messages.
        ordinals: Which events of each message; empty: all of them.
    """

    hour: str
    topic: str
    partition: int
    offsets: Ranges
    ordinals: Ranges = ()

    def has(self, event: Mapping[str, Any]) -> bool:
        """Whether an event is one of these."""
        mine = (event["hour"], event["topic"], event["partition"]) == (self.hour, self.topic, self.partition)
        here = any(a <= event["offset"] <= b for a, b in self.offsets)
        return mine and here and (not self.ordinals or any(a <= event["ordinal"] <= b for a, b in self.ordinals))
