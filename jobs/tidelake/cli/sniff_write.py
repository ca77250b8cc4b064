"""Writing what `sniff` made of an archive: one feed.toml, or one of every feed below a folder."""

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
    """Write the feeds. path: a folder, which gets `<feed>/feed.toml` of each, or one feed's file, whose folder says which feed it is.

    What is there already stays as it is. Raises ConfigError where nothing could be written.
    """
    if not starters:
        raise ConfigError(f"--write {path}: no feed can be landed", remedy="see what keeps them from it")
    if path.suffix == ".toml":
        _write_one(path, starters)
        return
    written = [_write(path / start.name / _FILE, start) for start in starters]
    if not any(written):
        raise ConfigError(f"--write {path}: all of these feeds are there already", remedy="remove what should be written anew")


def _write_one(path: Path, starters: Sequence[Starter]) -> None:
    """Write the one feed.toml there is, of several the one for the folder's name."""
    chosen = starters if len(starters) == 1 else [start for start in starters if start.name == path.absolute().parent.name]
    if not chosen:
        names = ", ".join(str(path.parent.parent / start.name / path.name) for start in starters)
        problem = "which of the feeds? They are told by their folders"
        raise ConfigError(f"--write {path}: {problem}", remedy=f"give a folder for all, or one of {names}")
    if not _write(path, chosen[0], quiet=True):
        raise ConfigError(f"--write {path}: is there already, and is not overwritten", remedy="remove it, or give another name")


def _write(path: Path, start: Starter, *, quiet: bool = False) -> bool:
    """Whether the file was written; False where it was there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(start.text)
    except FileExistsError:
        if not path.is_file():
            raise ConfigError(f"--write {path}: {path.parent} is no folder") from None
        if not quiet:
            _tell(f"left {path} as it is: it is there already")
        return False
    except OSError as e:
        raise ConfigError(f"--write {path}: {e.strerror or e}") from e
    _tell(f"wrote {path}")
    return True


def _tell(line: str) -> None:
    errors.print(line, soft_wrap=True)
