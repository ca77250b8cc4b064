"""`tidelake sniff --write`: write the feed.toml files that were found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tidelake.cli.common import errors
from tidelake.errors import ConfigError

if TYPE_CHECKING:
    from tidelake.sniff.starter import Starter

_FILE = "feed.toml"


def write_feeds(path: Path, starters: Sequence[Starter]) -> None:
    """Write the feed.toml files. Existing files are not overwritten.

    Args:
        path: A folder, which gets `<feed>/feed.toml` for each feed, or the file of one feed, whose folder names the feed.
        starters: The feeds found.

    Raises:
        ConfigError: Nothing could be written.
    """
    if not starters:
        raise ConfigError(f"--write {path}: no feed can be landed", remedy="the report states why")
    if path.suffix == ".toml":
        _write_one(path, starters)
        return
    written = [_write(path / start.name / _FILE, start) for start in starters]
    if not any(written):
        raise ConfigError(f"--write {path}: all of these feeds already exist", remedy="remove the files that should be written again")


def _write_one(path: Path, starters: Sequence[Starter]) -> None:
    """Write one feed.toml: the only feed's, or that of the feed with the folder's name."""
    chosen = starters if len(starters) == 1 else [start for start in starters if start.name == path.absolute().parent.name]
    if not chosen:
        names = ", ".join(str(path.parent.parent / start.name / path.name) for start in starters)
        problem = "the folder's name is none of the feeds found"
        raise ConfigError(f"--write {path}: {problem}", remedy=f"give a folder for all, or one of {names}")
    if not _write(path, chosen[0], quiet=True):
        raise ConfigError(f"--write {path}: already exists and is not overwritten", remedy="remove it, or give another name")


def _write(path: Path, start: Starter, *, quiet: bool = False) -> bool:
    """Write a file and return True; return False if it exists."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(start.text)
    except FileExistsError:
        if not path.is_file():
            raise ConfigError(f"--write {path}: {path.parent} is not a folder") from None
        if not quiet:
            _tell(f"left {path} unchanged: it already exists")
        return False
    except OSError as e:
        raise ConfigError(f"--write {path}: {e.strerror or e}") from e
    _tell(f"wrote {path}")
    return True


def _tell(line: str) -> None:
    errors.print(line, soft_wrap=True)
