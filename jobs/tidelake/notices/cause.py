"""Models of causes and of notices about them. Airflow reads them as JSON."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from tidelake.config.notify import Event


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Cause(_Model):
    """Something that a person should hear of, once.

    Attributes:
        event: What it is.
        code: Of the error, the finding or the reason; `LAG`.
        hour: The hour that it concerns.
        id: A notifier hears once of causes with the same id.
        ends: The cause has ended when no open cause has this text.
        why: What was found.
        todo: What to do about it.
    """

    event: Literal["blocked", "incomplete", "warning", "lag"]
    code: str
    hour: str
    id: str
    ends: str
    why: str
    todo: str


class Standing(_Model):
    """What is published. cut, hour, resolved_ts: of the newest cut, None without one; blocked: the blocked hour and its code."""

    cut: int | None = None
    hour: str | None = None
    resolved_ts: int | None = None
    blocked: str = ""


class Notice(_Model):
    """A message for one notifier. number: identifies it among those of the feed; event: that of the cause, or `recovered` if it ended;
    standing: when the notice was written.
    """

    number: int
    event: Event
    cause: Cause
    standing: Standing
