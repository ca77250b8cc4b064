"""Texts of feed.toml that are right, and what is read of a text or said against it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidelake.config.feed import Feed, load_feed
from tidelake.errors import ConfigError

SECRET = "s3cr3t-of-the-environment"
HEAD = 'protocol = "open"\ntopics = ["shop.open"]\npartitions = 3\n'
SOURCE = '[source]\nuri = "s3://archive/${STAGE}/open"\nlayout = "aiven-jsonl"\n'
LAKE = '[lake]\nuri = "s3://lake"\ncatalog = "jdbc:postgresql://u:${PASSWORD}@db/lake"\n'
PLAIN = HEAD + SOURCE + LAKE
ENVIRONMENT = {"STAGE": "prod", "PASSWORD": SECRET}


def written(folder: Path, text: str, name: str = "shop") -> Path:
    """A schemas folder with one feed."""
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "feed.toml").write_text(text, encoding="utf-8")
    return folder


def loaded(folder: Path, text: str, **more: Any) -> Feed:
    return load_feed(written(folder, text), "shop", ENVIRONMENT, **more)


def refused(folder: Path, text: str, **more: Any) -> str:
    """What the error says after the file."""
    with pytest.raises(ConfigError) as error:
        loaded(folder, text, **more)
    assert error.value.exit_code == 2
    said = str(error.value)
    assert SECRET not in said
    start = f"CONFIG: {folder / 'shop' / 'feed.toml'}: "
    assert said.startswith(start)
    return said.removeprefix(start)
