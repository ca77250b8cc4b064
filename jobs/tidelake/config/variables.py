"""Variables of the environment in feed.toml: `${NAME}` in a string."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tidelake.config.source import VARIABLE
from tidelake.errors import ConfigError


def expanded(value: Any, environment: Mapping[str, str], path: str, key: str = "", left: frozenset[str] = frozenset()) -> Any:
    """Return a value with its variables replaced, except in the sections `left`. path, key: where the value is, for the error.

    Raises ConfigError for a variable that the environment lacks.
    """
    if key in left:
        return value
    if isinstance(value, dict):
        return {k: expanded(v, environment, path, f"{key}.{k}" if key else k, left) for k, v in value.items()}
    if isinstance(value, list):
        return [expanded(v, environment, path, key, left) for v in value]
    if not isinstance(value, str):
        return value

    def substitute(match: re.Match[str]) -> str:
        name = match[1]
        if name not in environment:
            raise ConfigError(
                f"{path}: {key}: the environment has no {name}", remedy=f"set {name}, or an Airflow connection that provides it"
            )
        return environment[name]

    return VARIABLE.sub(substitute, value)
