"""A folder of the user's cache that several processes may make at once: whole, or not there."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp


def whole_folder(folder: Path, fill: Callable[[Path], Path | None]) -> Path:
    """The folder, filled if it is not there. fill: fills an empty folder, and may return one below it that is to be the folder instead."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(mkdtemp(dir=folder.parent, prefix=f"{folder.name}-"))
    try:
        (fill(part) or part).rename(folder)
    except OSError:  # another process was first
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def unpack(tar: tarfile.TarFile, folder: Path) -> None:
    """Unpack what stays inside the folder. Python before 3.11.4 does not look."""
    tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # type: ignore[arg-type]
