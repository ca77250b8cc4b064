"""TiDB's server and Dumpling, built once from the Go module proxy (docs/reference/tidb.md 1). `python -m tests.tidb.programs` builds them.

The versions are those of module/go.mod and module/go.sum. The programs are kept in the user's cache, outside of the source tree.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tidelake.io.file_lock import locked

_MODULE = Path(__file__).with_name("module")
_PACKAGES = ("github.com/pingcap/tidb/cmd/tidb-server", "github.com/pingcap/tidb/dumpling/cmd/dumpling")
_COMMIT = re.compile(r"^\s*(?:require )?github\.com/pingcap/tidb v\S+-([0-9a-f]{12})$", re.MULTILINE)
NEEDS_GO = "needs Go 1.23 or newer, to build TiDB once: https://go.dev/dl, or TIDELAKE_TIDB=/folder/with/tidb-server/and/dumpling"


class Programs(NamedTuple):
    """Paths of the two programs."""

    server: Path
    dumpling: Path


def programs() -> Programs:
    """The programs: of the folder TIDELAKE_TIDB, else of the cache, built if they are not there; skips the test without Go."""
    found = _in(Path(os.environ.get("TIDELAKE_TIDB", cache())))
    if found is not None:
        return found
    if "TIDELAKE_TIDB" in os.environ:
        raise FileNotFoundError(f"TIDELAKE_TIDB={os.environ['TIDELAKE_TIDB']} has no tidb-server and dumpling")
    if shutil.which("go") is None:
        pytest.skip(NEEDS_GO)
    build()
    built = _in(cache())
    assert built is not None
    return built


def cache() -> Path:
    """The folder of the programs, named by the commit of TiDB that module/go.mod requires."""
    commit = _COMMIT.search((_MODULE / "go.mod").read_text())
    assert commit is not None, "module/go.mod names no commit of TiDB"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tidelake" / f"tidb-{commit[1]}"


def build() -> None:
    """Download the modules and compile. Raises CalledProcessError; Go has said why by then."""
    folder = cache()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_suffix(".lock")):
        if _in(folder) is None:
            made = folder.with_suffix(".part")
            made.mkdir(exist_ok=True)
            subprocess.run(["go", "mod", "download"], cwd=_MODULE, check=True)
            subprocess.run(["go", "build", "-o", f"{made}/", *_PACKAGES], cwd=_MODULE, check=True)
            made.rename(folder)


def _in(folder: Path) -> Programs | None:
    found = Programs(folder / "tidb-server", folder / "dumpling")
    return found if all(p.is_file() for p in found) else None


def main() -> int:
    """Build the programs and say how long it took. Without Go, say what is missing: the tests are skipped then."""
    if _in(cache()) is not None or "TIDELAKE_TIDB" in os.environ:
        return 0
    if shutil.which("go") is None:
        sys.stderr.write(f"TiDB is not built: {NEEDS_GO}\n")
        return 0
    sys.stderr.write(f"building TiDB and Dumpling into {cache()}: once, 10 to 20 minutes\n")
    started = time.monotonic()
    build()
    sys.stderr.write(f"built in {time.monotonic() - started:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
