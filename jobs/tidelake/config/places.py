"""Check that the paths in feed.toml are absolute, so that they do not depend on the working directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tidelake.errors import ConfigError

_KEYS = ("source.uri", "source.claim_check", "lake.uri", "lake.catalog", "watermark.uri", "maintenance.archive_changelog")
_SQLITE = "jdbc:sqlite:"


def refuse_relative(path: Path, values: Mapping[str, Any], written: Mapping[str, Any]) -> None:
    """Raise ConfigError for a relative path; the message names the absolute one.

    path: of feed.toml; values: its content; written: its content before variables were replaced.
    """
    for key, value in _places(values):
        place = value.removeprefix(_SQLITE).partition("?")[0] if key == "lake.catalog" else value.removeprefix("file://")
        if place and not Path(place).is_absolute():
            section, name = key.split(".")
            whole = value.replace(place, str(Path.cwd() / place), 1)
            raise ConfigError(
                f"{path}: {key}: a relative path depends on the working directory (found {written[section][name]!r})",
                remedy=f"write an absolute path; here it would be {whole}",
            )


def _places(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the members that name a folder or file of this machine; URLs and unreplaced variables are left out."""
    live = _member(values, "source.kind") == "kafka"
    for key in _KEYS:
        value = _member(values, key)
        if not isinstance(value, str) or "${" in value or (key == "source.uri" and live):
            continue
        if value.startswith(_SQLITE) if key == "lake.catalog" else value.startswith("file://") or ":" not in value.partition("/")[0]:
            yield key, value


def _member(values: Mapping[str, Any], key: str) -> Any:
    section, name = key.split(".")
    found = values.get(section)
    return found.get(name) if isinstance(found, dict) else None
