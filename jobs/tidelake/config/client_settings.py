"""Settings that feed.toml passes on to a client by the client's own names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def flat_settings(value: Any, refuse: Callable[[str], None], prefix: str = "") -> Any:
    """Flatten a table to full names: TOML reads the dots of `security.protocol` as tables. Another value is returned as it is.

    refuse: raises ValueError for a name that cannot be set. Raises ValueError for a value that is a list.
    """
    if not isinstance(value, dict):
        return value
    flat: dict[str, Any] = {}
    for key, item in value.items():
        name = f"{prefix}{key}"
        if isinstance(item, dict):
            flat |= flat_settings(item, refuse, f"{name}.")
            continue
        refuse(name)
        if not isinstance(item, str | int | float):
            raise ValueError(f"{name}: should be a text, a number, true or false")
        flat[name] = item
    return flat
