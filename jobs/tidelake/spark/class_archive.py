"""An archive of the classes that Spark loads, which the JVM maps into memory (class data sharing, JEP 350): a session starts sooner.

`archive_classes` makes it, beside this Python's packages. An application uses it if it is of the same Java, Spark and jars. A JVM whose
class path differs starts without it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

_FOLDER = Path(sys.prefix) / "share" / "tidelake"


def archive_path(jars: list[str]) -> Path:
    """Return where the archive of this Java, Spark and these jars is, or would be."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else Path(shutil.which("java") or "java")
    of = [version("pyspark"), str(java.resolve()), *(str(_written(p)) for p in (java, *map(Path, jars)) if p.exists()), *jars]
    return _FOLDER / f"classes-{hashlib.sha256(repr(of).encode()).hexdigest()[:16]}.jsa"


def _written(path: Path) -> tuple[int, int]:
    return path.stat().st_size, path.stat().st_mtime_ns


def java_options(jars: list[str]) -> str:
    """Return the JVM's options to use the archive; none without one."""
    path = archive_path(jars)
    return f" -XX:SharedArchiveFile={path} -Xlog:cds*=off" if path.is_file() else ""
