"""The trigger of tasks that wait for a moment. It logs nothing while it waits; Airflow's own logs a line a second into the task's log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

LOOK_SECONDS = 10.0  # a clock that is set meanwhile is noticed after this time


class MomentTrigger(BaseTrigger):
    """Resumes the task at a moment. moment: a time with its zone."""

    def __init__(self, moment: datetime) -> None:
        super().__init__()
        self.moment = moment

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the import path and the arguments, by which the triggerer makes the trigger again."""
        return f"{__name__}.{type(self).__name__}", {"moment": self.moment}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event, with the moment as text."""
        while (left := (self.moment - datetime.now(UTC)).total_seconds()) > 0:
            await asyncio.sleep(min(left, LOOK_SECONDS))
        yield TriggerEvent(self.moment.isoformat())
