"""Who hears of blocked, incomplete and late hours: [[notify]] of feed.toml (docs/how-to/notifications.md)."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

Event = Literal["blocked", "incomplete", "warning", "lag", "recovered"]
_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


class Notify(BaseModel):
    """One notifier of Airflow. kind: import path of its class; on: the events that it hears of; arguments: of the class.

    lag_minutes: age of the published resolved ts from which the feed lags. An hour is published after its end, so a feed that does not lag
    is up to an hour behind.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str = Field(alias="class")
    on: tuple[Event, ...] = ("blocked", "incomplete", "recovered")
    lag_minutes: Annotated[int, Field(strict=True, ge=61, le=100_000)] | None = None
    arguments: dict[str, Any] = Field(alias="with", default={}, repr=False)

    @field_validator("kind")
    @classmethod
    def _is_a_path(cls, kind: str) -> str:
        if not _PATH.fullmatch(kind):
            raise ValueError('the import path of a class, like "airflow.providers.smtp.notifications.smtp.SmtpNotifier"')
        return kind

    @field_validator("on")
    @classmethod
    def _names_causes(cls, on: tuple[Event, ...]) -> tuple[Event, ...]:
        if not set(on) - {"recovered"} or len(set(on)) < len(on):
            raise ValueError('different events, such as ["blocked", "incomplete", "recovered"], and not "recovered" alone')
        return on

    @model_validator(mode="after")
    def _says_what_lag_is(self) -> Notify:
        if ("lag" in self.on) != (self.lag_minutes is not None):
            raise ValueError('`on = ["lag"]` needs `lag_minutes`, and `lag_minutes` needs "lag" in `on`')
        return self

    @property
    def key(self) -> str:
        """The identity of the notifier in the lake: class and arguments as written. A variable's value is not part of it."""
        written = json.dumps(self.arguments, sort_keys=True, default=str)
        return f"{self.kind} {hashlib.sha256(written.encode()).hexdigest()[:12]}"


def _is_a_list(value: Any) -> Any:
    if isinstance(value, dict):
        raise ValueError("each notifier begins with [[notify]], in two brackets")
    return value


def _differ(several: tuple[Notify, ...]) -> tuple[Notify, ...]:
    """Refuse two notifiers with the same class and arguments: nobody could tell who heard of what."""
    keys = [n.key for n in several]
    if twin := next((n for n in several if keys.count(n.key) > 1), None):
        raise ValueError(f"two entries have the class {twin.kind} and the same `with`: write one, with the events of both in `on`")
    return several


Notifiers = Annotated[tuple[Notify, ...], BeforeValidator(_is_a_list), AfterValidator(_differ)]
