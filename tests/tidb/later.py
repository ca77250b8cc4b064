"""A clock by which the hours of an archive are over that begin with the server's hour."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import Self

from tests.tidb.archived import HOURS


class Later(datetime):
    """`datetime` whose now is after the last hour."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        """The time when all hours are over."""
        return super().now(tz) + timedelta(hours=HOURS + 1)
