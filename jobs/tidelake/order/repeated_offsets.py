"""Offsets that two hours have. Workers import this module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidelake.land.store.ranges import Ranges
from tidelake.spark.sql_text import literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Offsets that an earlier hour has as well: their messages count there."""

    hour: str
    topic: str
    partition: int
    offsets: Ranges

    @property
    def sql(self) -> str:
        """Return the SQL condition for these events."""
        spans = " OR ".join(f"offset BETWEEN {a} AND {b}" for a, b in self.offsets)
        return f"(hour = {literal(self.hour)} AND topic = {literal(self.topic)} AND partition = {self.partition} AND ({spans}))"

    def has(self, event: Mapping[str, Any]) -> bool:
        """Whether an event is one of these."""
        mine = (event["hour"], event["topic"], event["partition"]) == (self.hour, self.topic, self.partition)
        return mine and any(a <= event["offset"] <= b for a, b in self.offsets)
