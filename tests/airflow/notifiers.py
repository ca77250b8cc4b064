"""Notifiers of tests: a team's own class, named in feed.toml by its import path. Import it where Airflow is set up (conftest.py)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airflow.sdk import BaseNotifier


class FileNotifier(BaseNotifier):
    """Writes each message into a file of a folder. A folder that does not exist is a server that is down."""

    template_fields: Sequence[str] = ("folder", "message", "mention")

    def __init__(self, *, folder: str, message: str = "", mention: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.folder = folder
        self.message = message
        self.mention = mention

    def notify(self, context: Any) -> None:
        """Write the message."""
        folder = Path(self.folder)
        (folder / f"{len(list(folder.iterdir())):03d}.txt").write_text(f"{self.mention}{self.message}", encoding="utf-8")
